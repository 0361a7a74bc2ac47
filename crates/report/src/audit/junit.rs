//! Audit as JUnit XML, the format that continuous integration shows.
//!
//! One test case per rule: a failed rule is a failure, an unknown one is an error (it must not look
//! like a pass), one that does not apply is skipped. Source: the schema that Jenkins' xunit plugin
//! publishes.

use maud::{Markup, PreEscaped, html};

use crate::words::clean;
use model::keyword::Keyword;
use rules::audit::{Audit, Finding};
use rules::judgement::AuditVerdict;

pub fn render(audit: &Audit) -> String {
    let summary = &audit.summary;
    suites(html! {
        testsuite name="onbeat audit" tests=(audit.findings.len()) failures=(summary.fail)
            errors=(summary.unknown) skipped=(summary.not_applicable) {
            @for found in &audit.findings { (case("audit", found.rule, found)) }
        }
    })
}

/// Document of one suite.
pub fn suites(suite: Markup) -> String {
    let suites = html! { testsuites { (suite) } };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}\n", suites.into_string())
}

/// Test case of a finding by a command, under a name.
pub fn case(command: &str, name: &str, found: &Finding) -> Markup {
    let class = format!("onbeat.{command}.{}", found.severity.name());
    let text = printable(if found.value.is_empty() { &found.reason } else { &found.value });
    html! {
        testcase name=(name) classname=(class) {
            @match found.verdict {
                AuditVerdict::Pass => {}
                AuditVerdict::Fail => failure type=(found.severity.name()) message=(text) { (detail(found)) }
                AuditVerdict::Unknown => error type="unknown" message=(text) {}
                AuditVerdict::NotApplicable => skipped message=(text) {}
            }
        }
    }
}

fn detail(found: &Finding) -> PreEscaped<String> {
    let lines = [("should be", &found.wanted), ("why", &found.reason), ("to do", &found.fix)];
    let lines: Vec<String> =
        lines.iter().map(|(name, text)| format!("{name}: {}", printable(text))).collect();
    html! { (lines.join("\n")) }
}

/// XML 1.0 cannot represent most control characters, nor U+FFFE and U+FFFF.
fn printable(text: &str) -> String {
    clean(text).chars().map(|c| if matches!(c, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { c }).collect()
}
