//! Page of a single spike: its timeline, its parts, and the cure for its cause.

use maud::html;

use super::next_step::{looks_at_a_spike, next_step};
use super::parts::{by_latency, share};
use super::{cpu_time, kinds, section, sentences, typical};
use crate::html::PageParts;
use crate::prose::prose;
use crate::words::{clean, span};
use model::run::{Run, Spike};
use model::units::Nanos;
use trace::window::Window;

/// Content of the page below its heading; none if the run has no spike of this number, where 1 is
/// the latest.
pub fn parts(run: &Run, number: usize, window: Option<&Window>) -> Option<PageParts> {
    let at = number.checked_sub(1).and_then(|at| by_latency(run).get(at).copied())?;
    let spike = run.spikes.get(at)?;
    let body = html! {
        (kinds::hatches())
        p class="lead" { (prose(&lead(spike))) }
        @for (at, ns) in named(run, spike) {
            @let culprit = &run.culprits[at];
            h2 { (clean(&culprit.name)) }
            p { "It took " (span(ns)) " of this spike. In all it caused " (cpu_time::numbers(culprit)) ", "
                (sentences::percent(culprit.share)) " of this run's lateness." }
            @match sentences::cure(&run.culprits, at) {
                sentences::Cure::As(above) => {
                    p { "For the remedy see " (clean(&run.culprits[above].name)) "." }
                }
                sentences::Cure::Remedy(remedy, knobs) if remedy.is_empty() && knobs.is_empty() => {
                    @let step = next_step(&run.culprits, at);
                    // The reader is looking at it already.
                    @if !looks_at_a_spike(&step) { p class="next" { (prose(&step)) } }
                }
                sentences::Cure::Remedy(remedy, knobs) => {
                    p class="next" { strong { "Remedy: " } (prose(&remedy))
                        @if !knobs.is_empty() { ". Knobs: " (knobs) "." } }
                }
            }
        }
        h2 { "Its slices" }
        @if window.is_none() {
            p class="muted" { "The activity of the other CPUs is not stored for this spike." }
        }
        (section::one(number, spike, run, window))
    };
    let heading = format!("Spike {number}: {} on CPU {}", span(spike.latency_ns), spike.cpu);
    Some(PageParts { heading, body, script: None })
}

/// Limit of culprits of a spike that are named with their cures: more would not be an answer.
const NAMED: usize = 3;
/// Least share of the spike of a named culprit, except for the first.
const LEAST: f64 = 0.01;

/// Places of the culprits of a spike that are worth naming, the largest first, which is included
/// however small it is.
pub fn named(run: &Run, spike: &Spike) -> Vec<(usize, Nanos)> {
    let mut all = typical::concerned(run, spike);
    let is_large = |ns: Nanos| share(ns, spike.latency_ns) >= LEAST;
    let large = all.iter().take_while(|(_, ns)| is_large(*ns)).count();
    all.truncate(large.clamp(1, NAMED));
    all
}

/// Lateness, and the largest part of it.
pub(super) fn lead(spike: &Spike) -> String {
    let length = span(spike.latency_ns);
    let late = match spike.deadline_ns {
        Some(deadline) => format!("The cycle took {length}, its deadline was {}", span(deadline)),
        None => format!("The wake-up was {length} late"),
    };
    match spike.classes.first().map(|class| class.as_str()) {
        None => format!("{late}."),
        Some("unexplained") => format!("{late}; no event accounts for the largest part of it."),
        Some(first) => format!("{late}. The largest part of it: {}.", kinds::of(first).words),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture;
    use super::*;

    #[test]
    fn each_spike_has_a_page_and_no_other_number_has() {
        let run = fixture::run();
        for number in 1..=run.spikes.len() {
            let page = parts(&run, number, None).unwrap();
            assert!(page.heading.starts_with(&format!("Spike {number}: ")) && page.script.is_none());
            let text = page.body.into_string();
            assert_eq!(text.matches("<section class=\"spike\"").count(), 1);
            assert!(text.contains("class=\"lead\""), "{text}");
            assert!(text.contains("<svg") && text.contains("is not stored for this spike"));
            assert!(!text.contains("Remedy: </strong></p>"), "{text}");
        }
        assert!(parts(&run, 0, None).is_none() && parts(&run, run.spikes.len() + 1, None).is_none());
    }

    #[test]
    fn a_culprit_without_a_cure_has_a_next_step_and_a_small_one_is_not_named() {
        let run = fixture::run();
        let spike = &run.spikes[by_latency(&run)[0]];
        for (at, ns) in named(&run, spike).into_iter().skip(1) {
            assert!(share(ns, spike.latency_ns) >= LEAST, "{at}");
        }
        let mut run = run.clone();
        let without_cure = |run: &mut Run, rule: &str| {
            for slice in run.spikes.iter_mut().flat_map(|spike| &mut spike.slices) {
                slice.rule = Some(rule.into());
            }
            for culprit in &mut run.culprits {
                (culprit.remedy, culprit.rule) = (String::new(), Some(rule.into()));
                culprit.knobs.clear();
            }
        };
        // For threads: the kind decides the rule of the others.
        let busy = run.culprits.iter().position(|culprit| culprit.name == "busy-loop").unwrap();
        let number = typical::number(&run, &typical::all(&run), busy).unwrap();
        let page = |run: &Run| parts(run, number, None).unwrap().body.into_string();
        without_cure(&mut run, "realtime-thread");
        let title = rules::culprits::find("realtime-thread").unwrap().title;
        run.culprits[busy].name = format!("{title}: busy-loop");
        let text = page(&run);
        assert!(!text.contains("Remedy: ") && text.contains("onbeat rules realtime-thread"), "{text}");
        without_cure(&mut run, "no such rule");
        run.culprits[busy].name = "busy-loop".into();
        assert!(page(&run).contains(" of this spike.") && !page(&run).contains("class=\"next\""));
    }

    #[test]
    fn the_answer_is_of_a_wake_up_or_of_a_cycle() {
        let mut spike = Spike { latency_ns: model::units::Nanos(2_000_000), ..Spike::default() };
        assert_eq!(lead(&spike), "The wake-up was 2 ms late.");
        spike.classes = vec!["irqs-off".into()];
        assert_eq!(lead(&spike), "The wake-up was 2 ms late. The largest part of it: interrupts were off.");
        spike.deadline_ns = Some(model::units::Nanos(1_000_000));
        spike.classes = vec!["unexplained".into()];
        let answer = lead(&spike);
        assert!(answer.starts_with("The cycle took 2 ms, its deadline was 1 ms; no event"), "{answer}");
    }

    #[test]
    fn external_text_is_escaped() {
        let mut run = fixture::run();
        let attack = "<script>\u{1b}[2J";
        for spike in &mut run.spikes {
            for slice in &mut spike.slices {
                (slice.kind, slice.who.comm) = (attack.into(), attack.into());
                slice.rule = Some("r".into());
            }
        }
        for culprit in &mut run.culprits {
            (culprit.name, culprit.rule) = (attack.into(), Some("r".into()));
            culprit.remedy = attack.into();
        }
        let text = parts(&run, 1, None).unwrap().body.into_string();
        assert!(!text.contains("<script") && !text.contains('\u{1b}') && text.contains("Remedy: "));
    }
}
