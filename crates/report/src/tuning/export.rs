//! Result of an export as text: the files, and the rules that none of them covers.

use crate::words::{clean, filled, several, wrapped};
use model::plan::LeftOut;

/// Renders the result; `files` are names with their number of lines, without comments.
pub fn render(folder: &str, about: &str, files: &[(&str, u64)], left: &[LeftOut], columns: usize) -> String {
    let mut page = head(folder, about, files, columns);
    for (name, lines) in files {
        filled(&mut page, "  ", &format!("{name}: {}", several(*lines, "line", "lines")), 4, columns);
    }
    if !left.is_empty() {
        page += "\nnot kept across a boot\n";
    }
    for one in left {
        filled(&mut page, "  ", &format!("{}: {}", one.rule, clean(&one.why)), 4, columns);
    }
    page
}

/// Folder and its purpose.
pub fn head(folder: &str, about: &str, files: &[(&str, u64)], columns: usize) -> String {
    let mut page = String::new();
    let head = match files {
        [] => format!("{folder}: nothing to export for {about}; see README for the reasons."),
        _ => format!(
            "{folder}: files that make the settings for {about} permanent; see README for their places."
        ),
    };
    wrapped(&mut page, &head, columns);
    page
}

#[cfg(test)]
mod tests {
    use super::render;
    use model::plan::LeftOut;

    #[test]
    fn files_and_what_is_in_none() {
        let left = LeftOut {
            rule: "irq-affinity".to_owned(),
            why: "numbers of interrupts can change".to_owned(),
            instead: "x".to_owned(),
        };
        let page =
            render("kept", "CPUs 2-3 as control-loop", &[("cmdline", 1), ("kernel.cfg", 2)], &[left], 100);
        assert_eq!(
            page,
            "kept: files that make the settings for CPUs 2-3 as control-loop permanent; see README for their\n  \
             places.\n  \
             cmdline: 1 line\n  kernel.cfg: 2 lines\n\nnot kept across a boot\n  \
             irq-affinity: numbers of interrupts can change\n"
        );
        assert_eq!(
            render("kept", "CPU 2", &[], &[], 100),
            "kept: nothing to export for CPU 2; see README for the reasons.\n"
        );
    }
}
