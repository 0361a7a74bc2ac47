//! Check as a page: the answer, the failed checks, worst first, the unknown ones, and the rest.

use maud::{Markup, html};

use super::groups::{FindingGroup, answer, conditions, groups, lines, more, rule, title};
use crate::audit::page::wanted;
use crate::html::{document, next, page_of, scroll};
use crate::prose::prose;
use crate::words::clean;
use model::error::{Result, json};
use model::keyword::Keyword;
use rules::checks::findings::ProgramCheck;
use rules::judgement::AuditVerdict;

/// Limit of failed checks on the first screen; the others are below.
const NAMED: usize = 8;

/// Page of the check of a program.
pub fn html(check: &ProgramCheck) -> Result<String> {
    let json = without_addresses(check)?;
    let heading = format!("Check for real time: {}", clean(&check.process.comm));
    let failing = groups(check, AuditVerdict::Fail);
    Ok(page_of(
        &heading,
        html! {
            p class="lead" { strong { (answer(check)) } }
            ol class="named" {
                @for found in failing.iter().take(NAMED) {
                    @let severity = found.finding.severity.name();
                    li {
                        span class={ "badge " (severity) } { (severity) } " " (title(found.finding.rule))
                        span class="muted" { " " (found.threads) }
                    }
                }
            }
            @if failing.len() > NAMED {
                p class="muted" { "And " (failing.len() - NAMED) " more below." }
            }
            @if !failing.is_empty() {
                (next(&["Start with the first below, then repeat the check: `onbeat check` checks a running \
                         program, `onbeat hunt -- PROGRAM` shows its late cycles."
                    .to_owned()]))
            }
            p { (conditions(check)) }
            @for remark in &check.remarks { p class="muted" { (prose(remark)) } }
            h2 { "Failed checks" }
            @if failing.is_empty() {
                p { "No check failed." @if check.summary.unknown > 0 { " Unknown checks might." } }
            }
            @for found in &failing { (failed(found)) }
            (list(&groups(check, AuditVerdict::Unknown), "Unknown"))
            (list(&groups(check, AuditVerdict::Pass), "Passed"))
            (list(&groups(check, AuditVerdict::NotApplicable), "Does not apply"))
            footer class="muted" { p {
                "Written by onbeat " (env!("CARGO_PKG_VERSION")) ". "
                code { "onbeat rules ID" } " documents a check."
            } }
            (document(&json))
        },
    ))
}

fn failed(found: &FindingGroup) -> Markup {
    let finding = found.finding;
    let severity = finding.severity.name();
    html! {
        section class={ "finding " (severity) } {
            h3 {
                span class={ "badge " (severity) } { (severity) } " " (finding.rule)
                span class="muted" { " " (title(finding.rule)) }
            }
            dl {
                (field("found", &finding.value))
                (wanted(&finding.wanted))
                (field("where", &found.threads))
                (field("why", &finding.reason))
                (field("to change", &finding.fix))
                (field("also", &more(found)))
                (field("source", source(finding.rule)))
            }
        }
    }
}

fn field(name: &str, text: &str) -> Markup {
    html! { @if !text.is_empty() { div { dt { (name) } dd { (prose(text)) } } } }
}

/// Title of the source of a check: a page holds no address.
fn source(id: &str) -> &'static str {
    rule(id).and_then(|rule| rule.sources.first()).map_or("", |source| source.title)
}

fn list(found: &[FindingGroup], heading: &str) -> Markup {
    html! {
        @if !found.is_empty() {
            details open[heading.starts_with("What")] {
                summary { (heading) " (" (found.len()) ")" }
                (scroll(heading, html! { table { tbody { @for (rules, text) in lines(found) {
                    tr { th class="left" { (rules.join(", ")) } td class="wrap" { (prose(&text)) } }
                } } } }))
            }
        }
    }
}

fn without_addresses(check: &ProgramCheck) -> Result<String> {
    let mut check = check.clone();
    for found in &mut check.findings {
        found.finding.source = source(found.finding.rule);
    }
    json(&check)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rules::checks::ALL;
    use rules::checks::fixture::ExampleProgram;

    #[test]
    fn no_page_holds_an_address_or_a_script() {
        for rule in ALL {
            let text = html(&ExampleProgram::of(rule.examples.fires).check()).unwrap();
            assert!(!text.contains("://") && !text.contains("href=\"http"), "{}", rule.id);
            assert_eq!(text.matches("<script").count(), 1, "{}", rule.id);
            assert!(text.contains(&format!("</span> {}", rule.id)), "{}", rule.id);
        }
    }
}
