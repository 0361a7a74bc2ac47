//! What a hunt found, as the first thing on its page: how late, who took how much of it, and what
//! to do about each.

use maud::{Markup, html};

use super::kinds;
use super::parts::{share, total, unexplained};
use super::sentences::{self, Cure};
use crate::plot::axis::number;
use crate::plot::theme::PAGE;
use crate::prose::prose;
use crate::words::{clean, several, span};
use model::run::{Culprit, Run};
use model::slice::SliceKind;
use model::units::Nanos;

/// Culprits with a bar; the table has the others.
const BARS: usize = 5;
/// A culprit with less has no bar, unless it is the first.
const LEAST: f64 = 0.01;

/// The bars with their words; nothing for a run without spikes.
pub fn bars(run: &Run) -> Markup {
    let large = run.culprits.iter().take(BARS).enumerate();
    let shown = large.take_while(|(at, culprit)| *at == 0 || culprit.share >= LEAST).count();
    let rest: f64 = run.culprits.iter().skip(shown).map(|culprit| culprit.share).sum();
    let more = run.culprits.len() - shown;
    html! {
        @if !run.spikes.is_empty() {
            ol class="bars" {
                @for at in 0..shown { (bar(&run.culprits, at)) }
            }
            p class="muted" {
                @if more > 0 {
                    (several(more as u64, "more culprit", "more culprits"))
                    " with " (sentences::percent(rest)) (if more > 1 { " together are" } else { " is" })
                    " in the table below. "
                }
                (without(run))
            }
        }
    }
}

fn bar(culprits: &[Culprit], at: usize) -> Markup {
    let culprit = &culprits[at];
    let kind = kinds::of(culprit.kind.as_str());
    let width = (culprit.share.clamp(0.0, 1.0) * 100.0).max(0.5);
    let colour = kind.colour(&PAGE);
    html! {
        li {
            a class="bar" href={ "#culprit=" (at + 1) } {
                span class="share" { (sentences::percent(culprit.share)) }
                span class="who" { (clean(&culprit.name)) }
                span class="took" {
                    (span(culprit.total_ns)) " in " (several(culprit.spikes, "spike", "spikes"))
                }
                svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
                    rect width="100" height="4" fill=(PAGE.grid) {}
                    rect width=(number(width)) height="4" fill=(colour)
                        fill-opacity=(number(kind.strength.max(0.35))) {}
                }
            }
            p class="cure" { (next_step(culprits, at)) }
        }
    }
}

/// What to do about a culprit, in a line or two; the table has its knobs with their titles.
fn next_step(culprits: &[Culprit], at: usize) -> Markup {
    let page = culprits[at].rule.as_deref().and_then(rules::culprits::find).map(|rule| rule.id);
    match sentences::cure(culprits, at) {
        Cure::As(above) => html! { "As for " (clean(&culprits[above].name)) "." },
        Cure::Remedy(remedy, _) if !remedy.is_empty() => html! { (prose(&full_stop(&remedy))) },
        Cure::Remedy(_, knobs) if !knobs.is_empty() => html! { "Settings that matter: " (knobs) "." },
        _ => match page {
            Some(id) => html! { code { "onbeat rules " (id) } " says more." },
            None if every_wake_up(&culprits[at]) => {
                html! { "A part of every wake-up, longer than elsewhere: look at a typical spike of it." }
            }
            None => {
                html! { "No rule knows it: open a typical spike of it and look at its evidence and stack." }
            }
        },
    }
}

/// Whether it is on the way of every wake-up, late or not.
fn every_wake_up(culprit: &Culprit) -> bool {
    use SliceKind::{ReturnToUser, Switch, TimerIrq, TimerSoftirq};
    culprit.kind.known().is_some_and(|kind| [ReturnToUser, Switch, TimerIrq, TimerSoftirq].contains(&kind))
}

fn full_stop(sentence: &str) -> String {
    let mut capital = sentence.trim_end_matches('.').to_owned();
    // A command or a function keeps its name as it is written.
    if capital.starts_with(|c: char| c.is_ascii_lowercase())
        && capital.split(' ').next().is_some_and(|word| word.chars().all(|c| c.is_ascii_alphabetic()))
    {
        capital[..1].make_ascii_uppercase();
    }
    capital + "."
}

/// What no event accounts for.
fn without(run: &Run) -> String {
    let rest = unexplained(run);
    match rest {
        Nanos(..=0) => String::new(),
        rest => format!(
            "No event accounts for {} ({}) of {}.",
            span(rest),
            sentences::percent(share(rest, total(run))),
            span(total(run))
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hunt::fixture;

    #[test]
    fn every_bar_has_a_next_step() {
        let run = fixture::run();
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
    }

    #[test]
    fn sentences_begin_and_end_as_such() {
        assert_eq!(full_stop("keep it off"), "Keep it off.");
        assert_eq!(full_stop("irq/24-eth0 is it."), "irq/24-eth0 is it.");
        assert_eq!(full_stop(""), ".");
    }
}
