//! Answer of `onbeat check` as the last lines on the terminal: the failed checks, the first ones to
//! fix, the unknown ones, the next commands.

use super::groups::{answer, groups};
use crate::last_lines::LastLines;
use crate::palette::{BOLD, GREEN, Palette, RED, YELLOW};
use crate::words::several;
use model::keyword::Keyword;
use rules::checks::findings::ProgramCheck;
use rules::judgement::{AuditVerdict, Severity};

/// Limit of checks that are named.
const NAMED: usize = 4;

/// Answer as text of up to this number of columns.
pub fn render(check: &ProgramCheck, width: usize, color: bool) -> String {
    let failed = groups(check, AuditVerdict::Fail);
    let style = match failed.iter().map(|found| found.finding.severity).max() {
        None => GREEN,
        Some(worst) if worst >= Severity::High => RED,
        Some(worst) if worst >= Severity::Medium => YELLOW,
        Some(_) => BOLD,
    };
    let mut named: Vec<String> = failed
        .iter()
        .map(|found| format!("{} ({})", found.finding.rule, found.finding.severity.name()))
        .collect();
    named.dedup();
    let first = named.first().map(|_| failed[0].finding.rule);
    named.truncate(NAMED);
    let mut lines = LastLines::default();
    lines.styled("answer", answer(check), style).row("first", named.join(", "));
    let unknown = check.summary.unknown as u64;
    if unknown > 0 {
        lines.row("fair", format!("{} could not be checked", several(unknown, "check", "checks")));
    }
    lines.row("next", next(first));
    lines.render(width, Palette(color))
}

fn next(first: Option<&str>) -> String {
    let cycles = "onbeat hunt -- PROGRAM (its late cycles and their causes)";
    match first {
        Some(first) => format!("onbeat rules {first} (details); {cycles}"),
        None => format!("{cycles}; -v (passed checks)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::last_lines::MOST_LINES;
    use rules::checks::ALL;
    use rules::checks::fixture::ExampleProgram;

    #[test]
    fn the_answer_of_every_check_fits_the_last_lines() {
        for rule in ALL {
            let text = render(&ExampleProgram::of(rule.examples.fires).check(), 80, false);
            assert!(text.lines().count() - 1 <= MOST_LINES, "{text}");
            assert!(text.contains(&format!("{} (", rule.id)), "{text}");
        }
    }

    #[test]
    fn the_worst_is_named_first() {
        let edits = "thread 101 prio=99 cpus=0-3\nthread 102 comm=vision prio=99 cpus=0-3";
        let text = render(&ExampleProgram::of(edits).check(), 80, false);
        assert!(text.starts_with("\nanswer  robot (100): 2 checks failed, the worst high; "), "{text}");
        assert!(text.contains("\nfirst   highest-priority (high), no-affinity ("), "{text}");
        assert!(text.contains("\nnext    onbeat rules highest-priority (details); "), "{text}");
    }
}
