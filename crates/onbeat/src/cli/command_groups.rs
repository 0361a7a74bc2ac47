//! List of all commands under headings by purpose: a flat list of more than twenty is not read.

use clap::builder::StyledStr;

use report::words::filled;

/// Headings with their commands, both in the order of display.
const GROUPS: &[(&str, &[&str])] = &[
    ("Measure latency and find its causes", &["measure", "hunt", "explain", "probe", "watch", "top"]),
    ("Check settings and programs", &["doctor", "audit", "threads", "irqs", "check", "rules", "capture"]),
    ("Change settings and prove the effect", &["tune", "isolate", "load", "prove", "cure", "suite"]),
    ("Evaluate and share results", &["report", "bounds", "compare", "import", "farm"]),
    ("Shell and help", &["completions", "man", "help"]),
];
/// Columns before a command's description.
const NAME: usize = 15;

/// Replacement for clap's list of commands, which has one heading for all of them.
pub fn template(command: &clap::Command, columns: usize) -> StyledStr {
    let styles = command.get_styles();
    let (header, literal) = (styles.get_header(), styles.get_literal());
    let mut page = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    for (heading, names) in GROUPS {
        page += &format!("\n{header}{heading}:{header:#}\n");
        for name in *names {
            let blanks = " ".repeat(NAME.saturating_sub(name.len() + 2));
            let first = format!("  {literal}{name}{literal:#}{blanks}");
            let mut row = String::new();
            filled(&mut row, &" ".repeat(NAME), &about(command, name), NAME, columns);
            page += &first;
            page += row.get(NAME..).unwrap_or_default();
        }
    }
    (page + &format!("\n{header}Options:{header:#}\n{{options}}{{after-help}}")).into()
}

/// Description of a command in the list; `help` is clap's command, and gets its text here.
fn about(command: &clap::Command, name: &str) -> String {
    let found = command.get_subcommands().find(|sub| sub.get_name() == name && name != "help");
    let own = found.and_then(clap::Command::get_about).map(ToString::to_string);
    own.unwrap_or_else(|| "Print this message or the help of a command".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_is_in_one_group() {
        let command = super::super::Cli::command();
        let shown = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        let mut there: Vec<&str> = shown.map(clap::Command::get_name).chain(["help"]).collect();
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        there.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, there);
    }

    #[test]
    fn the_list_fits_and_its_options_have_a_heading() {
        for columns in [40, 60, 80, 100] {
            let help = super::super::command_of(columns).render_help().to_string();
            assert!(help.lines().all(|line| line.chars().count() <= columns), "{columns}: {help}");
            assert!(help.contains("\nOptions:\n  -h, --help") && help.contains("\nExit codes: "), "{help}");
            assert!(help.contains("\n  measure      Measure the wake-up"), "{help}");
        }
    }
}
