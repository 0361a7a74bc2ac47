//! Layout of the examples below a command's help, so that no terminal wraps them into its margin.

use report::words::{filled, wrapped};

/// Blanks between an example and its description.
const GAP: &str = "   ";

/// Text for this number of columns: if a line is too long, its description moves below it, and a
/// part that is still too long is wrapped at blanks with an indent.
pub fn fitted(text: &str, columns: usize) -> String {
    let fits = |line: &str| line.chars().count() <= columns;
    let parted = |line: &str| {
        let (command, words) =
            line.split_at(line.trim_start().find(GAP)? + line.len() - line.trim_start().len());
        Some((command.to_owned(), words.trim().to_owned()))
    };
    // All or none: a mixture is harder to read than either.
    let beside = text.lines().all(|line| fits(line) || parted(line).is_none());
    let mut page = String::new();
    for line in text.lines() {
        match parted(line).filter(|_| !beside) {
            Some((command, words)) => {
                wrapped(&mut page, &command, columns);
                filled(&mut page, "      ", &words, 6, columns);
            }
            None if fits(line) => page += &format!("{line}\n"),
            None => wrapped(&mut page, line, columns),
        }
    }
    page.truncate(page.trim_end().len());
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Examples:\n  onbeat hunt -D 60s              short\n  onbeat hunt -D 60s --no-stacks  less cost, more time unexplained";

    #[test]
    fn what_fits_stays_and_what_does_not_goes_below() {
        assert_eq!(fitted(TEXT, 80), TEXT);
        let text = "Examples:\n  onbeat a -D 10s    every CPU there is\n  onbeat b   short";
        assert_eq!(fitted(text, 80), text);
        let narrow = "Examples:\n  onbeat a -D 10s\n      every CPU there is\n  onbeat b\n      short";
        assert_eq!(fitted(text, 30), narrow);
    }

    #[test]
    fn no_line_of_any_command_is_broken_by_the_terminal() {
        for columns in [40, 60, 80, 96, 100] {
            for (name, command) in super::super::subcommands(&super::super::command_of(columns), "onbeat") {
                let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
                for line in after.lines() {
                    let words = line.split_whitespace().map(str::len).max().unwrap_or(0);
                    assert!(line.len() <= columns || words + 6 > columns, "{name}: {line}");
                }
            }
        }
    }
}
