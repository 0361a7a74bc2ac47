//! Answer of `onbeat audit` as the last lines on the terminal: the counts, the first rules to fix,
//! the unknown ones, the next commands.

use super::gains::{HuntGains, failing};
use super::order::worst_first;
use super::text::count;
use crate::last_lines::LastLines;
use crate::palette::{BOLD, GREEN, Palette, RED, YELLOW};
use crate::words::several;
use model::keyword::Keyword;
use rules::audit::Audit;
use rules::intent::CpuSelection;
use rules::judgement::{AuditVerdict, Severity};

/// Limit of rules that are named.
const NAMED: usize = 4;

/// Answer as text of up to this number of columns; rules with the largest gain come first if a hunt
/// gives the gains.
pub fn render(audit: &Audit, gains: Option<&HuntGains>, width: usize, color: bool) -> String {
    let failed = failing(audit, gains);
    let style = match failed.iter().map(|found| found.severity).max() {
        None => GREEN,
        Some(worst) if worst >= Severity::High => RED,
        Some(worst) if worst >= Severity::Medium => YELLOW,
        Some(_) => BOLD,
    };
    let mut answer = LastLines::default();
    answer.styled("answer", count(audit), style);
    let first: Vec<String> = failed
        .iter()
        .take(NAMED)
        .map(|found| format!("{} ({})", found.rule, found.severity.name()))
        .collect();
    answer.row("first", first.join(", "));
    if let Some(sentence) = gains.and_then(|gains| gains.beyond_settings(audit)) {
        answer.row("beyond", sentence);
    }
    let unknown = worst_first(audit, AuditVerdict::Unknown);
    if !unknown.is_empty() {
        let rules = several(unknown.len() as u64, "rule", "rules");
        // Root does not help if a file system is not mounted.
        let refused = unknown.iter().any(|found| {
            found.reason.contains("permission denied") || found.reason.contains("not permitted")
        });
        let root = if refused { "; as root, less is unknown" } else { "" };
        answer.row("fair", format!("{rules} could not be judged{root}"));
    }
    answer.row("next", next(audit, failed.first().map(|found| found.rule)));
    answer.render(width, Palette(color))
}

fn next(audit: &Audit, first: Option<&str>) -> String {
    if audit.texts.is_some() {
        return match first {
            Some(first) => {
                format!("onbeat rules {first} (details); --copy (lines to set); -v (the rest)")
            }
            None => "onbeat audit on the running kernel (for the other rules); -v (passed rules)".into(),
        };
    }
    let Some(first) = first else {
        return "onbeat measure -D 60s (latency of this machine); -v (passed rules)".into();
    };
    let cpus = match audit.chosen {
        CpuSelection::Asked if !audit.cpus.is_empty() => format!(" --cpus {}", audit.cpus),
        _ => String::new(),
    };
    format!("onbeat rules {first} (details); onbeat tune plan{cpus} (run-time changes); -v (the rest)")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::audit::{AuditedMachine, SCHEMA, VerdictCounts};

    #[test]
    fn an_audit_without_a_failure_leads_on_to_measuring() {
        let audit = Audit {
            schema: SCHEMA,
            profile: "control-loop",
            cpus: "2-3".into(),
            chosen: CpuSelection::Asked,
            host: AuditedMachine {
                release: String::new(),
                machine: String::new(),
                preempt: "rt",
                virtualization: String::new(),
                online: String::new(),
            },
            texts: None,
            findings: Vec::new(),
            summary: VerdictCounts { pass: 7, ..VerdictCounts::default() },
        };
        let text = render(&audit, None, 80, false);
        assert!(text.contains("answer  0 rules failed") && text.contains("onbeat measure"), "{text}");
        assert!(next(&audit, Some("swap")).contains("tune plan --cpus 2-3"));
    }
}
