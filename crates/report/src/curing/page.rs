//! Story of a cure as a page for managers and kernel developers: the answer, the rates before and
//! after, the culprits, each step, the machine.

use maud::{Markup, html};

use super::answer::{bars, next_steps};
use super::changes::together;
use super::sentences::{
    CULPRITS, NEEDS, circumstances, digits, first_run, heading, in_the_way, last_run, left_of, of_hunt,
    of_last, of_run, step_head, step_numbers, step_why, verdict,
};
use crate::html::{document, figure, next, page_of};
use crate::map::{Map, svg as map_svg};
use crate::plot::before_after::{self, BeforeAfterRow};
use crate::plot::overlay::{self, RunGroup};
use crate::plot::ratios::{self, RatioRow};
use crate::plot::theme::PAGE;
use crate::prose::prose;
use crate::words::{clean, span};
use model::cure::{CureHunt, CureRun, CureStep};
use model::experiment::CountedUnit;
use model::units::Nanos;
use stats::pair::unit::ComparedUnit;
use stats::series::Series;

/// Content of the page.
pub struct CureStory<'a> {
    pub record: &'a CureRun,
    /// Block maxima of the runs before the first change; `after` has those after the last.
    pub before: Vec<&'a Series>,
    pub after: Vec<&'a Series>,
    /// The machine before and after; none if it is not known.
    pub maps: [Option<Map>; 2],
}

/// Page, which includes the record as JSON.
pub fn html(story: &CureStory, json: &str) -> String {
    let record = story.record;
    page_of(
        &heading(record),
        html! {
            p class="lead" { strong { (verdict(record)) } }
            (bars(record))
            (next(&next_steps(record)))
            ul {
                @if let Some(first) = first_run(record) {
                    li { "Before: " (of_run(first, &record.plan)) }
                }
                @if let Some(last) = last_run(record).filter(|_| record.runs.len() > 1) {
                    li { "At the end: " (of_last(last, &record.plan)) " " (clean(&last.said)) }
                }
                @if let Some(way) = in_the_way(record) { li { "Remaining: " (prose(&way)) "." } }
            }
            p class="muted" { (circumstances(record)) }
            (curves(story))
            (culprits(record))
            (steps(record))
            (remaining(record))
            (machine(story))
            (believed(record))
            (document(json))
        },
    )
}

fn curves(story: &CureStory) -> Markup {
    let groups = [("before", &story.before), ("after", &story.after)];
    let groups: Vec<RunGroup> = groups
        .into_iter()
        .filter(|(_, series)| !series.is_empty())
        .map(|(name, series)| RunGroup { name: name.into(), series: series.clone(), unit: ComparedUnit::Run })
        .collect();
    html! {
        h2 { "How often a latency is reached" @if groups.len() > 1 { ", before and after" } }
        (figure(curve_of(story.record.plan.counted()), |size| {
            overlay::draw(&groups, Some(story.record.plan.limit_ns), size, &PAGE)
        }))
    }
}

fn curve_of(counted: CountedUnit) -> &'static str {
    match counted {
        CountedUnit::WakeUps => "For each latency: the number of blocks per hour that reach it.",
        CountedUnit::Cycles => {
            "Wake-ups of its threads while tracing; the times of whole cycles are in each run's bundle. For \
             each latency: the number of blocks per hour that reach it."
        }
    }
}

fn culprits(record: &CureRun) -> Markup {
    let Some(first) = record.hunts.first() else { return html! {} };
    let last = last_hunt(record);
    let quiet =
        last.is_none() && last_run(record).is_some_and(|run| run.late == 0) && record.kept_changes() > 0;
    html! {
        h2 { "Culprits" }
        ul { @for line in of_hunt(first, record.plan.counted()) { li { (line) } } }
        @let took = format!(
            "Time that each took from late {}, while tracing.",
            record.plan.counted().many()
        );
        (figure(&took, |size| {
            let rows = culprit_rows(first, last, quiet);
            before_after::draw(&rows, "late time in a minute", |ns| span(Nanos(ns as i64)), size, &PAGE)
        }))
        @if quiet { p { "After the last change nothing was late, so no further hunt was needed." } }
    }
}

/// Last hunt, if it followed a change.
fn last_hunt(record: &CureRun) -> Option<&CureHunt> {
    record.hunts.last().filter(|hunt| hunt.changes > 0)
}

fn culprit_rows(first: &CureHunt, last: Option<&CureHunt>, quiet: bool) -> Vec<BeforeAfterRow> {
    let a_minute = |ns: Nanos, hunt: &CureHunt| ns.0 as f64 * 60.0 / hunt.length_ns.as_secs().max(1.0);
    let of = |name: &str, hunt: &CureHunt| {
        let found = hunt.culprits.iter().find(|culprit| culprit.name == name);
        found.map_or(0.0, |culprit| a_minute(culprit.lost_ns, hunt))
    };
    let mut names: Vec<&String> = first.culprits.iter().take(CULPRITS).map(|culprit| &culprit.name).collect();
    for culprit in last.iter().flat_map(|hunt| hunt.culprits.iter().take(CULPRITS)) {
        if !names.contains(&&culprit.name) {
            names.push(&culprit.name);
        }
    }
    let row = |name: &String| BeforeAfterRow {
        name: clean(name),
        before: of(name, first),
        after: last.map(|last| of(name, last)).or(quiet.then_some(0.0)),
    };
    names.into_iter().map(row).collect()
}

fn steps(record: &CureRun) -> Markup {
    if record.steps.is_empty() {
        return html! { h2 { "What was tried" } p { "Nothing." } };
    }
    let row = |step: &CureStep| RatioRow {
        name: clean(&step.change),
        words: match step.rate_ratio {
            Some(ratio) => format!("{} times as often", digits(ratio)),
            None => step_why(step),
        },
        good: step.kept,
        ratio: step.rate_ratio,
        interval: step.ci,
    };
    let rows: Vec<RatioRow> = record.steps.iter().map(row).collect();
    html! {
        h2 { "What was tried" }
        @let read = format!(
            "Left of 1 fewer {} are late with the change; bars are 95 % intervals.",
            record.plan.counted().many()
        );
        (figure(&read, |size| {
            ratios::draw(&rows, size, &PAGE)
        }))
        @for (at, step) in record.steps.iter().enumerate() {
            h3 { (step_head(at + 1, step)) }
            ul {
                @for change in together(&step.candidate.changes) { li { code { (change) } } }
                li { (step_numbers(step, record.plan.counted())) }
                li { (step_why(step)) }
            }
        }
    }
}

fn remaining(record: &CureRun) -> Markup {
    html! {
        @if !record.remaining.is_empty() {
            h2 { "What remains" }
            @for (needs, words) in NEEDS { @let all = left_of(record, needs); @if !all.is_empty() {
                h3 { "What " (words) }
                ul { @for (culprits, what) in all { li { strong { (culprits) } ": " (prose(what)) } } }
            } }
        }
    }
}

/// Caption of the map.
const CELLS: &str = "A figure in a cell counts the interrupts that land there, or the threads that may run \
                     there.";

fn machine(story: &CureStory) -> Markup {
    let maps = [("The machine before", &story.maps[0]), ("The machine after", &story.maps[1])];
    html! {
        @for (heading, map) in maps { @if let Some(map) = map.as_ref().filter(|map| !map.cpus.is_empty()) {
            h2 { (heading) }
            (figure(CELLS, |size| map_svg::draw(map, size, &PAGE)))
        } }
    }
}

const BELIEVED: &str = "If a change has no effect, either run of a pair is equally likely to have fewer late \
                        ones, however the machine drifts. A change that won had to win again in new pairs, \
                        the n-th change at an e-value of 20 n (n + 1), so that a change without effect is \
                        kept in at most one cure of twenty.";

/// Conditions that both runs of a pair share.
fn measured(counted: CountedUnit) -> String {
    let recording = match counted {
        CountedUnit::WakeUps => "without tracing",
        CountedUnit::Cycles => "with tracing in both, because cycles are only visible in the trace",
    };
    format!(
        "Each change was measured in pairs of runs, one without it and one with it, in random order, \
         {recording}. The metric is the number of late {}.",
        counted.many()
    )
}

fn believed(record: &CureRun) -> Markup {
    html! {
        h2 { "Evidence" }
        p {
            (measured(record.plan.counted())) " " (BELIEVED)
            @if record.held { " The last run began after the last change, and is not part of an experiment." }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{cured, untouched};
    use super::*;
    use crate::fixture;
    use crate::map::tests::{four, map_of};

    fn page(record: &CureRun) -> String {
        let (a, b) = (fixture::early(), fixture::quiet());
        let story = CureStory {
            record,
            before: vec![&a.series],
            after: vec![&b.series],
            maps: [Some(map_of(&four())), None],
        };
        html(&story, &serde_json::to_string(record).unwrap())
    }

    #[test]
    fn the_page_tells_the_story_in_its_order() {
        let text = page(&cured());
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}"));
        assert!(at("Held: 1 change") < at("before and after") && at("before and after") < at("Culprits"));
        assert!(at("1. irq-affinity") < at("What remains") && at("What remains") < at("The machine before"));
        assert!(text.matches("<svg").count() >= 8 && !text.contains("The machine after"));
    }

    #[test]
    fn what_others_named_is_harmless_in_it() {
        const ATTACK: &str = "</script><img src=x onerror=\"alert(1)\">\u{1b}[2J";
        let mut record = untouched();
        record.steps[0].culprit = ATTACK.into();
        record.steps[0].candidate.changes = vec![ATTACK.into()];
        record.hunts[0].culprits[0].name = ATTACK.into();
        record.remaining[0].what = ATTACK.into();
        let text = page(&record);
        assert!(!text.contains("<img") && !text.contains('\u{1b}') && text.matches("</script>").count() == 1);
    }
}
