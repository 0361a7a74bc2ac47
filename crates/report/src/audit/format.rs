//! Findings of an audit in the formats of editors and continuous integration.
//!
//! Sources: GitHub's documentation, "Workflow commands" (severities, and what is escaped); OASIS,
//! Static Analysis Results Interchange Format 2.1.0 (3.27.9 kind, 3.27.10 level).

use serde_json::{Value, json};

use super::junit;
use super::order::worst_first;
use crate::words::clean;
use model::error::{Result, json_pretty};
use model::keyword::Keyword;
use model::keywords;
use rules::audit::{Audit, Finding};
use rules::judgement::{AuditVerdict, Severity};
use rules::knob::Knob;
use rules::knobs;

keywords! {
    /// Format of the findings.
    pub enum AuditFormat {
        /// One line per rule that fails or is unknown: `RULE: SEVERITY: VALUE; REMEDY`.
        Concise = "concise",
        /// Commands of a GitHub workflow: each failed or unknown rule is an annotation.
        Github = "github",
        /// SARIF 2.1.0, for code scanning and editors: every rule that applies.
        Sarif = "sarif",
        /// JUnit XML: one test case per rule.
        Junit = "junit",
    }
}

/// Renders the findings in a format.
///
/// # Errors
/// The JSON cannot be written.
pub fn render(audit: &Audit, format: AuditFormat) -> Result<String> {
    match format {
        AuditFormat::Concise => Ok(open(audit).map(concise).collect()),
        AuditFormat::Github => Ok(open(audit).map(annotation).collect()),
        AuditFormat::Sarif => json_pretty(&sarif(audit)),
        AuditFormat::Junit => Ok(junit::render(audit)),
    }
}

/// Findings that fail, worst first, and then those that are unknown.
fn open(audit: &Audit) -> impl Iterator<Item = &Finding> {
    let of = |verdict| worst_first(audit, verdict).into_iter();
    of(AuditVerdict::Fail).chain(of(AuditVerdict::Unknown))
}

/// Value and remedy, or the reason that the value is unknown.
fn message(found: &Finding) -> String {
    let parts = match found.verdict {
        AuditVerdict::Fail => [&found.value, &found.fix],
        _ => [&found.value, &found.reason],
    };
    let parts: Vec<String> =
        parts.into_iter().filter(|part| !part.is_empty()).map(|part| clean(part)).collect();
    parts.join("; ")
}

fn concise(found: &Finding) -> String {
    let word = match found.verdict {
        AuditVerdict::Unknown => "unknown",
        _ => found.severity.name(),
    };
    format!("{}: {word}: {}\n", found.rule, message(found))
}

fn annotation(found: &Finding) -> String {
    let command = match (found.verdict, found.severity) {
        (AuditVerdict::Fail, Severity::Fatal | Severity::High) => "error",
        (AuditVerdict::Fail, Severity::Low | Severity::Info) => "notice",
        _ => "warning",
    };
    let word = concise(found);
    let data = word.trim_end().replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    // The title needs no escape: names of rules have no comma, colon or line end.
    format!("::{command} title=onbeat {}::{data}\n", found.rule)
}

fn sarif(audit: &Audit) -> Value {
    let applies = |found: &&Finding| found.verdict != AuditVerdict::NotApplicable;
    let results: Vec<Value> = audit.findings.iter().filter(applies).map(result).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "onbeat",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": knobs::ALL.iter().map(|knob| rule(knob)).collect::<Vec<_>>(),
            } },
            "results": results,
        }],
    })
}

fn rule(knob: &Knob) -> Value {
    json!({
        "id": knob.id,
        "shortDescription": { "text": knob.title },
        "fullDescription": { "text": knob.description },
        "help": { "text": format!("{}\n\n{}", knob.rationale, knob.side_effects) },
        "defaultConfiguration": { "level": level(knob.severity) },
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Fatal | Severity::High => "error",
        Severity::Medium => "warning",
        Severity::Low | Severity::Info => "note",
    }
}

/// Location of a rule that reads no file of a fixed name: the kernel.
const KERNEL: &str = "/proc/sys/kernel/osrelease";

/// Result of a finding, at the first file that the rule reads: code scanning needs a location.
fn result(found: &Finding) -> Value {
    let (kind, level) = match found.verdict {
        AuditVerdict::Fail => ("fail", level(found.severity)),
        AuditVerdict::Unknown => ("open", "none"),
        AuditVerdict::Pass => ("pass", "none"),
        AuditVerdict::NotApplicable => ("notApplicable", "none"),
    };
    let knob = knobs::ALL.iter().find(|knob| knob.id == found.rule);
    let mut texts = knob.into_iter().flat_map(|knob| knob.facts.iter().chain(knob.reads));
    // Capitals stand for a variable part: PID, RELEASE.
    let is_file = |text: &&&str| {
        text.starts_with('/') && !text.contains(|c: char| c.is_ascii_uppercase() || "* ".contains(c))
    };
    let place = texts.find(is_file).copied().unwrap_or(KERNEL);
    let text = if message(found).is_empty() { found.wanted.clone() } else { message(found) };
    json!({
        "ruleId": found.rule,
        "kind": kind,
        "level": level,
        "message": { "text": text },
        "locations": [{ "physicalLocation": { "artifactLocation": { "uri": format!("file://{place}") } } }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::audit::audit;
    use rules::fixture::Machine;

    fn judged() -> Audit {
        let mut machine = Machine::base();
        knobs::ALL.iter().for_each(|knob| machine.edit(knob.examples.fires));
        let (survey, intent) = machine.survey();
        audit(&survey, &intent)
    }

    fn of(format: AuditFormat) -> String {
        render(&judged(), format).unwrap()
    }

    #[test]
    fn a_line_names_the_rule_the_severity_and_the_remedy() {
        let (text, audit) = (of(AuditFormat::Concise), judged());
        let has = |line: &str, found: &Finding| {
            line.starts_with(&format!("{}: {}: ", found.rule, found.severity.name()))
                && line.contains(&found.fix)
        };
        let (failed, unknown): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| !line.contains(": unknown: "));
        let worst = worst_first(&audit, AuditVerdict::Fail);
        assert!(
            worst.len() > 20 && failed.iter().zip(&worst).all(|(line, found)| has(line, found)),
            "{text}"
        );
        assert_eq!((failed.len(), unknown.len()), (audit.summary.fail, audit.summary.unknown));
    }

    #[test]
    fn an_annotation_keeps_to_one_line() {
        let text = of(AuditFormat::Github);
        let is_command = |line: &str| {
            let (command, data) = line[2..].split_once("::").unwrap();
            ["error ", "warning ", "notice "].iter().any(|start| command.starts_with(start))
                && !data.is_empty()
        };
        assert!(text.lines().all(|line| line.starts_with("::") && is_command(line)), "{text}");
        let mut found = judged().findings[0].clone();
        found.verdict = AuditVerdict::Unknown;
        (found.value, found.reason) = ("50 %".into(), "a".into());
        assert!(annotation(&found).ends_with(": unknown: 50 %25; a\n"), "{}", annotation(&found));
    }

    #[test]
    fn sarif_has_a_result_for_each_rule_that_applies() {
        let document: Value = serde_json::from_str(&of(AuditFormat::Sarif)).unwrap();
        let run = &document["runs"][0];
        let rules: Vec<&str> = run["tool"]["driver"]["rules"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|r| r["id"].as_str())
            .collect();
        let results = run["results"].as_array().unwrap();
        assert!(!results.is_empty() && results.len() < rules.len());
        for result in results {
            assert!(rules.contains(&result["ruleId"].as_str().unwrap()));
            assert_eq!(result["kind"] == "fail", result["level"] != "none", "{result}");
            assert!(!result["message"]["text"].as_str().unwrap().is_empty(), "{result}");
            let place = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
            let place = place.as_str().unwrap();
            let has_part = place.contains("PID") || place.contains("RELEASE") || place.contains('*');
            assert!(place.starts_with("file:///") && !has_part, "{result}");
        }
    }
}
