//! Culprits of the worst wake-ups that were kept, and the remedy for each: on the first screen of
//! the page and in the last lines of the text.

use maud::{Markup, html};

use super::summary::{PlacedWorst, WatchSummary};
use super::words::culprit;
use crate::hunt::kinds;
use crate::hunt::next_step::full_stop;
use crate::plot::axis::number;
use crate::plot::theme::PAGE;
use crate::prose::prose;
use crate::words::{clean, span};
use model::sort::CompactSort;
use model::text::quoted_value;
use model::units::Nanos;

/// Limit of culprits with a bar.
const BARS: usize = 4;

/// Culprit of worst wake-ups for which the system is to blame.
struct Blamed<'a> {
    name: String,
    many: usize,
    largest: Nanos,
    /// First wake-up, which is the largest.
    first: &'a PlacedWorst,
}

/// Culprits in the order of their largest wake-ups. Threads of one name are one culprit.
fn blamed(of: &WatchSummary) -> Vec<Blamed<'_>> {
    let mut found: Vec<Blamed> = Vec::new();
    for worst in &of.worst {
        let named = &worst.wakeup.culprit;
        let name = if named.name.is_empty() { culprit(named) } else { clean(&named.name) };
        let largest = worst.total_ns;
        match found.iter_mut().find(|one| one.name == name) {
            Some(one) => (one.many, one.largest) = (one.many + 1, one.largest.max(largest)),
            None => found.push(Blamed { name, many: 1, largest, first: worst }),
        }
    }
    found.compact_sort_by_key(|one| std::cmp::Reverse(one.largest));
    found
}

/// Text below its bar.
fn cure(one: &Blamed) -> String {
    match one.first.wakeup.culprit.rule {
        None if one.first.wakeup.culprit.name.is_empty() => {
            "The culprit is not proven: a watch has one or two stacks per wake-up, a hunt has all events."
                .into()
        }
        _ => step(one),
    }
}

/// Remedy for a culprit, or the command that shows more.
fn step(one: &Blamed) -> String {
    let rule = one.first.wakeup.culprit.rule.as_deref().and_then(rules::culprits::find);
    match rule {
        Some(rule) => full_stop(rule.remedy),
        None => match one.first.wakeup.victim.comm.as_str() {
            "" => {
                "`onbeat hunt` records all events around late wake-ups, and names more culprits.".to_owned()
            }
            comm => format!(
                "{} records all events around its late wake-ups, and names more culprits.",
                code(&format!("onbeat hunt -D 60s --victim {}", quoted_value(comm)))
            ),
        },
    }
}

/// Command as code; a name may hold a back-tick, which would end it.
fn code(line: &str) -> String {
    if line.contains('`') { line.to_owned() } else { format!("`{line}`") }
}

/// Bars; nothing if no wake-up was kept.
pub fn bars(of: &WatchSummary) -> Markup {
    let (found, all) = (blamed(of), of.worst.len());
    html! {
        @if !found.is_empty() {
            ol class="bars wide" { @for one in found.iter().take(BARS) { li {
                @let kind = kinds::of(one.first.wakeup.culprit.kind.as_str());
                @let unknown = one.first.wakeup.culprit.name.is_empty();
                div class="bar" {
                    span class="share" { (one.many) " of " (all) }
                    @let nobody = unknown && one.name == "unknown";
                    span class="who" { (if nobody { "not known" } else { one.name.as_str() }) }
                    span class="took" { "up to " (span(one.largest)) }
                    svg viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true" {
                        rect width="100" height="4" fill=(PAGE.grid) {}
                        rect width=(number(100.0 * one.many as f64 / all as f64)) height="4"
                            fill=(if unknown { PAGE.muted } else { kind.colour(&PAGE) })
                            fill-opacity=(number(if unknown { 1.0 } else { kind.strength.max(0.35) })) {}
                    }
                }
                p class="cure" { (prose(&cure(one))) }
            } } }
            p class="muted" { (count(all, found.len())) }
        }
    }
}

/// Sentence on the count of the bars.
fn count(all: usize, names: usize) -> String {
    let more = match names.saturating_sub(BARS) {
        0 => String::new(),
        n => format!(" {n} more, with smaller ones, are in the tables below."),
    };
    format!("Of the {all} worst stored wake-ups, those that waited for the system; each counts once.{more}")
}

/// Next step in a sentence, for the page and for the terminal.
pub fn next_step(of: &WatchSummary) -> String {
    let Some(worst) = of.worst.first() else {
        return "Start the application, then watch again: only threads with a real-time priority are recorded."
            .to_owned();
    };
    match blamed(of).iter().find(|one| one.first.wakeup.culprit.rule.is_some()) {
        Some(one) => {
            let rule = one.first.wakeup.culprit.rule.as_deref().unwrap_or_default();
            format!("`onbeat rules {}` documents the first culprit.", clean(rule))
        }
        None => step(&Blamed { name: String::new(), many: 1, largest: worst.total_ns, first: worst }),
    }
}
