//! Suite as a page: its worst latency, the phases as bars, the next steps, the tables, the curves
//! of all phases over each other.

use maud::{Markup, html};

use super::next_step::{next_commands, sentences, worst};
use super::{HEAD, cells_of, distinct, is_spun, matrix_cells, or_unknown, remarks, stops};
use crate::html::{cards, document, figure, next, page_of, pairs, scroll};
use crate::plot::axis::number;
use crate::plot::exceedance;
use crate::plot::line::{self, PlotLine};
use crate::plot::theme::PAGE;
use crate::prose::prose;
use crate::words::{capitalised, clean, several, span};
use model::run::Run;
use model::sort::CompactSort;
use model::suite::{SuitePhase, SuiteRun};
use model::units::named_cpus;

/// Limit of phases with a bar; the table has all.
const BARS: usize = 8;

/// Content of the page.
pub struct SuiteStory<'a> {
    pub suite: &'a SuiteRun,
    /// Phases with an existing bundle, by their ids.
    pub runs: Vec<(&'a str, &'a Run)>,
    /// Folder of the suite, quoted for a shell.
    pub folder: &'a str,
}

/// Page, which includes the document as JSON.
pub fn html(story: &SuiteStory, json: &str) -> String {
    let suite = story.suite;
    let steps = sentences(&next_commands(suite, story.folder));
    page_of(
        &format!("Suite: {}", clean(&suite.name)),
        html! {
            (spoiled(suite))
            p class="lead" { strong { (verdict(suite)) } }
            (bars(suite))
            (next(&steps))
            p { "For: " (clean(&suite.title)) (conditions(suite)) "." }
            @for line in remarks(suite) { p class="muted" { (prose(&capitalised(&line))) "." } }
            h2 { "The phases" }
            (tables(suite))
            (left_out(suite))
            (curves(&line::of_runs(story.runs.iter().copied())))
            (recipe(suite))
            footer class="muted" { p {
                "Written by onbeat " (env!("CARGO_PKG_VERSION")) ". All latencies are wake-up latencies: from the requested wake-up time of a thread to the time it ran."
            } }
            (document(json))
        },
    )
}

/// Worst of all phases, compared with the limit if the recipe has one.
pub fn verdict(suite: &SuiteRun) -> String {
    let Some(phase) = worst(suite) else {
        return stops::longest(suite).unwrap_or_else(|| "No phase can be compared.".into());
    };
    let max = phase.max_ns.unwrap_or_default();
    let of = several(suite.phases.iter().filter(|phase| phase.valid).count() as u64, "phase", "phases");
    let worst = format!("{} at worst, in the phase {} ({of})", span(max), clean(&phase.id));
    match suite.limit_ns {
        Some(limit) if max > limit => format!("The recipe's limit of {} was exceeded: {worst}.", span(limit)),
        Some(limit) => format!("The recipe's limit of {} was not exceeded: {worst}.", span(limit)),
        None => format!("{worst}."),
    }
}

fn spoiled(suite: &SuiteRun) -> Markup {
    let holes: Vec<&SuitePhase> = suite.phases.iter().filter(|phase| !phase.valid).collect();
    html! {
        @if !suite.complete { div class="banner" role="alert" { "NOT COMPLETE: phases are missing." } }
        @if !holes.is_empty() {
            div class="banner" role="alert" {
                (several(holes.len() as u64, "phase", "phases")) " cannot be compared:"
                ul { @for phase in holes { li { (clean(&phase.id)) ": " (clean(&phase.why)) } } }
            }
        }
    }
}

/// Largest latency of each phase, largest first.
fn bars(suite: &SuiteRun) -> Markup {
    let mut phases: Vec<&SuitePhase> =
        suite.phases.iter().filter(|phase| phase.valid && phase.max_ns.is_some()).collect();
    phases.compact_sort_by_key(|phase| std::cmp::Reverse(phase.max_ns));
    let most = phases.first().and_then(|phase| phase.max_ns).map_or(1, |max| max.0.max(1)) as f64;
    html! {
        @if !phases.is_empty() {
            ol class="bars wide" { @for phase in phases.iter().take(BARS) { li { div class="bar" {
                @let max = phase.max_ns.unwrap_or_default();
                span class="share" { (span(max)) }
                span class="who" { (clean(&phase.id)) }
                span class="took" {
                    @if let Some(p99) = phase.p99_ns { "99 % within " (span(p99)) ", " }
                    (several(phase.samples, "sample", "samples"))
                }
                svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
                    rect width="100" height="4" fill=(PAGE.grid) {}
                    rect width=(number((max.0.max(0) as f64 / most * 100.0).max(0.5))) height="4"
                        fill=(PAGE.lines[0]) {}
                }
            } } } }
            @if phases.len() > BARS {
                @let more = (phases.len() - BARS) as u64;
                p class="muted" { "And " (several(more, "phase", "phases")) " below." }
            }
        }
    }
}

fn conditions(suite: &SuiteRun) -> String {
    let mut words = String::new();
    for (name, cpus) in [("measured on", &suite.cpus), ("loaded on", &suite.load_cpus)] {
        if !cpus.is_empty() {
            words += &format!("; {name} {}", named_cpus(clean(cpus)));
        }
    }
    if suite.shortened { words + "; shortened: not comparable with the full recipe" } else { words }
}

fn tables(suite: &SuiteRun) -> Markup {
    let matrix = matrix_cells(suite);
    html! {
        @for kernel in distinct(suite.phases.iter().map(|phase| phase.kernel.as_str())) {
            @let of_kernel = suite.phases.iter().filter(|phase| phase.kernel == kernel);
            @let both: (Vec<&SuitePhase>, Vec<&SuitePhase>) = of_kernel.partition(|phase| is_spun(phase));
            @let (spun, woken) = both;
            @if !woken.is_empty() {
                @let rows: Vec<Vec<String>> = woken.iter().map(|phase| cells_of(phase).to_vec()).collect();
                @let name = format!("Kernel {}, latencies in us", or_unknown(kernel));
                p class="muted" { (name) }
                (table(&name, &HEAD.map(str::to_owned), &rows))
            }
            @if !spun.is_empty() {
                @let title = stops::title(&or_unknown(kernel), &spun);
                @let cells = stops::cells(&spun);
                p class="muted" { (title) }
                @if let Some((head, rows)) = cells.split_first() { (table("Stops", head, rows)) }
            }
        }
        @if let Some((head, rows)) = matrix.split_first() {
            p class="muted" {
                "The maximum of each row under each load, followed by the 99.99 % quantile, in us"
            }
            (table("Maximum under each load", head, rows))
        }
    }
}

/// Table whose first column names the row; a narrow screen shows the tail only, or a matrix as
/// cards with labelled cells.
fn table(name: &str, head: &[String], rows: &[Vec<String>]) -> Markup {
    let brief = head.iter().map(String::as_str).eq(HEAD);
    let class = |at: usize| match at {
        0 => Some("left"),
        1..=3 if brief => Some("more"),
        _ => None,
    };
    let table = html! { table {
        thead { tr { @for (at, cell) in head.iter().enumerate() { th class=[class(at)] { (cell) } } } }
        tbody { @for row in rows { tr { @for (at, cell) in row.iter().enumerate() {
            @if at == 0 { th class="left" { (cell) } }
            @else { td class=[class(at)] data-of=[(!brief).then(|| head.get(at)).flatten()] { (cell) } }
        } } } }
    } };
    if brief { scroll(name, table) } else { cards(name, table) }
}

fn left_out(suite: &SuiteRun) -> Markup {
    html! { @if !suite.left_out.is_empty() {
        h3 { "Omitted" }
        ul { @for left in &suite.left_out { li { strong { (clean(&left.id)) } ": " (prose(&left.why)) } } }
    } }
}

const OF_CURVES: &str = "Sum over all CPUs of a phase. For each latency: the share of wake-ups that reached \
                         it.";

fn curves(lines: &[PlotLine]) -> Markup {
    html! { @if !lines.is_empty() {
        h2 { "Latency by phase" }
        (figure(OF_CURVES, |size| {
            exceedance::draw(lines, size, &PAGE)
        }))
    } }
}

/// Conditions that make the numbers comparable.
fn recipe(suite: &SuiteRun) -> Markup {
    let known: Vec<(&String, &String)> = suite.recipe.iter().filter(|(_, value)| !value.is_empty()).collect();
    html! {
        h2 { "Method" }
        (pairs(&[("seed of the order", suite.seed.to_string()), ("kernel", or_unknown(&suite.kernel))]))
        @if !known.is_empty() { details {
            summary { "The recipe" }
            dl { @for (name, value) in known { div { dt { (clean(name)) } dd { (clean(value)) } } } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::suite::SuiteLeftOut;
    use model::units::Nanos;

    fn suite() -> SuiteRun {
        let phase = |id: &str, max: i64| SuitePhase {
            id: id.into(),
            valid: max > 0,
            why: if max > 0 { String::new() } else { "hdd did not load".into() },
            samples: 100,
            max_ns: (max > 0).then_some(Nanos(max)),
            ..SuitePhase::default()
        };
        SuiteRun {
            name: "quick".into(),
            complete: true,
            phases: vec![phase("idle", 4_000_000), phase("cpu", 28_000_000), phase("hdd", 0)],
            left_out: vec![SuiteLeftOut { id: "regular".into(), why: "another boot".into() }],
            ..SuiteRun::default()
        }
    }

    fn page(suite: &SuiteRun) -> String {
        let sample = crate::fixture::quiet();
        let story = SuiteStory { suite, runs: vec![("idle", &sample.run)], folder: "/s" };
        html(&story, &serde_json::to_string(suite).unwrap())
    }

    #[test]
    fn the_worst_phase_comes_first_and_holes_are_said() {
        let text = page(&suite());
        let at = |what: &str| text.find(what).unwrap_or_else(|| panic!("{what}"));
        assert!(at("hdd did not load") < at("28 ms at worst, in the phase cpu (2 phases)."), "{text}");
        assert!(at("at worst") < at("class=\"bars") && at("class=\"bars") < at("What to do next"));
        assert!(at("What to do next") < at("Latency by phase") && at("another boot") > 0);
        let mut of = suite();
        of.limit_ns = Some(Nanos(125_000));
        assert!(
            verdict(&of).starts_with("The recipe's limit of 125 us was exceeded: 28 ms"),
            "{}",
            verdict(&of)
        );
        assert!(page(&SuiteRun::default()).contains("NOT COMPLETE"));
    }

    #[test]
    fn what_others_named_is_harmless_in_it() {
        const ATTACK: &str = "</script><img src=x onerror=\"alert(1)\">\u{1b}[2J\u{202e}";
        let mut of = suite();
        (of.name, of.title, of.kernel, of.cpus) =
            (ATTACK.into(), ATTACK.into(), ATTACK.into(), ATTACK.into());
        of.recipe.insert(ATTACK.into(), ATTACK.into());
        of.left_out[0] = SuiteLeftOut { id: ATTACK.into(), why: ATTACK.into() };
        for phase in &mut of.phases {
            (phase.id, phase.why, phase.load) = (ATTACK.into(), ATTACK.into(), ATTACK.into());
            (phase.kernel, phase.bundle, phase.model) = (ATTACK.into(), ATTACK.into(), ATTACK.into());
        }
        let text = page(&of);
        assert!(!text.contains("<img") && !text.contains('\u{1b}') && !text.contains('\u{202e}'));
        assert_eq!(text.matches("</script>").count(), 1);
    }
}
