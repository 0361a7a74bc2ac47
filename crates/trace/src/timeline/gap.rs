//! Gaps without events on any CPU, and the evidence on each.

use super::case::{Case, Stop, StopCertainty};
use super::own::MAX_BOUNDED_NS;
use crate::event::{Named, What};
use model::sort::CompactSort;

/// Limit of gaps, of which the longest are used.
const MAX_GAPS: usize = 64;

/// Longest time by which a running CPU takes its timer's interrupt late: with interrupts off, on a
/// slow machine.
pub(super) const MAX_LATE_INTERRUPT_NS: i64 = 4 * MAX_BOUNDED_NS;

/// Longest time that a host takes to run an idle virtual CPU again, because it ran others: that is
/// not a stop of all CPUs.
pub(super) const MAX_LATE_VCPU_NS: i64 = 8 * MAX_BOUNDED_NS;

/// Limit of events of a CPU before a gap that are searched for the start of a timer.
pub(super) const MAX_EVENTS_BACK: usize = 4_096;

/// Timer whose last event before a gap is its start.
pub(super) struct StartedTimer<'e> {
    pub timer: u64,
    /// Due time in ns.
    pub due: i64,
    pub start: &'e Named,
}

/// Timers that were started and have not expired, by the last of these events, the latest start
/// first.
pub(super) fn started_timers<'e>(events: &'e [&'e Named]) -> impl Iterator<Item = StartedTimer<'e>> {
    let mut seen: Vec<u64> = Vec::new();
    events.iter().rev().take(MAX_EVENTS_BACK).filter_map(move |&start| {
        let (timer, due) = match start.what {
            What::TimerStart { timer, expires, .. } => (timer, Some(expires.0)),
            What::TimerEntry { timer, .. } => (timer, None),
            _ => return None,
        };
        // Only the last event of a timer counts.
        if seen.contains(&timer) {
            return None;
        }
        seen.push(timer);
        due.map(|due| StartedTimer { timer, due, start })
    })
}

#[derive(Clone, Copy)]
pub(super) struct Gap {
    /// Time of the last event before the gap.
    pub start: i64,
    /// Time of the first event after it.
    pub end: i64,
    /// Time since which a timer was due.
    pub due: Option<i64>,
    /// True if a busy CPU missed its ticks.
    pub missed: bool,
    /// True if work of a CPU may silence others.
    pub inside: bool,
}

/// Longest times without an event on any CPU.
pub(super) fn gaps(case: &Case<'_>) -> Vec<Gap> {
    let mut times: Vec<i64> = case.window.events.iter().map(|event| event.time.0).collect();
    times.sort_unstable();
    let pairs = times.windows(2).map(|pair| (pair[0], pair[1]));
    let long = |&(start, end): &(i64, i64)| {
        end.saturating_sub(start) > MAX_BOUNDED_NS && end > case.from && start < case.to
    };
    let open = |(start, end)| Gap { start, end, due: None, missed: false, inside: false };
    let mut gaps: Vec<Gap> = pairs.filter(long).map(open).collect();
    gaps.compact_sort_by_key(|gap| gap.start.saturating_sub(gap.end));
    gaps.truncate(MAX_GAPS);
    gaps
}

impl Gap {
    /// Stops in the gap with their start and end times; empty if it was none.
    pub(super) fn stops(&self, certainty: StopCertainty) -> Vec<(i64, i64, Stop)> {
        let stop = |certainty, estimated| Stop { certainty, estimated };
        match self.due {
            // Nothing explains the time before, and the stop has most of the gap.
            Some(due) if due.saturating_sub(self.start) <= self.end.saturating_sub(due) => {
                vec![(self.start, due, stop(certainty, true)), (due, self.end, stop(certainty, false))]
            }
            Some(due) => vec![(due, self.end, stop(certainty, false))],
            None if self.missed && !self.inside => {
                vec![(self.start, self.end, stop(StopCertainty::Likely, true))]
            }
            None => Vec::new(),
        }
    }
}
