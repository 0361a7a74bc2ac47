//! Gaps in which the whole machine stood still: a hypervisor or firmware stopped it from outside.
//!
//! A CPU that is busy and ticking ticks once per period; that it is silent for several, at the very time at which
//! the victim's CPU is silent too, is nothing that the victim's CPU does. Two things inside do silence all CPUs:
//! `stop_machine`, in the threads `migration/N`, and a lock that is waited for with interrupts off. So a gap
//! counts only if, at its begin, a CPU other than the victim's runs a thread that is neither idle nor the stopper,
//! is in no interrupt, waits for no lock, and has ticked just before; and if it goes on right after. Where
//! events are missing, silence says nothing.
//!
//! Source: kernel/time/tick-sched.c.

use super::case::Case;
use super::spans::Spans;
use super::state::{Stretch, Top, stretches};
use super::tasks::is_stopper;
use crate::trace::event::{Named, Vector, What};

/// Periods of the tick that a gap is longer than.
const PERIODS: i64 = 3;

/// Where everything was silent.
pub(super) fn find(case: &Case<'_>) -> Spans<()> {
    if case.window.left_out > 0 || case.window.events_lost > 0 || case.cpus.len() < 2 {
        return Spans::new(Vec::new());
    }
    let tick = case.host.hz.filter(|&hz| hz > 0).map_or(10_000_000, |hz| 1_000_000_000 / i64::from(hz));
    let mut times: Vec<i64> = case.window.events.iter().map(|event| event.time.0).collect();
    times.sort_unstable();
    let gaps = times.windows(2).map(|pair| (pair[0], pair[1]));
    let long = |&(start, end): &(i64, i64)| {
        end.saturating_sub(start) > tick.saturating_mul(PERIODS) && end > case.from && start < case.to
    };
    let gaps: Vec<(i64, i64)> = gaps.filter(long).collect();
    if gaps.is_empty() {
        return Spans::new(Vec::new());
    }
    let mut stopped = vec![false; gaps.len()];
    let mut inside = vec![false; gaps.len()];
    for (&cpu, events) in &case.cpus {
        let stretches = stretches(events, case.to);
        for (at, &(start, end)) in gaps.iter().enumerate() {
            let after = stretches.partition_point(|stretch| stretch.start <= start);
            let Some(stretch) = stretches[..after].last().filter(|stretch| stretch.end > start) else {
                continue;
            };
            inside[at] |= works(case, events, stretch);
            let busy = cpu != case.home() && cpu != case.window.cpu && is_busy(stretch);
            stopped[at] |= busy && ticks(events, start, end, tick);
        }
    }
    let certain = gaps.into_iter().zip(stopped.into_iter().zip(inside));
    Spans::new(
        certain
            .filter(|(_, (stopped, inside))| *stopped && !inside)
            .map(|(gap, _)| (gap.0, gap.1, ()))
            .collect(),
    )
}

fn is_busy(stretch: &Stretch) -> bool {
    matches!(stretch.top, Top::Thread | Top::Work(_)) && stretch.pid.is_some_and(|pid| pid != 0)
}

/// Whether the CPU does what silences others: `stop_machine`, or waits for a lock.
fn works(case: &Case<'_>, events: &[&Named], stretch: &Stretch) -> bool {
    if case.current(stretch).is_some_and(|task| is_stopper(&task)) {
        return true;
    }
    let end = events.partition_point(|event| event.time.0 <= stretch.start);
    let last = events[..end].iter().rev().find(|event| {
        matches!(event.what, What::ContentionBegin { .. } | What::ContentionEnd { .. } | What::Switch { .. })
    });
    last.is_some_and(|event| matches!(event.what, What::ContentionBegin { flags, .. } if flags & 1 != 0))
}

/// Whether the tick came in the two periods before, and whether the CPU goes on within one after.
fn ticks(events: &[&Named], start: i64, end: i64, tick: i64) -> bool {
    let within = |from: i64, to: i64| {
        let begin = events.partition_point(|event| event.time.0 < from);
        events[begin..].iter().take_while(move |event| event.time.0 <= to)
    };
    within(start.saturating_sub(tick.saturating_mul(2)), start).any(|event| is_tick(event))
        && within(end, end.saturating_add(tick)).next().is_some()
}

fn is_tick(event: &Named) -> bool {
    match &event.what {
        What::VectorEntry { vector } => *vector == Vector::LocalTimer,
        What::TimerEntry { function, .. } => function.starts_with("tick_"),
        _ => false,
    }
}
