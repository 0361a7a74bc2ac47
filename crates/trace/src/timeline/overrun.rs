//! Cycle that was due during the previous one: its own work starts only after that, and the causes
//! of the previous delay also made it late.

use super::classes::classes;
use super::earlier::{tell_unknown, within};
use super::explain::explain;
use super::outside;
use super::own::Cost;
use super::response::explain_response;
use super::why::{self, Known};
use crate::window::{PreviousCycle, Window};
use model::run::{Host, Spike};
use model::units::Nanos;

/// Explains a late wake-up or a late cycle; time during an earlier cycle has the causes of that
/// one.
pub fn explain_window(window: &Window, host: &Host, cost: Cost) -> Spike {
    let alone = |window: &Window| match window.deadline_ns {
        Some(_) => explain_response(window, host, cost),
        None => explain(window, host, cost),
    };
    let overlaps = |previous: &&PreviousCycle| previous.end_ns.min(window.actual_ns) > window.expected_ns;
    let Some(previous) = window.previous.as_ref().filter(overlaps) else { return alone(window) };
    let until = previous.end_ns.min(window.actual_ns);
    let mut spike = alone(&Window { expected_ns: until, previous: None, ..window.clone() });
    inherit(&mut spike, window, previous, until, host);
    spike
}

/// Prepends the earlier cycle's slices to the spike of the remaining time.
fn inherit(spike: &mut Spike, window: &Window, previous: &PreviousCycle, until: Nanos, host: &Host) {
    let slices = within(&previous.slices, window.expected_ns, until);
    let length = until.0.saturating_sub(window.expected_ns.0);
    let rest = length.saturating_sub(slices.iter().map(|slice| slice.ns.0).sum());
    spike.expected_ns = window.expected_ns;
    spike.latency_ns = Nanos(spike.latency_ns.0.saturating_add(length));
    spike.unexplained_ns = Nanos(spike.unexplained_ns.0.saturating_add(rest));
    spike.inherited_ns = Nanos(length);
    spike.slices.splice(0..0, slices);
    spike.stopped_ns = outside::total(&spike.slices);
    spike.classes = classes(spike);
    let lost = window.events_lost > 0 || window.begins_late;
    why::tell(host, Known { lost, waits: false }, spike);
    tell_unknown(spike, rest);
}

impl PreviousCycle {
    /// Part of a cycle's explanation after the thread's next cycle was due; none if it had ended by
    /// then.
    pub fn of(spike: &Spike, next: Nanos) -> Option<PreviousCycle> {
        let end = spike.actual_ns;
        if spike.expected_ns > next || end <= next {
            return None;
        }
        let mut slices = within(&spike.slices, next, end);
        // Time that was itself inherited from an earlier cycle keeps its origin.
        slices
            .iter_mut()
            .for_each(|slice| slice.overrun_of_ns = slice.overrun_of_ns.or(Some(spike.expected_ns)));
        Some(PreviousCycle { release_ns: spike.expected_ns, end_ns: end, slices })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::fixture::{E, adds_up, host, slice_lines, window};
    use super::*;
    use model::run::{Slice, Who};
    use model::slice::SliceKind;

    const MICRO: i64 = 1_000;

    fn slice(kind: SliceKind, at: i64, us: i64, comm: &str) -> Slice {
        Slice {
            kind: kind.into(),
            start_ns: Nanos(E + at * MICRO),
            ns: Nanos(us * MICRO),
            who: Who { comm: comm.into(), pid: 60, prio: 9, ..Who::default() },
            evidence: "x".to_owned(),
            ..Slice::default()
        }
    }

    /// Cycle of 5 ms due at `release`, delayed by a hog.
    fn earlier(release: i64) -> Spike {
        Spike {
            expected_ns: Nanos(E + release * MICRO),
            actual_ns: Nanos(E + (release + 5_000) * MICRO),
            latency_ns: Nanos(5_000 * MICRO),
            unexplained_ns: Nanos(40 * MICRO),
            stopped_ns: Nanos(60 * MICRO),
            slices: vec![
                slice(SliceKind::Thread, release, 4_000, "hog"),
                slice(SliceKind::Stopped, release + 4_040, 60, ""),
                slice(SliceKind::Own, release + 4_100, 900, "rt"),
            ],
            ..Spike::default()
        }
    }

    const AFTERWARDS: &str = "
        -2000 1 60 d switch rt/50/19 S hog/60/9
        4000  1 50 . start 1 hrtimer_wakeup 0
        4001  1 50 dh vector+ local_timer
        4002  1 50 dh timer+ 1 hrtimer_wakeup
        4003  1 50 dh waking rt/50/19
        4004  1 50 dh timer- 1
        4005  1 50 dh vector- local_timer
        4050  1 50 d switch rt/50/19 S swapper/1/0/120";

    fn late(previous: Option<PreviousCycle>, deadline: Option<i64>) -> Spike {
        let window =
            Window { own: false, previous, deadline_ns: deadline.map(Nanos), ..window(4_050.0, AFTERWARDS) };
        let spike = explain_window(&window, &host(), Cost::default());
        adds_up(&spike);
        spike
    }

    #[test]
    fn a_cycle_that_was_due_while_another_was_on_has_that_ones_causes_until_its_end() {
        let previous = PreviousCycle::of(&earlier(-1_000), Nanos(E));
        for deadline in [Some(MICRO), None] {
            let spike = late(previous.clone(), deadline);
            let lines = slice_lines(&spike);
            assert_eq!(lines[..3], ["thread hog 3000", "stopped 60", "own rt 900"], "{lines:#?}");
            assert!(
                spike.slices[..3].iter().all(|slice| slice.overrun_of_ns == Some(Nanos(E - 1_000 * MICRO)))
            );
            assert!(spike.slices[3..].iter().all(|slice| slice.overrun_of_ns.is_none()));
            assert_eq!((spike.inherited_ns, spike.latency_ns), (Nanos(4_000 * MICRO), Nanos(4_050 * MICRO)));
            assert_eq!(spike.stopped_ns, Nanos(60 * MICRO));
            assert_eq!((spike.expected_ns, spike.deadline_ns), (Nanos(E), deadline.map(Nanos)));
        }
    }

    #[test]
    fn the_third_of_a_row_names_the_first() {
        let second = late(PreviousCycle::of(&earlier(-1_000), Nanos(E)), Some(MICRO));
        let third = PreviousCycle::of(&second, Nanos(E + 1_000 * MICRO)).expect("it was on");
        let hog = third.slices.iter().find(|slice| slice.who.comm == "hog").expect("the hog");
        assert_eq!((hog.overrun_of_ns, hog.ns), (Some(Nanos(E - 1_000 * MICRO)), Nanos(2_000 * MICRO)));
        let own = third.slices.last().expect("its own time");
        assert_eq!(own.overrun_of_ns, Some(Nanos(E)), "the second's own work");
    }

    #[test]
    fn a_cycle_that_had_ended_or_was_not_explained_gives_nothing() {
        assert_eq!(PreviousCycle::of(&earlier(-5_000), Nanos(E)), None);
        assert_eq!(PreviousCycle::of(&earlier(1), Nanos(E)), None);
        let empty = Spike { slices: Vec::new(), stopped_ns: Nanos(0), ..earlier(-1_000) };
        let spike = late(PreviousCycle::of(&empty, Nanos(E)), Some(MICRO));
        assert!(spike.unexplained_ns.0 >= 4_000 * MICRO, "{:?}", slice_lines(&spike));
        assert!(spike.unexplained_why.starts_with("its previous cycle overran"), "{}", spike.unexplained_why);
        // A stop counts for each of them.
        let stopped = Spike { slices: vec![slice(SliceKind::Stopped, -1_000, 4_900, "")], ..empty };
        let spike = late(PreviousCycle::of(&stopped, Nanos(E)), Some(MICRO));
        assert_eq!((spike.stopped_ns, spike.unexplained_why.as_str()), (Nanos(3_900 * MICRO), ""));
    }

    proptest! {
        #[test]
        fn whatever_is_inherited_the_sums_hold(
            slices in prop::collection::vec((any::<i64>(), any::<i64>()), 0..20),
            near in prop::collection::vec((-3_000..6_000i64, -10..3_000i64), 0..20),
            (release, end) in (-9_000..9_000i64, any::<i64>()),
            (end_near, deadline) in (prop::option::of(-10..6_000i64), any::<bool>()),
        ) {
            let one = |&(at, ns): &(i64, i64)| {
                let (start_ns, ns, evidence) = (Nanos(at), Nanos(ns), "x".into());
                Slice { start_ns, ns, evidence, ..Slice::default() }
            };
            let far = slices.iter().map(one);
            let kind = |at: i64| if at % 2 == 0 { SliceKind::Irq } else { SliceKind::Stopped };
            let near = near.iter().map(|&(at, us)| slice(kind(at), at, us, "irq"));
            let end_ns = end_near.map_or(Nanos(end), |end| Nanos(E + end * MICRO));
            let previous = PreviousCycle {
                release_ns: Nanos(E + release * MICRO),
                end_ns,
                slices: near.chain(far).collect(),
            };
            let spike = late(Some(previous), deadline.then_some(MICRO));
            prop_assert!(spike.stopped_ns.0 >= 0 && spike.stopped_ns <= spike.latency_ns);
            prop_assert!(spike.inherited_ns.0 >= 0 && spike.inherited_ns <= spike.latency_ns);
        }
    }
}
