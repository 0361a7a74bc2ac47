//! An export, booted: the same rules pass.

use std::collections::BTreeSet;

use super::super::document::changes;
use super::super::scene::{Measured, UndoScene};
use crate::live::frames::Reply;
use crate::live::judge::{document, exit, require};
use crate::live::machine::Machine;
use crate::live::qemu::CmdlineEdit;

/// Minimum number of settings that differ from the export before its boot.
const IMPORTED: usize = 8;
const FILES: [&str; 3] = ["exported.sysctl.d", "exported.tmpfiles.d", "exported.cmdline"];

pub fn scenes() -> Vec<UndoScene> {
    vec![UndoScene {
        systemd: true,
        boots: vec![
            include_str!("../../guest/tune-export.sh").to_string(),
            include_str!("../../guest/tune-exported.sh").to_string(),
        ],
        words,
        ..UndoScene::new("tune-exported", "", exported)
    }]
}

/// Words to add to and remove from the next boot's command line.
fn words(before: &[Reply]) -> CmdlineEdit {
    let Some(Ok(text)) = before.last().map(|reply| reply.file("exported.cmdline")) else {
        return CmdlineEdit::default();
    };
    let marked = |sign| text.lines().filter_map(|line| line.strip_prefix(sign)).map(str::to_string).collect();
    CmdlineEdit { added: marked("+ "), removed: marked("- ") }
}

/// Rules that a file names above its lines; several may share one.
fn rules_of(text: &str) -> impl Iterator<Item = &str> {
    let lines: Vec<&str> = text.lines().collect();
    let is_line = |line: &str| !line.is_empty() && !line.starts_with('#');
    let heads = (1..lines.len()).filter_map(move |at| {
        let head = lines[at - 1].strip_prefix("# ").filter(|_| is_line(lines[at]))?;
        Some(head.split(": ").next().unwrap_or(head))
    });
    heads.flat_map(|head| head.split(", "))
}

/// Rules that the export's own page omits, even if they share a line with others.
fn left_out(readme: &str) -> BTreeSet<&str> {
    let listed = readme.split_once("\nNot in it:\n").map_or("", |(_, listed)| listed);
    listed.lines().filter_map(|line| line.strip_prefix("- ")?.split(": ").next()).collect()
}

fn with_verdict(reply: &Reply, verdict: &str) -> Result<BTreeSet<String>, String> {
    let audit = document(reply, "audit")?;
    let findings = audit["findings"].as_array().ok_or("the audit has no findings")?;
    let of_verdict = findings.iter().filter(|finding| finding["verdict"] == verdict);
    Ok(of_verdict.filter_map(|finding| finding["rule"].as_str().map(str::to_string)).collect())
}

fn exported(replies: &[Reply], _: &Machine) -> Measured {
    let [first, second] = replies else { return Err("not two boots".to_string()) };
    exit(first, "export", 0)?;
    let (failed, passes) = (with_verdict(first, "fail")?, with_verdict(second, "pass")?);
    let left_out = left_out(first.file("exported.readme")?);
    let mut kept = BTreeSet::new();
    for file in FILES {
        let rules = rules_of(first.file(file)?);
        let rules = rules.filter(|rule| failed.contains(*rule) && !left_out.contains(rule));
        kept.extend(rules.map(str::to_string));
    }
    let booted: BTreeSet<&str> = second.value("cmdline")?.split_whitespace().collect();
    let edit = words(std::slice::from_ref(first));
    let missing = edit.added.iter().find(|word| !booted.contains(word.as_str()));
    let stayed = edit.removed.iter().find(|word| booted.contains(word.as_str()));
    require(missing.is_none() && stayed.is_none(), || {
        format!(
            "booted without {missing:?}, with {stayed:?}: {}",
            second.value("cmdline").unwrap_or_default()
        )
    })?;
    require(kept.len() >= 10, || format!("only {} failing rules are exported", kept.len()))?;
    let fail: Vec<&str> = kept.iter().filter(|rule| !passes.contains(*rule)).map(String::as_str).collect();
    require(fail.is_empty(), || {
        format!("of {} exported rules do not pass after the boot: {}", kept.len(), fail.join(" "))
    })?;
    for label in ["sysctl", "tmpfiles"] {
        exit(second, label, 0)?;
    }
    let [first_time, again] = [first, second].map(|reply| {
        exit(reply, "import", 0)?;
        changes(reply, "import")
    });
    let (first_time, again) = (first_time?, again?);
    require(first_time.len() >= IMPORTED, || format!("only {} settings are imported", first_time.len()))?;
    let left: Vec<&str> = again.iter().map(|change| change.key.as_str()).collect();
    require(left.is_empty(), || format!("an import of what was booted still has {}", left.join(" ")))?;
    Ok(vec![
        format!("{} exported rules of {} that failed pass after the boot", kept.len(), failed.len()),
        format!("imported before: {} settings to change; after the boot: none", first_time.len()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    const CMDLINE: &str = "# Words for the kernel's command line: `+` is added.\n#   GRUB, BLS  grubby\n\n\
        # skew-tick: ticks come together\n+ skew_tick=1\n\n# psi\n- psi=1\n\n\
        # cpu-isolation, tick: none: at all\n+ isolcpus=2-3\n+ nohz_full=2-3\n\n\
        # All to be added, on one line:\n# skew_tick=1 isolcpus=2-3 nohz_full=2-3\n";

    #[test]
    fn what_the_page_leaves_out_is_not_asked_for() {
        let page = "cmdline\n    words\n\nNot in it:\n- fair-server: its CPUs are isolated\n    \
            instead: later\n- smt: it is the machine itself\n";
        assert_eq!(left_out(page), BTreeSet::from(["fair-server", "smt"]));
        assert!(left_out("cmdline\n").is_empty());
    }

    #[test]
    fn rules_and_words_are_read_from_an_export() {
        let rules: Vec<&str> = rules_of(CMDLINE).collect();
        assert_eq!(rules, ["skew-tick", "psi", "cpu-isolation", "tick"]);
        let mut reply = Reply::default();
        reply.files.insert("exported.cmdline".into(), Some(CMDLINE.into()));
        let edit = words(&[reply]);
        assert_eq!(edit.added, ["skew_tick=1", "isolcpus=2-3", "nohz_full=2-3"]);
        assert_eq!(edit.removed, ["psi=1"]);
        assert_eq!(words(&[]), CmdlineEdit::default());
    }
}
