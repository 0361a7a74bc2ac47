//! What a hunt adds to measuring: rounds of the loop before slot 0 whose samples do not count, and the wake-ups
//! beyond a threshold, handed over one by one.
//!
//! The loop itself gains one comparison. It tells nobody: the housekeeping thread comes and looks.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::*};

use super::block::DrainedBlock;
use model::error::Outcome;
use model::run::{Block, Run};
use model::units::{Cpu, Nanos};

/// Late wake-ups that wait for the housekeeping thread; more than that are counted.
pub const LATE_QUEUE_CAPACITY: usize = 256;

/// How often the housekeeping thread looks for late wake-ups; its own timer shows that its CPU goes on.
pub const POLL_INTERVAL: Nanos = Nanos(10_000_000);

/// No slot of a round takes longer, so that a long interval does not make long rounds.
pub const MAX_ROUND_INTERVAL: Nanos = Nanos(20_000_000);

/// A wake-up beyond the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateWakeup {
    /// Its CPU.
    pub cpu: Cpu,
    /// The slot's number.
    pub cycle: u64,
    /// When it was due.
    pub expected: Nanos,
    /// When it came.
    pub actual: Nanos,
}

/// Late wake-ups in transit from one measuring thread to the housekeeping thread.
#[derive(Default)]
pub struct LateQueue {
    slots: Box<[[AtomicI64; 3]]>,
    pushed: AtomicU64,
    popped: AtomicU64,
    lost: AtomicU64,
}

impl LateQueue {
    /// With a capacity of 0 where there is no hunt.
    pub fn new(capacity: usize) -> LateQueue {
        let slot = || [const { AtomicI64::new(0) }; 3];
        LateQueue { slots: (0..capacity).map(|_| slot()).collect(), ..LateQueue::default() }
    }

    /// Hands one over; for the measuring thread only.
    #[cold]
    #[inline(never)]
    pub fn push(&self, cycle: u64, expected: Nanos, actual: Nanos) {
        let pushed = self.pushed.load(Relaxed);
        let capacity = self.slots.len() as u64;
        if pushed - self.popped.load(Acquire) >= capacity {
            self.lost.store(self.lost.load(Relaxed) + 1, Relaxed);
            return;
        }
        let slot = &self.slots[(pushed % capacity) as usize];
        slot.iter()
            .zip([cycle as i64, expected.0, actual.0])
            .for_each(|(to, value)| to.store(value, Relaxed));
        self.pushed.store(pushed + 1, Release);
    }

    /// Takes the oldest; for the housekeeping thread only.
    pub fn pop(&self, cpu: Cpu) -> Option<LateWakeup> {
        let popped = self.popped.load(Relaxed);
        if self.pushed.load(Acquire) == popped {
            return None;
        }
        let slot = &self.slots[(popped % self.slots.len() as u64) as usize];
        let [cycle, expected, actual] = [0, 1, 2].map(|at: usize| slot[at].load(Relaxed));
        self.popped.store(popped + 1, Release);
        Some(LateWakeup { cpu, cycle: cycle as u64, expected: Nanos(expected), actual: Nanos(actual) })
    }

    /// How many did not fit so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// The memory that the loop writes, to be locked.
    pub fn pages(&self) -> &[[AtomicI64; 3]] {
        &self.slots
    }

    /// Forgets what is there, before a round begins.
    pub fn clear(&self) {
        self.popped.store(self.pushed.load(Relaxed), Relaxed);
        self.lost.store(0, Relaxed);
        self.slots.iter().flatten().for_each(|word| word.store(0, Relaxed));
    }
}

/// A measuring thread, as a hunter sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuringThread {
    /// Where it measures.
    pub cpu: Cpu,
    /// Its thread id.
    pub thread: i32,
}

/// Who hunts while `measure` measures; every call is made by the housekeeping thread.
pub trait Hunter {
    /// How many rounds there are to be before slot 0.
    fn rounds(&self) -> usize;

    /// Makes ready for a round, while the measuring threads wait; returns its wake-ups per CPU. A refusal ends the run.
    fn prepare_round(&mut self, round: usize, threads: &[MeasuringThread]) -> Outcome<u64>;

    /// What the round brought, a block per CPU, and the latest that the housekeeping thread came meanwhile.
    fn round_done(&mut self, round: usize, blocks: &[DrainedBlock], slowest: Nanos);

    /// Makes ready for the run itself, while the measuring threads wait; returns the threshold of a spike.
    fn arm(&mut self, run: &mut Run) -> Outcome<Nanos>;

    /// Takes late wake-ups, and how many in all did not fit into the queue; called every [`POLL_INTERVAL`].
    fn on_spikes(&mut self, late: &[LateWakeup], lost: u64);

    /// The records of a second.
    fn second(&mut self, blocks: &[Block]);

    /// Before `run` is written: at checkpoints, and at last at the end.
    fn fill(&mut self, run: &mut Run, last: bool);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_wakeups_come_in_order_and_what_finds_no_room_is_counted() {
        let late = LateQueue::new(2);
        for cycle in 0..3 {
            late.push(cycle, Nanos(10 * cycle as i64), Nanos(1));
        }
        assert_eq!(late.lost(), 1);
        let popped: Vec<u64> = std::iter::from_fn(|| late.pop(Cpu(1))).map(|late| late.cycle).collect();
        assert_eq!(popped, [0, 1]);
        late.push(7, Nanos(5), Nanos(6));
        let expected = LateWakeup { cpu: Cpu(1), cycle: 7, expected: Nanos(5), actual: Nanos(6) };
        assert_eq!((late.pop(Cpu(1)), late.pop(Cpu(1))), (Some(expected), None));
        late.push(8, Nanos(0), Nanos(0));
        late.clear();
        assert_eq!((late.pop(Cpu(1)), late.lost()), (None, 0));
    }

    #[test]
    fn without_room_all_are_counted() {
        let late = LateQueue::new(0);
        late.push(1, Nanos(0), Nanos(0));
        assert_eq!((late.pop(Cpu(0)), late.lost()), (None, 1));
    }
}
