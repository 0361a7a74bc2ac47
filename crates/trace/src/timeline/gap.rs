//! Gaps in which no CPU had an event, and what is known of each.

use super::case::{Case, Stop, StopCertainty};
use super::own::MAX_BOUNDED_NS;
use crate::event::{Named, What};

/// Gaps that are looked at, the longest ones.
const MAX_GAPS: usize = 64;

/// How long a CPU may go on after a timer was due before it takes its interrupt: with interrupts
/// off, on a slow machine.
pub(super) const MAX_LATE_INTERRUPT_NS: i64 = 4 * MAX_BOUNDED_NS;

/// How long a host may take to run a virtual CPU again that was idle: others ran there meanwhile,
/// that is no stop of all.
pub(super) const MAX_LATE_VCPU_NS: i64 = 8 * MAX_BOUNDED_NS;

/// Events of a CPU before a gap among which a timer's start is searched.
pub(super) const MAX_EVENTS_BACK: usize = 4_096;

/// A timer whose last event of those looked at is its start.
pub(super) struct StartedTimer<'e> {
    pub timer: u64,
    /// The time in ns at which it is due.
    pub due: i64,
    pub start: &'e Named,
}

/// The timers that were started and have not expired among the last of these events, the latest
/// start first.
pub(super) fn started_timers<'e>(events: &'e [&'e Named]) -> impl Iterator<Item = StartedTimer<'e>> {
    let mut seen: Vec<u64> = Vec::new();
    events.iter().rev().take(MAX_EVENTS_BACK).filter_map(move |&start| {
        let (timer, due) = match start.what {
            What::TimerStart { timer, expires, .. } => (timer, Some(expires.0)),
            What::TimerEntry { timer, .. } => (timer, None),
            _ => return None,
        };
        // The last event of a timer decides.
        if seen.contains(&timer) {
            return None;
        }
        seen.push(timer);
        due.map(|due| StartedTimer { timer, due, start })
    })
}

#[derive(Clone, Copy)]
pub(super) struct Gap {
    /// The last event before it.
    pub start: i64,
    /// The first event after it.
    pub end: i64,
    /// Since when a timer was due.
    pub due: Option<i64>,
    /// Whether a busy CPU missed its ticks.
    pub missed: bool,
    /// Whether a CPU does what silences others.
    pub inside: bool,
}

/// The longest times without an event of any CPU.
pub(super) fn gaps(case: &Case<'_>) -> Vec<Gap> {
    let mut times: Vec<i64> = case.window.events.iter().map(|event| event.time.0).collect();
    times.sort_unstable();
    let pairs = times.windows(2).map(|pair| (pair[0], pair[1]));
    let long = |&(start, end): &(i64, i64)| {
        end.saturating_sub(start) > MAX_BOUNDED_NS && end > case.from && start < case.to
    };
    let made = |(start, end)| Gap { start, end, due: None, missed: false, inside: false };
    let mut gaps: Vec<Gap> = pairs.filter(long).map(made).collect();
    gaps.sort_by_key(|gap| gap.start.saturating_sub(gap.end));
    gaps.truncate(MAX_GAPS);
    gaps
}

impl Gap {
    /// From when to when it was a stop, and how certain that is; nothing if it was none.
    pub(super) fn stops(&self, certainty: StopCertainty) -> Vec<(i64, i64, Stop)> {
        let stop = |certainty, estimated| Stop { certainty, estimated };
        match self.due {
            // Nothing shows what the time before was, and a stop has most of it.
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
