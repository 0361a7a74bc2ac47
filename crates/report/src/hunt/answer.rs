//! Result of a hunt at the top of its page: the culprits as bars, with their shares of the lateness
//! and the remedy for each.

use maud::{Markup, html};

use super::culprit_thread;
use super::kinds::{self, KindStyle};
use super::next_step::next_step;
use super::sentences;
use super::{cpu_time, shares};
use crate::plot::axis::number;
use crate::plot::theme::PAGE;
use crate::prose::prose;
use crate::words::{clean, several, span};
use model::run::Run;
use model::units::Nanos;

/// Limit of culprits with a bar; the table has the others.
const BARS: usize = 5;
/// Least share of a culprit with a bar, except for the first.
const LEAST: f64 = 0.01;

/// Bars with their texts; nothing for a run without spikes.
pub fn bars(run: &Run) -> Markup {
    let large = run.culprits.iter().take(BARS).enumerate();
    let bars = large.take_while(|(at, culprit)| *at == 0 || culprit.share >= LEAST).count();
    let rest: f64 = run.culprits.iter().skip(bars).map(|culprit| culprit.share).sum();
    let more = run.culprits.len() - bars;
    html! {
        @if !run.spikes.is_empty() {
            ol class="bars" {
                @if let Some((ns, share)) = shares::mostly_unexplained(run) { li { (unexplained(ns, share)) } }
                @for at in 0..bars { (bar(run, at)) }
            }
            p class="muted" {
                @if more > 0 {
                    (several(more as u64, "more culprit", "more culprits"))
                    " with " (sentences::percent(rest)) (if more > 1 { " together are" } else { " is" })
                    " in the table below. "
                }
                (shares::sentence(run))
            }
        }
    }
}

/// Bar of the time that no event accounts for, if that is most of it.
fn unexplained(ns: Nanos, share: f64) -> Markup {
    html! {
        div class="bar" {
            span class="share" { (sentences::percent(share)) }
            span class="who" { "unexplained: no event accounts for it" }
            span class="took" { (span(ns)) }
            (filled(share, &kinds::of(kinds::UNEXPLAINED)))
        }
    }
}

fn filled(share: f64, kind: &KindStyle) -> Markup {
    let width = (share.clamp(0.0, 1.0) * 100.0).max(0.5);
    html! {
        svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
            rect width="100" height="4" fill=(PAGE.grid) {}
            rect width=(number(width)) height="4" fill=(kind.colour(&PAGE))
                fill-opacity=(number(kind.strength.max(0.35))) {}
        }
    }
}

fn bar(run: &Run, at: usize) -> Markup {
    let (culprits, culprit) = (&run.culprits, &run.culprits[at]);
    let kind = kinds::of(culprit.kind.as_str());
    html! {
        li {
            a class="bar" href={ "#culprit=" (at + 1) } {
                span class="share" { (sentences::percent(culprit.share)) }
                span class="who" { (clean(&culprit.name)) }
                span class="took" {
                    (cpu_time::numbers(culprit)) " in " (several(culprit.spikes, "spike", "spikes"))
                }
                (filled(culprit.share, &kind))
            }
            @if !culprit.threads.is_empty() { p class="cure" { (culprit_thread::sentence_at(run, at)) } }
            p class="cure" { (prose(&next_step(culprits, at))) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;

    #[test]
    fn every_bar_has_a_next_step() {
        let mut run = fixture::run();
        let text = bars(&run).into_string();
        assert_eq!(text.matches("class=\"bar\"").count(), BARS);
        let mut small = run.clone();
        small.culprits.iter_mut().for_each(|culprit| culprit.share = 0.004);
        assert_eq!(bars(&small).into_string().matches("class=\"bar\"").count(), 1);
        for step in text.split("class=\"cure\">").skip(1) {
            assert!(!step.starts_with("</p>"), "{text}");
        }
        assert!(text.contains("1 more culprit with"), "{text}");
        assert_eq!(bars(&Run::default()).into_string(), "");
        assert!(!text.contains("unexplained: "), "{text}");
        let recorder = run.recorder.as_mut().expect("a hunt has one");
        (recorder.latency_ns, recorder.unexplained_ns) = (Nanos(10_000_000), Nanos(9_000_000));
        assert!(bars(&run).into_string().contains("unexplained: no event accounts for it"));
    }
}
