//! Audit as a page: the answer and the blocks to copy, then each failed rule, the unknown ones, the
//! map of the machine, and the rest.

use maud::{Markup, html};

use super::gains::{HuntGains, failing};
use super::order::worst_first;
use super::text::{conditions, count};
use crate::html::{PageParts, document, figure, next, scroll};
use crate::map::Map;
use crate::map::{svg as map_svg, text as map_text};
use crate::plot::theme;
use crate::prose::prose;
use crate::rule_pages::sheet;
use crate::script::PageScript;
use crate::words::{clean, several};
use model::error::{Result, json};
use model::plan::CopyBlock;

use model::keyword::Keyword;
use rules::audit::{Audit, Finding};
use rules::judgement::{AuditVerdict, Severity};

/// Limit of failed rules on the first screen; the others are below.
const NAMED: usize = 8;

/// Additions to the findings.
#[derive(Clone, Copy, Debug, Default)]
pub struct AuditAids<'a> {
    /// Texts to copy, one block for each place.
    pub blocks: &'a [CopyBlock],
    /// Gain of each setting according to a hunt.
    pub gains: Option<&'a HuntGains>,
}

/// Page of the audit of a machine, with its map.
pub fn html(audit: &Audit, map: &Map, aids: &AuditAids) -> Result<String> {
    parts(audit, map, aids).map(PageParts::page)
}

/// Content of that page.
pub fn parts(audit: &Audit, map: &Map, aids: &AuditAids) -> Result<PageParts> {
    let json = without_addresses(audit)?;
    let release = clean(&audit.host.release);
    let heading = match release.as_str() {
        "" => "Audit for real time".to_owned(),
        release => format!("Audit for real time: Linux {release}"),
    };
    let failing = failing(audit, aids.gains);
    Ok(PageParts {
        heading,
        body: html! {
            (answer(audit, &failing, aids))
            (blocks(aids.blocks))
            h2 { "Failed rules" }
            @if failing.is_empty() { p { "No rule failed." (unless_unknown(audit)) } }
            @for found in failing { (failed(found, aids.gains)) }
            (unknown(audit))
            @if audit.texts.is_none() {
                h2 { "The machine" }
                (machine(map))
            }
            (rest(audit, AuditVerdict::Pass, "Passed"))
            (rest(audit, AuditVerdict::NotApplicable, "Does not apply"))
            footer class="muted" { p {
                "Written by onbeat " (env!("CARGO_PKG_VERSION")) ". "
                code { "onbeat rules ID" } " documents a rule: the files read, the cost of a change, the sources."
            } }
            (document(&json))
        },
        script: Some(PageScript::Copy),
    })
}

/// First screen: the number of failed settings, their names, and the next steps.
fn answer(audit: &Audit, failing: &[&Finding], aids: &AuditAids) -> Markup {
    let grave = failing.iter().filter(|found| found.severity >= Severity::High).count();
    let lead = match (failing.len() as u64, grave as u64) {
        (0, _) => format!("No rule failed.{}", unless_unknown(audit)),
        (all, 0) => {
            format!("{}, none of them severe.", several(all, "failed rule", "failed rules"))
        }
        (all, grave) => {
            format!("{}, {grave} of them severe.", several(all, "failed rule", "failed rules"))
        }
    };
    let more = failing.len().saturating_sub(NAMED);
    html! {
        p class="lead" { strong { (lead) } }
        @if let Some(gains) = aids.gains { p { (gains.sentence(audit)) } }
        ol class="named" {
            @for found in failing.iter().take(NAMED) {
                li {
                    (badge(found.severity)) " "
                    @let name = rules::find(found.rule).map_or(found.rule, |knob| knob.title);
                    a href={ "#" (found.rule) } { (name) }
                    @if let Some(gain) = aids.gains.and_then(|gains| gains.badge(found.rule)) {
                        " " strong { (gain) }
                    }
                    span class="muted brief" {
                        " " (prose(&found.value)) ", should be " (prose(&found.wanted))
                    }
                }
            }
        }
        @if more > 0 {
            p class="muted" { "And " (several(more as u64, "less severe one", "less severe ones")) " below." }
        }
        (next(&steps(audit, failing, aids)))
        p class="muted" { (conditions(audit)) " " (count(audit)) }
    }
}

fn steps(audit: &Audit, failing: &[&Finding], aids: &AuditAids) -> Vec<String> {
    let mut steps = Vec::new();
    if audit.texts.is_some() {
        steps.extend((!aids.blocks.is_empty()).then(|| "Copy the blocks below to their places.".to_owned()));
        steps.push("On the running kernel, `onbeat audit` checks the rest.".into());
        return steps;
    }
    if failing.is_empty() {
        return vec![
            "`onbeat measure` shows the resulting latency, `onbeat hunt` the remaining culprits.".into(),
        ];
    }
    if !aids.blocks.is_empty() {
        let copy = "Copy the blocks below to their places, or use `onbeat tune plan` to see the changes that \
                    can be made and undone now.";
        steps.push(copy.into());
    }
    if aids.gains.is_none() {
        steps.push(
            "To rank them for this machine, run `onbeat hunt`; its last lines give the matching `onbeat \
             audit --hunt`."
                .into(),
        );
    }
    steps
}

/// Blocks to copy, folded.
fn blocks(blocks: &[CopyBlock]) -> Markup {
    html! {
        @if !blocks.is_empty() {
            h2 { "Lines to copy" }
            p class="muted" {
                "All failed rules that such a file can fix; nothing on the machine was changed. "
                "Read it first; for the cost of a change see " code { "onbeat rules ID" } "."
            }
            @for block in blocks {
                details class="block" {
                    summary { strong { (block.place) } " " (several(settings(&block.text), "line", "lines")) }
                    p { (block.how) }
                    pre class="copy" tabindex="0" { (block.text) }
                }
            }
        }
    }
}

/// Number of lines that set something.
fn settings(text: &str) -> u64 {
    let sets = |line: &&str| !line.is_empty() && (!line.starts_with('#') || line.ends_with(" is not set"));
    text.lines().filter(sets).count() as u64
}

fn unless_unknown(audit: &Audit) -> &'static str {
    if audit.summary.unknown > 0 { " Unknown rules might." } else { "" }
}

/// Picture, and its words for screen readers.
fn machine(map: &Map) -> Markup {
    html! {
        @if map.cpus.is_empty() { p { "The CPUs are not known, so there is no picture of them." } }
        (figure("A number in a cell counts the interrupts that arrive there now, or the threads that may run there.", |size| {
            map_svg::draw(map, size, &theme::PAGE)
        }))
        @if !map.unknown.is_empty() {
            p { "Not on the map:" }
            ul { @for what in &map.unknown { li { (prose(what)) } } }
        }
        details {
            summary { "As text" }
            (scroll("The machine as text", html! { pre { (map_text::render(map, 110, false)) } }))
        }
    }
}

fn failed(found: &Finding, gains: Option<&HuntGains>) -> Markup {
    let gain = gains.and_then(|gains| gains.of_rule(found.rule)).unwrap_or_default();
    html! {
        section class={ "finding " (found.severity.name()) } id=(found.rule) {
            h3 { (badge(found.severity)) " " (found.rule) @if let Some(title) = title(found) { span class="muted" { " " (title) } } }
            dl {
                (field("is", &found.value))
                (wanted(&found.wanted))
                (field("gain", &gain))
                (field("why", &found.reason))
                (field("contested", found.disputed))
                (field("to do", &found.fix))
                (field("a change lasts", sheet::persistence(found.persistence)))
                (sources(found))
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

/// Wanted state of a setting or a program, as an item of its list.
pub fn wanted(text: &str) -> Markup {
    html! { div { dt { "should be" } dd { strong { (prose(text)) } } } }
}

fn title(found: &Finding) -> Option<&'static str> {
    // Some titles are the id in words.
    rules::find(found.rule).map(|knob| knob.title).filter(|title| title.replace(' ', "-") != found.rule)
}

/// Sources of a rule: title and address, without the scheme that would make it a link, which a page
/// must not hold; its script turns them into links.
fn sources(found: &Finding) -> Markup {
    let sources = rules::find(found.rule).map_or(&[][..], |knob| knob.sources);
    html! {
        @if !sources.is_empty() {
            div {
                dt { (if sources.len() == 1 { "source" } else { "sources" }) }
                dd { @for (at, source) in sources.iter().enumerate() {
                    @if at > 0 { br; }
                    @let place = source.url.trim_start_matches("https://");
                    (source.title) " " span class="source muted" { (place) }
                } }
            }
        }
    }
}

fn source(found: &Finding) -> &'static str {
    let source = rules::find(found.rule).and_then(|knob| knob.sources.first());
    source.map_or("", |source| source.title)
}

fn unknown(audit: &Audit) -> Markup {
    let found = worst_first(audit, AuditVerdict::Unknown);
    html! {
        @if !found.is_empty() {
            h2 { "Unknown" }
            p class="muted" { "Each of these might fail. As root, less is unknown." }
            (scroll("Unknown", html! { table {
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
                    @let text = if found.value.is_empty() { &found.reason } else { &found.value };
                    tr { th class="left" { (found.rule) } td class="wrap" { (prose(text)) } }
                } } } }))
            }
        }
    }
}

/// Audit as JSON; its sources are named by their titles.
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
        html(&audit(&survey, &intent), &map_of(machine), &AuditAids::default()).unwrap()
    }

    #[test]
    fn a_page_has_the_map_and_the_findings_worst_first() {
        let mut machine = Machine::base();
        ALL.iter().for_each(|knob| machine.edit(knob.examples.fires));
        let (survey, intent) = machine.survey();
        let audit = audit(&survey, &intent);
        let block = CopyBlock { place: "/etc/x".into(), how: "Read.".into(), text: "# a\n<b> = 1\n".into() };
        let aids = AuditAids { blocks: std::slice::from_ref(&block), gains: None };
        let text = html(&audit, &map_of(&machine), &aids).unwrap();
        assert!(text.contains("/etc/x</strong> 1 line") && text.contains("&lt;b&gt; = 1"));
        assert!(text.find("Lines to copy") < text.find("What each CPU does"), "the answer is before the map");
        assert!(text.contains("aria-label=\"What each CPU does: CPUs 0-1 not isolated"));
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
                assert_eq!(text.matches("<script").count(), 2, "the data and our own: {}", knob.id);
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
            text.contains("&lt;b x=") && !text.contains("<b x=") && text.matches("</script>").count() == 2
        );
    }

    #[test]
    fn a_large_or_empty_machine_is_a_page_too() {
        assert!(page(&machine(256, "--cpus 5-9")).len() < 300_000);
        let nothing = page(&Machine::of(std::collections::BTreeMap::new()));
        assert!(nothing.contains("The CPUs are not known") && !nothing.contains("<svg"));
    }
}
