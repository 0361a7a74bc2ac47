//! Wake-ups beyond a hunt's threshold, handed over one by one from the loop to the housekeeping
//! thread.
//!
//! The loop needs one more comparison. It notifies no thread: the housekeeping thread polls.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::*};

use model::units::{Cpu, Nanos};

/// Capacity for late wake-ups that wait for the housekeeping thread; further ones are counted.
pub const LATE_QUEUE_CAPACITY: usize = 256;

/// Wake-up beyond the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateWakeup {
    pub cpu: Cpu,
    pub cycle: u64,
    /// Time when it was due.
    pub expected: Nanos,
    pub actual: Nanos,
}

/// Queue of late wake-ups from one measuring thread to the housekeeping thread.
#[derive(Default)]
pub struct LateQueue {
    slots: Box<[[AtomicI64; 3]]>,
    pushed: AtomicU64,
    popped: AtomicU64,
    lost: AtomicU64,
}

impl LateQueue {
    /// A queue with this capacity, 0 without a hunt.
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

    /// Number of late wake-ups that did not fit.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// Memory that the loop writes, to be locked.
    pub fn pages(&self) -> &[[AtomicI64; 3]] {
        &self.slots
    }

    /// Clears the queue before a round begins.
    pub fn clear(&self) {
        self.popped.store(self.pushed.load(Relaxed), Relaxed);
        self.lost.store(0, Relaxed);
        self.slots.iter().flatten().for_each(|word| word.store(0, Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_wake_ups_come_in_order_and_overflow_is_counted() {
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
