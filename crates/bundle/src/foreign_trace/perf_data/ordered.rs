//! Records in the order of time: perf writes each CPU's buffer as a whole, in rounds.
//!
//! Source: `PERF_RECORD_FINISHED_ROUND` in tools/perf/util/event.h,
//! tools/perf/util/ordered-events.c.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;

use model::units::{Cpu, Nanos};
use trace::event::Raw;

/// Records that are held; where a round has more the earliest go ahead.
const MAX_HELD: usize = 200_000;

/// The content of a record.
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

/// Puts records in order.
#[derive(Default)]
pub struct RecordOrder {
    waiting: BinaryHeap<Reverse<Waiting>>,
    next: u64,
    /// The latest record so far, and that of the rounds before this one.
    latest: Nanos,
    rounds: Nanos,
    /// All records up to here are there.
    complete: Nanos,
    handed: Nanos,
    /// Records that came when later ones had been handed out.
    pub late: u64,
}

impl RecordOrder {
    /// Takes a record.
    pub fn push(&mut self, time: Nanos, step: PerfStep) {
        self.latest = self.latest.max(time);
        if time < self.handed {
            self.late += 1;
            return;
        }
        self.waiting.push(Reverse(Waiting { time, place: self.next, step }));
        self.next += 1;
    }

    /// A round is over: what is not later than the one before it is complete.
    pub fn round(&mut self) {
        (self.complete, self.rounds) = (self.rounds, self.latest);
    }

    /// No more records come.
    pub fn end(&mut self) {
        self.complete = Nanos(i64::MAX);
    }

    /// The next record that is complete, or for which room is lacking.
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
