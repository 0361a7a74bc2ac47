//! An audit for people: what fails, worst first, then what could not be told, then the count.

use std::fmt::Write;

use super::words::{clean, filled, several, wrapped};
use crate::rules::audit::{Audit, Finding};
use crate::rules::intent::Chosen;
use crate::rules::judgement::{Severity, Verdict};

const BOLD: &str = "\u{1b}[1m";
const RED: &str = "\u{1b}[1;31m";
const YELLOW: &str = "\u{1b}[33m";
const PLAIN: &str = "\u{1b}[0m";

/// The audit as JSON, one document with a newline at its end.
pub fn json(audit: &Audit) -> Vec<u8> {
    let mut bytes = serde_json::to_vec_pretty(audit).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// The findings of a verdict, worst first, else in the rules' order.
pub fn worst_first(audit: &Audit, verdict: Verdict) -> Vec<&Finding> {
    let mut found: Vec<&Finding> = audit.findings.iter().filter(|found| found.verdict == verdict).collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.severity));
    found
}

/// The audit as text of at most so many columns, with ANSI colours if asked for; `verbose` adds what passes and
/// what does not apply.
pub fn render(audit: &Audit, width: usize, color: bool, verbose: bool) -> String {
    let dye = |code: &str, text: &str| if color { format!("{code}{text}{PLAIN}") } else { text.to_owned() };
    let mut page = String::new();
    wrapped(&mut page, &conditions(audit), width);
    for found in worst_first(audit, Verdict::Fail) {
        let code = if found.severity >= Severity::High { RED } else { YELLOW };
        let _ = write!(
            page,
            "\n{}  {}\n",
            dye(code, &format!("{:<6}", found.severity.name())),
            dye(BOLD, found.rule)
        );
        fields(&mut page, found, width);
    }
    let unknown = worst_first(audit, Verdict::Unknown);
    if !unknown.is_empty() {
        let _ = writeln!(page, "\n{}", dye(BOLD, "unknown"));
        for found in unknown {
            wrapped(
                &mut page,
                &format!("  {} ({}): {}", found.rule, found.severity.name(), clean(&found.why)),
                width,
            );
        }
    }
    if verbose {
        rest(&mut page, audit, Verdict::Pass, &dye(BOLD, "as it should be"), width);
        rest(&mut page, audit, Verdict::NotApplicable, &dye(BOLD, "does not apply"), width);
    }
    let _ = writeln!(page, "\n{}", dye(BOLD, &count(audit)));
    page
}

/// What was judged, and for what.
pub fn conditions(audit: &Audit) -> String {
    let host = &audit.host;
    let or = |text: &str, otherwise: &str| if text.is_empty() { otherwise.to_owned() } else { clean(text) };
    let machine = match host.virtualization.as_str() {
        "" => "virtual or not is unknown".to_owned(),
        "none" => "on metal".to_owned(),
        name => format!("in a virtual machine ({})", clean(name)),
    };
    let chosen = match audit.chosen {
        Chosen::Asked => "as asked",
        Chosen::Isolated => "the isolated ones",
        Chosen::All => "all that run",
        Chosen::Unknown => "all that run, for which are isolated is unknown",
    };
    format!(
        "Linux {} {}, preemption {}, {machine}; judged as {} for CPU {} ({chosen}).",
        or(&host.release, "of unknown release"),
        or(&host.machine, "of unknown architecture"),
        host.preempt,
        audit.profile,
        or(&audit.cpus, "unknown"),
    )
}

fn fields(page: &mut String, found: &Finding, width: usize) {
    let mut field = |name: &str, text: &str| {
        if !text.is_empty() {
            filled(page, &format!("  {name:<10} "), &clean(text), 13, width);
        }
    };
    field("is", &found.value);
    field("should be", &found.wanted);
    field("why", &found.why);
    field("contested", found.contested);
    field("to do", &found.fix);
}

fn rest(page: &mut String, audit: &Audit, verdict: Verdict, heading: &str, width: usize) {
    let found = worst_first(audit, verdict);
    if found.is_empty() {
        return;
    }
    let _ = writeln!(page, "\n{heading}");
    for found in found {
        let said = if found.value.is_empty() { &found.why } else { &found.value };
        wrapped(page, &format!("  {}: {}", found.rule, clean(said)), width);
    }
}

/// The count of each verdict as a sentence.
pub fn count(audit: &Audit) -> String {
    let summary = &audit.summary;
    format!(
        "{} failed, {} unknown, {} passed, {} not applicable.",
        several(summary.fail as u64, "rule", "rules"),
        summary.unknown,
        summary.pass,
        summary.not_applicable
    )
}
