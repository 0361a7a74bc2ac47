//! An audit as a page: the map of the machine, the failed rules, worst first, the unknown ones, and
//! the rest.

use maud::{Markup, html};

use super::text::{conditions, count, worst_first};
use crate::html::{document, page_of};
use crate::html::{figure, scroll};
use crate::map::Map;
use crate::map::{svg as map_svg, text as map_text};
use crate::plot::theme;
use crate::prose::prose;
use crate::rule_pages::sheet;
use crate::words::clean;
use model::error::{Result, json};

use model::keyword::Keyword;
use rules::audit::{Audit, Finding};
use rules::judgement::{AuditVerdict, Severity};

/// The audit of a machine, and its map, as one page.
pub fn html(audit: &Audit, map: &Map) -> Result<String> {
    let json = without_addresses(audit)?;
    let release = clean(&audit.host.release);
    let heading = match release.as_str() {
        "" => "Audit for real time".to_owned(),
        release => format!("Audit for real time: Linux {release}"),
    };
    Ok(page_of(
        &heading,
        html! {
            p class="lead" { (conditions(audit)) }
            p { strong { (count(audit)) } }
            h2 { "The machine" }
            (machine(map))
            h2 { "What stands in the way" }
            @let failing = worst_first(audit, AuditVerdict::Fail);
            @if failing.is_empty() { p { "No rule failed." (unless_unknown(audit)) } }
            @for found in failing { (failed(found)) }
            (unknown(audit))
            (rest(audit, AuditVerdict::Pass, "As it should be"))
            (rest(audit, AuditVerdict::NotApplicable, "Does not apply"))
            footer class="muted" { p {
                "Written by onbeat " (env!("CARGO_PKG_VERSION")) ". "
                code { "onbeat rules ID" } " tells all about a rule: what it reads, what a change costs, where it is written."
            } }
            (document(&json))
        },
    ))
}

fn unless_unknown(audit: &Audit) -> &'static str {
    if audit.summary.unknown > 0 { " What is unknown might." } else { "" }
}

/// The picture, and its words for screen readers.
fn machine(map: &Map) -> Markup {
    html! {
        @if map.cpus.is_empty() { p { "Which CPUs there are is not known, so there is no picture of them." } }
        (figure("A figure in a cell counts the interrupts that land there now, or the threads that may run there.", |size| {
            map_svg::draw(map, size, &theme::PAGE)
        }))
        @if !map.unknown.is_empty() {
            p { "Not on the map:" }
            ul { @for what in &map.unknown { li { (prose(what)) } } }
        }
        details {
            summary { "The same in words" }
            (scroll("The machine in words", html! { pre { (map_text::render(map, 110, false)) } }))
        }
    }
}

fn failed(found: &Finding) -> Markup {
    html! {
        section class={ "finding " (found.severity.name()) } {
            h3 { (badge(found.severity)) " " (found.rule) @if let Some(title) = title(found) { span class="muted" { " " (title) } } }
            p class="change" { (prose(&found.value)) " " span class="muted" { "should be" } " " strong { (prose(&found.wanted)) } }
            dl {
                (field("why", &found.reason))
                (field("contested", found.disputed))
                (field("to do", &found.fix))
                (field("a change lasts", sheet::persistence(found.persistence)))
                (field("source", source(found)))
            }
        }
    }
}

fn badge(severity: Severity) -> Markup {
    html! { span class={ "badge " (severity.name()) } { (severity.name()) } }
}

fn field(name: &str, text: &str) -> Markup {
    html! { @if !text.is_empty() { div { dt { (name) } dd { (prose(text)) } } } }
}

fn title(found: &Finding) -> Option<&'static str> {
    // Some are the id in words.
    rules::find(found.rule).map(|knob| knob.title).filter(|title| title.replace(' ', "-") != found.rule)
}

/// Where it is written, by name: a page holds no address.
fn source(found: &Finding) -> &'static str {
    let source = rules::find(found.rule).and_then(|knob| knob.sources.first());
    source.map_or("", |source| source.title)
}

fn unknown(audit: &Audit) -> Markup {
    let found = worst_first(audit, AuditVerdict::Unknown);
    html! {
        @if !found.is_empty() {
            h2 { "What could not be told" }
            p class="muted" { "Each of these might fail. As root, less is unknown." }
            (scroll("What could not be told", html! { table {
                thead { tr { th class="left" { "rule" } th class="left" { "if it failed" } th class="left" { "why it is unknown" } } }
                tbody { @for found in found { tr {
                    th class="left" { (found.rule) } td class="left" { (badge(found.severity)) } td class="wrap" { (prose(&found.reason)) }
                } } }
            } }))
        }
    }
}

fn rest(audit: &Audit, verdict: AuditVerdict, heading: &str) -> Markup {
    let found = worst_first(audit, verdict);
    html! {
        @if !found.is_empty() {
            details {
                summary { (heading) " (" (found.len()) ")" }
                (scroll(heading, html! { table { tbody { @for found in found {
                    @let said = if found.value.is_empty() { &found.reason } else { &found.value };
                    tr { th class="left" { (found.rule) } td class="wrap" { (prose(said)) } }
                } } } }))
            }
        }
    }
}

/// The audit as JSON; its sources are named by their titles.
fn without_addresses(audit: &Audit) -> Result<String> {
    let mut audit = audit.clone();
    for found in &mut audit.findings {
        found.source = source(found);
    }
    json(&audit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::tests::{four, machine, map_of, thread};
    use rules::audit::audit;
    use rules::fixture::Machine;
    use rules::knobs::ALL;

    fn page(machine: &Machine) -> String {
        let (survey, intent) = machine.survey();
        html(&audit(&survey, &intent), &map_of(machine)).unwrap()
    }

    #[test]
    fn a_page_has_the_map_and_the_findings_worst_first() {
        let mut machine = Machine::base();
        ALL.iter().for_each(|knob| machine.edit(knob.examples.fires));
        let (survey, intent) = machine.survey();
        let audit = audit(&survey, &intent);
        let text = html(&audit, &map_of(&machine)).unwrap();
        assert!(text.contains("aria-label=\"What each CPU does: CPU 0-1 not set apart"));
        let places: Vec<usize> = worst_first(&audit, AuditVerdict::Fail)
            .iter()
            .map(|found| text.find(&format!("</span> {}", found.rule)).unwrap())
            .collect();
        assert!(places.len() > 1 && places.is_sorted(), "{places:?}");
        assert!(text.contains(ALL[0].sources[0].title));
    }

    #[test]
    fn no_page_holds_an_address_or_a_script() {
        for knob in ALL {
            for edits in [knob.examples.fires, knob.examples.silent, knob.examples.unknown] {
                let mut machine = Machine::base();
                machine.edit(edits);
                let text = page(&machine);
                assert!(
                    !text.contains("://") && !text.contains("url(") && !text.contains("href=\"http"),
                    "{}",
                    knob.id
                );
                assert_eq!(text.matches("<script").count(), 1, "{}", knob.id);
            }
        }
    }

    #[test]
    fn text_from_the_machine_is_escaped() {
        let evil = "</script><b x=\"'&";
        let mut hostile = four();
        hostile.edit(&format!("/proc/sys/kernel/osrelease: {evil}\n/sys/kernel/irq/102/actions: {evil}\n"));
        hostile.edit(&thread(9, evil, 0, 70, "2"));
        hostile.edit(&format!("/sys/devices/virtual/workqueue/cpumask: {evil}"));
        let text = page(&hostile);
        assert!(
            text.contains("&lt;b x=") && !text.contains("<b x=") && text.matches("</script>").count() == 1
        );
    }

    #[test]
    fn a_large_or_empty_machine_is_a_page_too() {
        assert!(page(&machine(256, "--cpus 5-9")).len() < 300_000);
        let nothing = page(&Machine::of(std::collections::BTreeMap::new()));
        assert!(nothing.contains("Which CPUs there are is not known") && !nothing.contains("<svg"));
    }
}
