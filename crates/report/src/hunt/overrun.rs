//! Spike that was due during an earlier cycle of its thread: the cycle that overran, and the cause
//! of that.

use std::collections::BTreeMap;

use super::kinds;
use super::parts::by_latency;
use crate::words::{clean, span};
use model::run::{Run, Spike};
use model::units::Nanos;
use rules::culprits::names::fallback_name;

/// Sentence; none for a spike that inherited nothing.
pub fn sentence(spike: &Spike, run: &Run) -> Option<String> {
    if spike.inherited_ns.0 <= 0 {
        return None;
    }
    let length = span(spike.inherited_ns);
    let most = largest(spike).filter(|most| most.ns.0.saturating_mul(2) > spike.inherited_ns.0);
    Some(match most {
        Some(most) => format!("{length} are {}", caused(&most, spike, run)),
        None => {
            format!("{length} are an overrun of its previous cycle, with several or unknown causes")
        }
    })
}

/// Cause, and its part of the inherited time.
struct InheritedCause<'a> {
    name: String,
    kind: &'a str,
    ns: Nanos,
    /// Release of the first cycle that it made late.
    due: Nanos,
}

/// Cause of most of the inherited time, over all its slices.
fn largest(spike: &Spike) -> Option<InheritedCause<'_>> {
    let mut causes: BTreeMap<(&str, String), (Nanos, Nanos)> = BTreeMap::new();
    for slice in &spike.slices {
        let Some(due) = slice.overrun_of_ns else { continue };
        let sum = causes.entry((slice.kind.as_str(), fallback_name(slice))).or_insert((Nanos(0), due));
        *sum = (Nanos(sum.0.0.saturating_add(slice.ns.0)), sum.1.min(due));
    }
    let all = causes.into_iter().map(|((kind, name), (ns, due))| InheritedCause { name, kind, ns, due });
    all.max_by_key(|cause| cause.ns)
}

/// Earlier cycle by its time, with its number if it is a spike, and its cause.
fn caused(most: &InheritedCause<'_>, spike: &Spike, run: &Run) -> String {
    let before = span(Nanos(spike.expected_ns.0.saturating_sub(most.due.0)));
    let is_it = |other: &Spike| {
        other.expected_ns == most.due && other.victim.pid == spike.victim.pid && other.deadline_ns.is_some()
    };
    let number = by_latency(run).into_iter().position(|at| is_it(&run.spikes[at]));
    let number = number.map_or_else(String::new, |at| format!(" (spike {})", at + 1));
    let (name, kind) = (clean(&most.name), clean(most.kind));
    let kind = if most.kind == kinds::STOPPED { String::new() } else { format!(" ({kind})") };
    format!("an overrun of the cycle due {before} before{number}, caused by {name}{kind}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::{Slice, Who};
    use model::slice::SliceKind;

    const MILLI: i64 = 1_000_000;

    fn spike(due: i64, slices: Vec<Slice>, inherited: i64) -> Spike {
        Spike {
            expected_ns: Nanos(due * MILLI),
            latency_ns: Nanos((20 - due) * MILLI),
            deadline_ns: Some(Nanos(MILLI)),
            inherited_ns: Nanos(inherited * MILLI),
            slices,
            ..Spike::default()
        }
    }

    #[test]
    fn the_cycle_and_its_cause_are_named_and_what_is_unknown_is_no_sleep() {
        let hog = Slice {
            kind: "thread".into(),
            ns: Nanos(15 * MILLI),
            who: Who { comm: "hog".into(), pid: 9, ..Who::default() },
            overrun_of_ns: Some(Nanos(0)),
            ..Slice::default()
        };
        let own = Slice { overrun_of_ns: None, ..hog.clone() };
        let half = |at: i64| Slice { start_ns: Nanos(at), ns: Nanos(7_500_000), ..hog.clone() };
        let third = spike(2, vec![half(0), half(1)], 16);
        let run = Run { spikes: vec![third.clone(), spike(0, vec![own.clone()], 0)], ..Run::default() };
        let text = "16 ms are an overrun of the cycle due 2 ms before (spike 1), caused by hog (thread)";
        assert_eq!(sentence(&third, &run).as_deref(), Some(text));
        assert_eq!(sentence(&third, &Run::default()), Some(text.replace(" (spike 1)", "")));
        assert_eq!(sentence(&run.spikes[1], &run), None);
        let mut unknown = spike(2, vec![own], 16);
        let words = |spike: &Spike| sentence(spike, &run).expect("it inherited");
        assert!(words(&unknown).ends_with("previous cycle, with several or unknown causes"));
        let stop = Slice { kind: SliceKind::Stopped.into(), who: Who::default(), ..hog.clone() };
        unknown.slices = vec![stop];
        assert!(words(&unknown).ends_with("caused by a stop from outside"), "{}", words(&unknown));
    }
}
