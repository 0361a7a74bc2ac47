//! Records in the order of time: perf writes each CPU's buffer as a whole, in rounds.
//!
//! Source: `PERF_RECORD_FINISHED_ROUND` in tools/perf/util/event.h,
//! tools/perf/util/ordered-events.c.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use model::units::{Cpu, Nanos};
use trace::event::Raw;

/// Maximum number of waiting records; if a round has more, the earliest are handed out early.
const MAX_HELD: usize = 200_000;

/// Content of a record.
#[derive(Clone, Debug)]
pub enum PerfStep {
    Event(Raw),
    Lost(Cpu, u64),
}

/// A record that waits for earlier ones, with its place in the file.
struct Waiting {
    time: Nanos,
    place: u64,
    step: PerfStep,
}

impl Ord for Waiting {
    fn cmp(&self, other: &Waiting) -> Ordering {
        (self.time, self.place).cmp(&(other.time, other.place))
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Waiting {}

/// Sorts records by time.
#[derive(Default)]
pub struct RecordOrder {
    waiting: BinaryHeap<Reverse<Waiting>>,
    next: u64,
    /// Time of the latest record so far.
    latest: Nanos,
    /// Time of the latest record of the rounds before this one.
    rounds: Nanos,
    /// Time up to which all records are present.
    complete: Nanos,
    handed: Nanos,
    /// Number of records that arrived after later ones had been handed out.
    pub late: u64,
}

impl RecordOrder {
    /// Adds a record.
    pub fn push(&mut self, time: Nanos, step: PerfStep) {
        self.latest = self.latest.max(time);
        if time < self.handed {
            self.late += 1;
            return;
        }
        self.waiting.push(Reverse(Waiting { time, place: self.next, step }));
        self.next += 1;
    }

    /// Ends a round: records that are not later than the round before it are complete.
    pub fn round(&mut self) {
        (self.complete, self.rounds) = (self.rounds, self.latest);
    }

    /// Ends the input.
    pub fn end(&mut self) {
        self.complete = Nanos(i64::MAX);
    }

    /// Returns the next record that is complete, or has to make space.
    pub fn pop(&mut self) -> Option<(Nanos, PerfStep)> {
        let first = &self.waiting.peek()?.0;
        if first.time > self.complete && self.waiting.len() < MAX_HELD {
            return None;
        }
        let Waiting { time, step, .. } = self.waiting.pop()?.0;
        self.handed = time;
        Some((time, step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(ordered: &mut RecordOrder) -> Vec<i64> {
        std::iter::from_fn(|| ordered.pop()).map(|(time, _)| time.0).collect()
    }

    #[test]
    fn what_two_rounds_have_is_in_order() {
        let mut ordered = RecordOrder::default();
        let push = |ordered: &mut RecordOrder, times: &[i64]| {
            times.iter().for_each(|&time| ordered.push(Nanos(time), PerfStep::Lost(Cpu(0), 1)));
        };
        push(&mut ordered, &[10, 30, 20, 40]);
        ordered.round();
        assert_eq!(take(&mut ordered), [0i64; 0]);
        push(&mut ordered, &[35, 60, 15, 50]);
        ordered.round();
        assert_eq!(take(&mut ordered), [10, 15, 20, 30, 35, 40]);
        push(&mut ordered, &[39, 55]);
        ordered.end();
        assert_eq!((take(&mut ordered), ordered.late), (vec![50, 55, 60], 1));
    }
}
