//! Results of `hunt` in a run's page: the interactive part, the culprits, the worst spikes, the
//! mean path.

use std::ops::Range;

use maud::{Markup, html};

use super::disagreement::Disagreement;
use super::flame::Flame;
use super::next_step::next_step;
use super::parts::{SpikePart, by_latency, longest, parts, share, total, worst};
use super::typical::{self, Involved};
use super::windows::{KEPT, Windows};
use super::{
    ask, cpu_time, culprit_thread, disagreement, kinds, overrun, path, picture, sentences, shares, threads,
    unlisted,
};
use crate::html::{cards, figure};
use crate::input::Input;
use crate::plot::axis::number;
use crate::plot::theme::PAGE;
use crate::prose::prose;
use crate::words::{clean, several, span, us};
use model::run::{Run, Spike};
use model::vocabulary::Command;
use trace::window::Window;

/// Explanation of the boxes.
const BOXES: &str = "Each row is part of the one above it: kind, owner, function. The width is the time that \
                     it took in all stored spikes.";
/// Limit of rows of a spike's table.
const ROWS: usize = 40;
/// Limit of rows of the culprits' table; `LEAST` is the least share of a row that is not folded.
const CULPRITS: usize = 40;
const LEAST: f64 = 0.01;
/// Limit of culprits with a typical spike in a still picture.
const TYPICAL: usize = 8;

/// Section of a hunt; nothing for other runs.
pub fn section(input: &Input) -> Markup {
    let (run, windows) = (input.run, input.windows);
    if run.command != Command::Hunt {
        return html! {};
    }
    if run.spikes.is_empty() {
        return threads::section(run);
    }
    let (flame, involved) = (Flame::of(run), typical::all(run));
    html! {
        (kinds::hatches())
        (ask::place(input))
        (threads::section(run))
        h2 { "Culprits" }
        div id="flame" {
            (figure(BOXES, |size| flame.draw(size, &PAGE)))
            p class="muted ask" { "A click on a box shows the spikes that contain it." }
        }
        (culprits(run, &involved))
        div class="still" {
            h2 { "The worst spikes" }
            p class="muted" { "Each from the time at which the thread should have run, or from its release. Point at a bar for details." }
            @for (at, spike) in worst(run, KEPT).into_iter().enumerate() {
                (one(at + 1, spike, run, windows.and_then(|all| all.of(spike)))) }
            (typical_ones(run, &involved, windows))
        }
        (ask::table(run))
        @if let Some(windows) = windows.filter(|windows| windows.mean.windows > 0) {
            h2 { "The mean path from the timer to user space" }
            (figure(&format!("Mean over {} with complete timestamps; not of ordinary wake-ups.", several(windows.mean.windows, "spike", "spikes")),
                |size| path::draw(&windows.mean, "spikes", size, &PAGE)))
        }
        (ask::document(input, &flame, &involved))
    }
}

/// Typical spike of each culprit that the worst spikes may not show.
fn typical_ones(run: &Run, involved: &[Involved], windows: Option<&Windows>) -> Markup {
    let order = by_latency(run);
    let mut spikes: Vec<usize> = order.iter().take(KEPT).copied().collect();
    let mut others: Vec<(usize, usize)> = Vec::new();
    for (culprit, part) in involved.iter().enumerate().take(TYPICAL) {
        if let Some(at) = part.typical.filter(|at| !spikes.contains(at)) {
            spikes.push(at);
            others.push((culprit, at));
        }
    }
    html! {
        @if !others.is_empty() {
            h2 { "A typical spike of each other culprit" }
            @for (culprit, at) in others {
                @let rank = order.iter().position(|place| *place == at).unwrap_or(at);
                p class="muted" { "Of " (clean(&run.culprits[culprit].name)) ":" }
                (one(rank + 1, &run.spikes[at], run, windows.and_then(|all| all.of(&run.spikes[at]))))
            }
        }
    }
}

/// Warning above the results that trace and thread's clock differ in some spikes, if the ranking
/// does not hold without them.
pub fn banner(run: &Run) -> Markup {
    let found = disagreement::of(run).filter(|found| !found.holds && !found.few);
    html! { @if let Some(found) = found { div class="banner" role="alert" { (contradicted(&found)) } } }
}

/// The same text as a remark below the answer, if the ranking holds.
pub fn remark(run: &Run) -> Markup {
    let found = disagreement::of(run).filter(|found| found.holds || found.few);
    html! { @if let Some(found) = found { p class="muted" { (contradicted(&found)) } } }
}

fn contradicted(found: &Disagreement) -> String {
    let which = if found.which.is_empty() { String::new() } else { format!(" ({})", found.which) };
    format!("Note: {}{which}.", found.sentence)
}

/// The recorder's account of itself.
pub fn account(run: &Run) -> Markup {
    let Some(recorder) = &run.recorder else { return html! {} };
    html! {
        details {
            summary { "Flight recorder: events, losses, cost" }
            dl { @for (name, words) in sentences::account(recorder) {
                div { dt { (name) } dd { (prose(&words)) } }
            } }
        }
    }
}

fn culprits(run: &Run, involved: &[Involved]) -> Markup {
    let listed = run.culprits.len().min(CULPRITS);
    let large = run.culprits.iter().take_while(|culprit| culprit.share >= LEAST).count();
    let large = large.clamp(listed.min(1), listed);
    let small: f64 = run.culprits[large..listed].iter().map(|culprit| culprit.share).sum();
    html! {
        (culprit_rows("Culprits by the lateness they caused", run, 0..large, involved))
        @if large < listed {
            details {
                summary {
                    (several((listed - large) as u64, "culprit", "culprits")) " under 1 %"
                    @if listed - large > 1 { " each, " (sentences::percent(small)) " together" }
                }
                (culprit_rows("Culprits under 1 %", run, large..listed, involved))
            }
        }
        @if run.culprits.len() > CULPRITS { p class="muted" { (run.culprits.len() - CULPRITS) " more are in the data at the end of this file." } }
        p class="muted" {
            "Shares are of " (span(total(run))) ", the latency of " (unlisted::summed(run)) ". "
            @if let Some(left_out) = unlisted::left_out(run) { (left_out) " " }
            (shares::sentence(run))
        }
    }
}

fn culprit_rows(name: &str, run: &Run, places: Range<usize>, involved: &[Involved]) -> Markup {
    cards(
        name,
        html! {
            table {
                thead { tr {
                    th { "share" } th { "late by" } th class="more" { "taken" } th class="more" { "spikes" }
                    th class="left" { "who" } th class="left" { "as" }
                    th class="left" { "evidence" } th class="left" { "remedy" }
                    th class="left ask" { "typical" }
                } }
                tbody { @for at in places { (culprit_row(run, at, involved)) } }
            }
        },
    )
}

fn culprit_row(run: &Run, at: usize, involved: &[Involved]) -> Markup {
    let (culprits, culprit) = (&run.culprits, &run.culprits[at]);
    let typical = typical::number(run, involved, at);
    let named = matches!(culprit.functions.as_slice(), [one] if culprit.name.contains(one.as_str()));
    let lines = |texts: &[String]| texts.iter().map(|text| clean(text)).collect::<Vec<_>>().join("; ");
    html! {
        tr {
            td class="top" { (sentences::percent(culprit.share)) } td { (span(culprit.total_ns)) }
            td class="more" { (culprit.cpu_time_ns.map_or_else(|| "-".to_owned(), span)) }
            td class="more" { (culprit.spikes) }
            td class="wrap" {
                strong { (clean(&culprit.name)) }
                @if !culprit.threads.is_empty() { br; (culprit_thread::sentence_at(run, at)) }
                @let took = cpu_time::sentence(culprit);
                @if !took.is_empty() { br; "took " (took) }
                @if !culprit.functions.is_empty() && !named { br; span class="muted" { "in " (sentences::functions(culprit)) } }
            }
            td class="left" { (swatch(culprit.kind.as_str())) " " (clean(culprit.kind.as_str())) }
            td class="wrap" { (lines(&culprit.evidence)) }
            td class="wrap" {
                @match sentences::cure(culprits, at) {
                    sentences::Cure::As(above) => { "as for " (clean(&culprits[above].name)) "." }
                    sentences::Cure::Remedy(remedy, knobs) if remedy.is_empty() && knobs.is_empty() => {
                        (prose(&next_step(culprits, at)))
                    }
                    sentences::Cure::Remedy(remedy, knobs) => { (prose(&remedy)) @if !knobs.is_empty() { ". Knobs: " (knobs) "." } }
                }
            }
            td class="left ask" {
                @if let Some(number) = typical { a href={ "#spike=" (number) } { "spike " (number) } }
            }
        }
    }
}

fn swatch(kind: &str) -> Markup {
    let kind = kinds::of(kind);
    let colour = kind.colour(&PAGE);
    html! {
        svg class="swatch" viewBox="0 0 12 12" aria-hidden="true" {
            rect x="0.5" y="0.5" width="11" height="11" fill=(colour) fill-opacity=(number(kind.strength)) stroke=(colour) {}
            @if let Some(hatch) = kind.hatch() { rect x="0.5" y="0.5" width="11" height="11" fill=(hatch) {} }
        }
    }
}

/// Spike: its timeline, its parts, and the remarks on it.
pub fn one(number: usize, spike: &Spike, run: &Run, window: Option<&Window>) -> Markup {
    let followed: Vec<i32> = run.threads.iter().map(|thread| thread.tid).collect();
    let when = sentences::when(spike, run);
    let when = if when.is_empty() { when } else { format!(", {when}") };
    let (longest_parts, others, length) = longest(parts(spike), ROWS);
    html! {
        section class="spike" id=(threads::place_of(number)) {
            h3 { (number) ". " (threads::late(spike)) " on CPU " (spike.cpu) (when) ": " (sentences::classes(spike)) }
            @if let Some(victim) = sentences::victim(spike) { p { "The late thread: " (victim) "." } }
            @if let Some(words) = overrun::sentence(spike, run) { p { "Overrun: " (words) "." } }
            @if spike.events_lost > 0 {
                p { strong { (several(spike.events_lost, "event", "events")) " of this CPU lost: slices may be missing." } }
            }
            (figure("", |size| picture::draw(spike, window, &followed, size, &PAGE)))
            (cards("The slices of this spike", html! {
                table {
                    thead { tr {
                        th class="more" { "from, us" } th { "length, us" } th class="more" { "share" } th class="left" { "kind" }
                        th class="left" { "who" } th class="left" { "evidence" }
                    } }
                    tbody { @for part in &longest_parts { (row(part, spike)) } }
                }
            }))
            @if others > 0 { p class="muted" { "And " (several(others as u64, "shorter part", "shorter parts")) ", " (span(length)) " together." } }
            @if !spike.unexplained_why.is_empty() { p { "Reason why it is unexplained: " (prose(&spike.unexplained_why)) "." } }
            @for note in &spike.notes { p class="muted" { (prose(note)) } }
        }
    }
}

fn row(part: &SpikePart, spike: &Spike) -> Markup {
    html! {
        tr {
            td class="more" { (us(part.start)) } td class="top" { (us(part.ns)) } td class="more" { (sentences::percent(share(part.ns, spike.latency_ns))) }
            td class="left" { (swatch(part.kind())) " " (clean(part.kind())) }
            @match part.slice {
                None => { td {} td class="wrap" { (kinds::of(kinds::UNEXPLAINED).words) } }
                Some(slice) => {
                    td class="left" { (sentences::who(&slice.who)) }
                    td class="wrap" {
                        (prose(&slice.evidence))
                        @if !slice.stack.is_empty() {
                            details { summary { "stack, innermost first" }
                                pre { @for frame in &slice.stack { (clean(frame)) "\n" } } }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;

    fn section_html(run: &Run, windows: Option<&Windows>) -> String {
        let sample = crate::fixture::quiet();
        crate::run::section::run(&Input { run, windows, ..sample.input() }, None).into_string()
    }

    #[test]
    fn every_spike_has_a_picture_and_a_table() {
        let run = fixture::run();
        let text = section_html(&run, Some(&fixture::windows()));
        assert_eq!(text.matches("<section class=\"spike\"").count(), 8);
        assert!(text.contains("lanes: the late thread"));
        assert_eq!(text.matches("id=\"onbeat-spikes\"").count(), 1);
        assert!(text.contains("not the machine's latency"));
        assert!(section_html(&run, None).contains("is not in this bundle"));
    }

    #[test]
    fn external_text_is_escaped() {
        let mut run = fixture::run();
        let attack = "</td><script src=http://x>\u{1b}[2J";
        for spike in &mut run.spikes {
            (spike.notes, spike.classes) = (vec![attack.into()], vec![attack.into()]);
            for slice in &mut spike.slices {
                (slice.kind, slice.evidence, slice.who.comm) = (attack.into(), attack.into(), attack.into());
                slice.stack = vec![attack.into()];
            }
        }
        run.culprits.iter_mut().for_each(|culprit| culprit.name = attack.into());
        let text = section_html(&run, Some(&fixture::windows()));
        assert!(text.matches("<script").count() == 1 && !text.contains('\u{1b}'), "the data alone");
        let text = section_html(&fixture::run(), Some(&fixture::windows()));
        assert!(!text.contains("http"), "an address on the page");
    }

    #[test]
    fn a_page_has_the_hunt_and_states_that_events_were_enabled() {
        let sample = crate::fixture::quiet();
        let (run, windows) = (fixture::run(), fixture::windows());
        let text = crate::run::page::html(&[crate::input::Input {
            run: &run,
            windows: Some(&windows),
            ..sample.input()
        }])
        .unwrap();
        assert!(text.contains("Culprits") && text.contains("on 2 CPUs, with tracing, was 1.21 ms"));
        assert!(!crate::run::page::html(&[sample.input()]).unwrap().contains("armed"));
    }

    #[test]
    fn small_culprits_are_folded() {
        let mut run = fixture::run();
        run.culprits[3].share = 0.004;
        run.culprits[4].share = 0.003;
        run.culprits[5].share = 0.0001;
        let text = section_html(&run, None);
        assert!(text.contains("<summary>3 culprits under 1 % each, 0.7 % together</summary>"), "{text}");
        assert!(text.contains("&lt;0.1 %") && !text.contains("0.0 %"), "{text}");
    }

    #[test]
    fn other_commands_have_none_and_a_hunt_without_spikes_a_sentence() {
        let mut run = fixture::run();
        run.spikes.clear();
        let text = section_html(&run, None);
        assert!(text.contains("No wake-up was later than 100 us") && !text.contains("The worst spikes"));
        run.command = "measure".into();
        assert!(!section_html(&run, None).contains("Culprits"));
    }
}
