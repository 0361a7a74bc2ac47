//! Difference of two audits as text: regressions first, the verdict last.

use std::fmt::Write;

use crate::palette::{BOLD, DIM, GREEN, Palette, RED, YELLOW};
use crate::words::{UNKNOWN, clean, filled, several, wrapped};
use model::keyword::Keyword;
use rules::audit_diff::{AuditDiff, DiffVerdict, RuleDiff};

const PARTS: [(DiffVerdict, &str); 4] = [
    (DiffVerdict::Worse, "worse"),
    (DiffVerdict::Unknown, "cannot be compared: unknown on one side"),
    (DiffVerdict::Better, "better"),
    (DiffVerdict::Same, "another value, same verdict"),
];

/// Difference as text; `names` are those of the two machines or times.
pub fn render(diff: &AuditDiff, names: [&str; 2], width: usize, color: bool) -> String {
    let palette = Palette(color);
    let mut page = String::new();
    wrapped(&mut page, &format!("before: {}; after: {}", clean(names[0]), clean(names[1])), width);
    for (change, heading) in PARTS {
        let found: Vec<&RuleDiff> = diff.findings.iter().filter(|found| found.change == change).collect();
        if found.is_empty() {
            continue;
        }
        let style = match change {
            DiffVerdict::Worse => RED,
            DiffVerdict::Unknown => YELLOW,
            DiffVerdict::Better => GREEN,
            DiffVerdict::Same => DIM,
        };
        let _ = writeln!(page, "\n{}", palette.paint(style, heading));
        for one in found {
            filled(&mut page, &format!("  {:<7}", one.severity.name()), &line(one), 9, width);
        }
    }
    let _ = writeln!(page, "\n{}", palette.paint(BOLD, &sentence(diff)));
    page
}

fn line(one: &RuleDiff) -> String {
    let value = |text: &str| if text.is_empty() { UNKNOWN.to_owned() } else { clean(text) };
    let (before, after) = (value(&one.before_value), value(&one.after_value));
    let (was, is) = (one.before.name(), one.after.name());
    if one.before == one.after {
        return format!("{}: {before} -> {after}", one.rule);
    }
    format!("{}: {before} ({was}) -> {after} ({is})", one.rule)
}

/// Verdict in a sentence.
pub fn sentence(diff: &AuditDiff) -> String {
    let of = |change| diff.findings.iter().filter(|found| found.change == change).count() as u64;
    let (worse, better) = (of(DiffVerdict::Worse), of(DiffVerdict::Better));
    let unknown = match of(DiffVerdict::Unknown) {
        0 => String::new(),
        n => format!(" {} could not be compared.", several(n, "rule", "rules")),
    };
    let change = match (worse, better) {
        (0, 0) => "Equal: no verdict changed.".to_owned(),
        (0, better) => format!("Better: {} no longer.", several(better, "rule fails", "rules fail")),
        (worse, 0) => format!("Worse: {} that did not.", several(worse, "rule fails", "rules fail")),
        (worse, better) => {
            format!(
                "Worse: {} that did not; {better} no longer fail.",
                several(worse, "rule fails", "rules fail")
            )
        }
    };
    change + &unknown
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::audit::audit;
    use rules::audit_diff::diff;
    use rules::fixture::Machine;
    use rules::knobs::ALL;

    #[test]
    fn what_got_worse_stands_first_and_the_verdict_last() {
        let of = |edits: &str| {
            let mut machine = Machine::base();
            machine.edit(edits);
            let (survey, intent) = machine.survey();
            audit(&survey, &intent)
        };
        let knob = ALL.iter().find(|knob| knob.id == "rt-throttling").expect("a rule of the contract");
        let (good, bad) = (of(""), of(knob.examples.fires));
        let text = render(&diff(&good, &bad), ["a\u{1b}", "now"], 80, false);
        assert!(text.contains("\nworse\n") && text.contains("rt-throttling: "), "{text}");
        assert!(text.contains("Worse: 1 rule fails that did not.") && !text.contains('\u{1b}'), "{text}");
        assert!(render(&diff(&good, &good), ["a", "b"], 80, false).contains("Equal"), "equal");
        assert!(sentence(&diff(&bad, &good)).starts_with("Better: 1 rule fails no longer."));
    }
}
