//! Check as text: the observed threads, the failed checks, worst first, then the unknown ones.

use std::fmt::Write;

use super::groups::{FindingGroup, conditions, groups, lines, more, title};
use crate::palette::{BOLD, Palette, RED, YELLOW};
use crate::words::{clean, filled, wrapped};
use model::keyword::Keyword;
use rules::checks::findings::ProgramCheck;
use rules::judgement::{AuditVerdict, Severity};

/// Check as text of up to this number of columns, with ANSI colours if `color` is set; `verbose`
/// adds checks that pass or do not apply.
pub fn render(check: &ProgramCheck, width: usize, color: bool, verbose: bool) -> String {
    let palette = Palette(color);
    let mut page = String::new();
    wrapped(&mut page, &conditions(check), width);
    for found in groups(check, AuditVerdict::Fail) {
        let severity = found.finding.severity;
        let style = if severity >= Severity::High { RED } else { YELLOW };
        let severity = palette.paint(style, &format!("{:<6}", severity.name()));
        let head = format!("{}: {}", palette.paint(BOLD, found.finding.rule), title(found.finding.rule));
        page.push('\n');
        filled(&mut page, &format!("{severity}  "), &head, 8, width);
        let mut field = |name: &str, text: &str| {
            if !text.is_empty() {
                filled(&mut page, &format!("  {name:<10} "), &clean(text), 13, width);
            }
        };
        field("where", &found.threads);
        field("found", &found.finding.value);
        field("should be", &found.finding.wanted);
        field("why", &found.finding.reason);
        field("to change", &found.finding.fix);
        field("also", &more(&found));
    }
    list(&mut page, &groups(check, AuditVerdict::Unknown), &palette.paint(BOLD, "unknown"), width);
    if verbose {
        list(&mut page, &groups(check, AuditVerdict::Pass), &palette.paint(BOLD, "passing checks"), width);
        list(
            &mut page,
            &groups(check, AuditVerdict::NotApplicable),
            &palette.paint(BOLD, "does not apply"),
            width,
        );
    }
    if !check.remarks.is_empty() {
        page.push('\n');
    }
    check.remarks.iter().for_each(|remark| wrapped(&mut page, &clean(remark), width));
    page
}

/// Each failed check in a line, the worst first, without reasons and remedies.
pub fn brief(check: &ProgramCheck, width: usize) -> String {
    let mut page = String::new();
    for found in groups(check, AuditVerdict::Fail) {
        let place = if found.threads.is_empty() { String::new() } else { format!(" ({})", found.threads) };
        let text = format!("{}: {}{}", found.finding.rule, clean(&found.finding.value), clean(&place));
        filled(&mut page, &format!("  {:<6} ", found.finding.severity.name()), &text, 11, width);
    }
    page
}

fn list(page: &mut String, found: &[FindingGroup], heading: &str, width: usize) {
    if !found.is_empty() {
        let _ = writeln!(page, "\n{heading}");
    }
    for (rules, text) in lines(found) {
        filled(page, "  ", &format!("{}: {text}", rules.join(", ")), 4, width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::checks::fixture::ExampleProgram;

    #[test]
    fn the_worst_comes_first() {
        let edits = "thread 101 prio=99 cpus=0-3\nthread 102 comm=vision prio=99 cpus=0-3";
        let text = render(&ExampleProgram::of(edits).check(), 80, false, false);
        assert!(text.contains("\nhigh    highest-priority: a thread of priority 99\n"), "{text}");
        assert!(text.contains("  where      threads control (101), vision (102)\n"), "{text}");
        assert!(text.find("highest-priority").unwrap() < text.find("no-affinity").unwrap(), "{text}");
        assert!(text.contains("\nunknown\n  blocking-calls: "), "{text}");
        assert!(
            !text.contains("passing checks") && text.lines().all(|line| line.chars().count() <= 80),
            "{text}"
        );
    }

    #[test]
    fn names_of_threads_steer_no_terminal() {
        let mut program = ExampleProgram::of("thread 101 prio=99");
        program.process.threads[0].comm = "\u{1b}[2Jx".into();
        program.process.comm = "\u{1b}]0;x\u{7}".into();
        let check = program.check();
        assert!(!render(&check, 80, false, true).contains('\u{1b}'));
        assert!(!super::super::page::html(&check).unwrap().contains('\u{1b}'));
    }
}
