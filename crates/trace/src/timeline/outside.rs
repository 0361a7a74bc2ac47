//! Time in which something outside stopped the CPU or the machine, as a separate kind.
//!
//! It is exact if a timer that was due, or a path of known work, limits it; the length of a silence
//! without one is estimated, and so is that of a coarse counter. Time with neither a slice nor such
//! evidence stays unexplained.

use super::case::{Case, Cause, Stop, StopCertainty};
use super::classes::classes;
use super::own::MAX_BOUNDED_NS;
use super::state::{RunningContext, Stretch};
use model::run::{Slice, Spike, Who};
use model::slice::SliceKind;
use model::units::Nanos;

/// Stop shown by the silence of all CPUs.
pub(super) fn silence(stop: Stop) -> Cause {
    let evidence = match (stop.certainty, stop.estimated) {
        (StopCertainty::Likely, _) => {
            "all CPUs were silent and a busy one missed its ticks; the length is estimated"
        }
        (_, true) => "all CPUs were silent until a due timer came late; the length is estimated",
        (_, false) => "all CPUs were silent, and a timer due on another one was late",
    };
    Cause { estimated: stop.estimated, ..Cause::new(SliceKind::Stopped, Who::default(), evidence) }
}

/// Stop in a path of bounded work.
pub(super) fn in_path(of: SliceKind) -> Cause {
    let evidence = format!("no event came in {}, for longer than its usual work", of.name());
    Cause::new(SliceKind::Stopped, Who::default(), evidence)
}

/// Cause of a piece of time in which the machine may have been stopped: the running context, if it
/// is more likely than the stop.
pub(super) fn instead_of(case: &Case<'_>, piece: &Stretch<'_>, ran: Option<Cause>) -> Option<Cause> {
    let stop = case.silent.at(piece.start).map(|found| found.2);
    let Some(stop) = stop else { return ran };
    let keeps_ticks_out = || {
        case.irqs_off.at(piece.start).is_some()
            || matches!(piece.top, RunningContext::Hard(_) | RunningContext::Call { .. })
    };
    let ran = match stop.certainty {
        StopCertainty::Proven => None,
        StopCertainty::Contested => ran.and_then(|cause| super::contested::contested(case, cause)),
        // An interrupt blocks ticks, as a section with interrupts off does.
        StopCertainty::Likely => ran.filter(|_| keeps_ticks_out()),
    };
    ran.or_else(|| Some(silence(stop)))
}

/// Sum of a spike's slices of this kind.
pub(super) fn total(slices: &[Slice]) -> Nanos {
    let stopped = slices.iter().filter(|slice| slice.kind == SliceKind::Stopped);
    Nanos(stopped.fold(0, |sum: i64, slice| sum.saturating_add(slice.ns.0)))
}

/// Attributes the unexplained time of a spike to a stop from outside of estimated length. Small
/// rests, which every wake-up has, stay unexplained.
pub fn attribute_to_outside(spike: &mut Spike, evidence: &str) {
    if !matters(spike.unexplained_ns, spike.latency_ns) {
        return;
    }
    let mut rest = spike.unexplained_ns.0;
    let mut cursor = spike.actual_ns.0.saturating_sub(spike.latency_ns.0);
    let mut slices = Vec::with_capacity(spike.slices.len() * 2 + 1);
    let end = Slice { start_ns: spike.actual_ns, ..Slice::default() };
    for slice in std::mem::take(&mut spike.slices).into_iter().chain([end]) {
        let gap = slice.start_ns.0.saturating_sub(cursor).min(rest);
        if gap > 0 {
            slices.push(Slice {
                kind: SliceKind::Stopped.into(),
                start_ns: Nanos(cursor),
                ns: Nanos(gap),
                evidence: evidence.to_owned(),
                estimated: true,
                ..Slice::default()
            });
            rest -= gap;
        }
        cursor = cursor.max(slice.start_ns.0.saturating_add(slice.ns.0));
        slices.push(slice);
    }
    slices.pop();
    spike.slices = slices;
    spike.unexplained_ns = Nanos(rest);
    spike.stopped_ns = total(&spike.slices);
    spike.classes = classes(spike);
    if !matters(spike.unexplained_ns, spike.latency_ns) {
        spike.unexplained_why.clear();
    }
}

/// True if unexplained time is worth mentioning: a tenth of a spike, or long in itself.
pub fn matters(unexplained: Nanos, latency: Nanos) -> bool {
    unexplained.0 > 0 && (unexplained.0 >= latency.0 / 10 || unexplained.0 >= MAX_BOUNDED_NS)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{adds_up, explained, slice_lines};
    use super::*;

    #[test]
    fn what_a_counter_shows_fills_the_rest_and_is_estimated() {
        // A hog has a part in the middle; the time before and after it has no cause.
        let hog = Slice {
            kind: SliceKind::Thread.into(),
            start_ns: Nanos(30_000_000),
            ns: Nanos(10_000_000),
            evidence: "x".to_owned(),
            ..Slice::default()
        };
        let mut spike = Spike {
            expected_ns: Nanos(20_000_000),
            actual_ns: Nanos(60_000_000),
            latency_ns: Nanos(40_000_000),
            unexplained_ns: Nanos(30_000_000),
            unexplained_why: "it cannot be told: x".to_owned(),
            slices: vec![hog],
            ..Spike::default()
        };
        attribute_to_outside(&mut spike, "counted");
        adds_up(&spike);
        assert_eq!(slice_lines(&spike), ["stopped 10000", "thread 10000", "stopped 20000", "unexplained 0"]);
        assert!(spike.slices.iter().all(|slice| slice.estimated == (slice.kind == SliceKind::Stopped)));
        assert_eq!((spike.stopped_ns, spike.unexplained_why.as_str()), (Nanos(30_000_000), ""));
        assert_eq!(spike.classes, [SliceKind::Stopped, SliceKind::Thread]);
    }

    #[test]
    fn small_change_stays_unexplained() {
        let hog = "-500 1 60 d switch rt/50/19 S hog/60/9\n2 1 60 dh vector+ local_timer
             3 1 60 dh timer+ 1 hrtimer_wakeup\n4 1 60 dh waking rt/50/19\n5 1 60 dh timer- 1
             5 1 60 dh vector- local_timer\n20005 1 60 d switch hog/60/9 S rt/50/19";
        let mut spike = explained(20_005.0, hog);
        let before = slice_lines(&spike);
        assert_eq!(before.last().map(String::as_str), Some("unexplained 2"));
        attribute_to_outside(&mut spike, "counted");
        assert_eq!(slice_lines(&spike), before);
    }

    #[test]
    fn a_damaged_spike_keeps_its_sum() {
        let slice = |start: i64, ns: i64| Slice {
            start_ns: Nanos(start),
            ns: Nanos(ns),
            kind: SliceKind::Irq.into(),
            ..Slice::default()
        };
        for slices in [vec![slice(i64::MAX, i64::MAX), slice(-5, 3)], vec![slice(0, i64::MIN)], vec![]] {
            let mut spike = Spike {
                actual_ns: Nanos(2_000_000),
                latency_ns: Nanos(2_000_000),
                unexplained_ns: Nanos(1_500_000),
                slices,
                ..Spike::default()
            };
            attribute_to_outside(&mut spike, "counted");
            assert_eq!(spike.stopped_ns.0 + spike.unexplained_ns.0, 1_500_000);
        }
    }
}
