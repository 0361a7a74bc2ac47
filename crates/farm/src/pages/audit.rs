//! The audit of a run's machine, its differences to another's, and the number of failed checks.

use maud::{Markup, html};
use model::keyword::Keyword;
use report::audit::diff::sentence;
use report::html::{PageParts, scroll};
use report::words::clean;
use rules::audit::VerdictCounts;
use rules::audit_diff::{AuditDiff, DiffVerdict, RuleDiff};
use rules::judgement::AuditVerdict;
use schemars::JsonSchema;
use serde::Serialize;

use super::parts::{board_link, escaped, moment};
use super::{Section, page};
use crate::board_names::BoardNames;
use crate::records::FarmRun;

/// Audit of a board, from its latest run that contains its machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct BoardAudit {
    pub run: String,
    /// Start of the run, in seconds since 1970.
    pub started: i64,
    /// Number of checks by verdict; `None` if the run is not on this machine's disk, or cannot be
    /// audited.
    #[schemars(with = "serde_json::Value")]
    pub summary: Option<VerdictCounts>,
}

/// The page of an audit.
pub fn audit(of: &FarmRun, names: &BoardNames, parts: PageParts) -> String {
    let PageParts { heading, body, script } = parts;
    let body = html! {
        (path(of, names))
        p { "This as " a href={ "/v1/runs/" (escaped(&of.id)) "/audit" } { "JSON" } "." }
        (body)
        @if let Some(script) = script { (script.element()) }
    };
    page(Some(Section::Runs), &heading, body)
}

/// The page of the difference of two.
pub fn difference(before: &FarmRun, after: &FarmRun, names: &BoardNames, diff: &AuditDiff) -> String {
    const PARTS: [(DiffVerdict, &str); 4] = [
        (DiffVerdict::Worse, "Worse"),
        (DiffVerdict::Unknown, "Cannot be compared: unknown on one side"),
        (DiffVerdict::Better, "Better"),
        (DiffVerdict::Same, "Different value, same verdict"),
    ];
    let data = format!("/v1/runs/{}/audit?before={}", escaped(&after.id), escaped(&before.id));
    let body = html! {
        (path(after, names))
        p.path { "before: " (board_link(&before.board, names)) ", "
            (run_and_audit(&before.id)) ", " (moment(before.started)) " UTC" }
        p.lead { (sentence(diff)) }
        p { "This as " a href=(data) { "JSON" } "; each run: " (to_audit(&before.id, "before")) ", "
            (to_audit(&after.id, "then")) "." }
        @for (change, heading) in PARTS {
            (changed(heading, diff.findings.iter().filter(|one| one.change == change).collect()))
        }
    };
    page(Some(Section::Runs), "The audits of two runs", body)
}

fn changed(heading: &str, findings: Vec<&RuleDiff>) -> Markup {
    html! {
        @if !findings.is_empty() {
            h2 { (heading) }
            (scroll(heading, html! {
                table {
                    thead { tr { th.left { "rule" } th.left { "before" } th.left { "then" } } }
                    tbody { @for one in findings { tr {
                        th.left { (one.rule) " "
                            span class={ "badge " (one.severity.name()) } { (one.severity.name()) } }
                        td.wrap { (judged(&one.before_value, one.before)) }
                        td.wrap { (judged(&one.after_value, one.after)) }
                    } } }
                }
            }))
        }
    }
}

/// A value with its verdict.
fn judged(value: &str, verdict: AuditVerdict) -> String {
    match (clean(value), verdict.name()) {
        (value, verdict) if value.is_empty() => verdict.to_owned(),
        (value, verdict) => format!("{value} ({verdict})"),
    }
}

/// Number of failed checks, in a line with a link to them.
pub fn line(of: &BoardAudit) -> Markup {
    html! {
        p { (to_audit(&of.run, "Audit for real time")) ", as of the run of " (moment(of.started)) " UTC"
            @if let Some(counts) = &of.summary { ": " (counted(counts)) } "." }
    }
}

fn counted(counts: &VerdictCounts) -> String {
    let checks = match (counts.fail, counts.fail + counts.pass) {
        (0, judged) => format!("none of {judged} checks fails"),
        (1, judged) => format!("1 of {judged} checks fails"),
        (fail, judged) => format!("{fail} of {judged} checks fail"),
    };
    match counts.unknown {
        0 => checks,
        unknown => format!("{checks}, {unknown} could not be determined"),
    }
}

/// The way to the audit of a run.
pub fn to_audit(run: &str, words: &str) -> Markup {
    html! { a href={ "/runs/" (escaped(run)) "/audit" } { (words) } }
}

/// Link to the differences between the audits of two runs.
pub fn to_difference(before: &str, after: &str) -> Markup {
    html! {
        a href={ "/runs/" (escaped(after)) "/audit?before=" (escaped(before)) } { "Audits" }
    }
}

fn run_and_audit(run: &str) -> Markup {
    html! { "run " a href={ "/runs/" (escaped(run)) } { (run) } }
}

fn path(of: &FarmRun, names: &BoardNames) -> Markup {
    html! {
        p.path { (board_link(&of.board, names)) ", " (run_and_audit(&of.id)) ", "
            (moment(of.started)) " UTC" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::judgement::Severity;

    fn of(pass: usize, fail: usize, unknown: usize) -> BoardAudit {
        let summary = Some(VerdictCounts { pass, fail, unknown, not_applicable: 9 });
        BoardAudit { run: "r/1".into(), started: 90_000, summary }
    }

    #[test]
    fn a_line_counts_what_was_judged_and_what_could_not_be() {
        for (audit, words) in [
            (of(35, 18, 2), "UTC: 18 of 53 checks fail, 2 could not be determined.</p>"),
            (of(1, 1, 0), "UTC: 1 of 2 checks fails.</p>"),
            (of(50, 0, 0), "UTC: none of 50 checks fails.</p>"),
            (BoardAudit { summary: None, ..of(1, 1, 1) }, " UTC.</p>"),
        ] {
            let text = line(&audit).into_string();
            assert!(text.contains(words) && text.contains("href=\"/runs/r%2F1/audit\""), "{text}");
        }
    }

    #[test]
    fn a_difference_names_each_rule_and_what_it_was() {
        let run = |id: &str| FarmRun { id: id.into(), board: format!("of-{id}"), ..FarmRun::default() };
        let names = [("of-r1", "Press 1"), ("of-r2", "Press 2")];
        let names: BoardNames =
            names.into_iter().map(|(key, name)| (key.to_owned(), name.to_owned())).collect();
        let one = |change, after| RuleDiff {
            rule: "rt-throttling",
            before: AuditVerdict::Pass,
            after,
            change,
            severity: Severity::Medium,
            before_value: "-1".into(),
            after_value: if after == AuditVerdict::Unknown { String::new() } else { "<b>".into() },
        };
        let of = |findings: Vec<RuleDiff>, verdict| AuditDiff {
            schema: rules::audit_diff::DIFF_SCHEMA,
            profile: "control-loop",
            verdict,
            findings,
        };
        let worse = of(vec![one(DiffVerdict::Worse, AuditVerdict::Fail)], DiffVerdict::Worse);
        let text = difference(&run("r1"), &run("r2"), &names, &worse);
        // Both boards go by their names.
        assert!(text.contains("<p class=\"path\"><a href=\"/b/of-r2\">Press 2</a>, "), "{text}");
        assert!(text.contains("before: <a href=\"/b/of-r1\">Press 1</a>, "), "{text}");
        assert!(
            text.contains("Worse: 1 rule fails that did not.") && text.contains("<h2>Worse</h2>"),
            "{text}"
        );
        assert!(text.contains("&lt;b&gt; (fail)") && text.contains("-1 (pass)") && !text.contains("<b>"));
        assert!(text.contains("/v1/runs/r2/audit?before=r1\"") && !text.contains("<h2>Better</h2>"));
        let lost = of(vec![one(DiffVerdict::Unknown, AuditVerdict::Unknown)], DiffVerdict::Same);
        let text = difference(&run("r1"), &run("r2"), &names, &lost);
        assert!(text.contains("<td class=\"wrap\">unknown</td>"), "{text}");
    }
}
