//! What a hunt adds to measuring: rounds of the loop before slot 0 whose samples do not count, and the wake-ups
//! beyond a threshold, handed over one by one.
//!
//! The loop itself gains one comparison. It tells nobody: the housekeeping thread comes and looks.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::*};

use super::block::Taken;
use model::error::Outcome;
use model::run::{Block, Run};
use model::units::{Cpu, Nanos};

/// Catches that wait for the housekeeping thread; more than that are counted.
pub const ROOM: usize = 256;

/// How often the housekeeping thread looks for catches; its own timer shows that its CPU goes on.
pub const PULSE: Nanos = Nanos(10_000_000);

/// No slot of a round takes longer, so that a long interval does not make long rounds.
pub const ROUND_INTERVAL: Nanos = Nanos(20_000_000);

/// A wake-up beyond the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Catch {
    /// Its CPU.
    pub cpu: Cpu,
    /// The slot's number.
    pub cycle: u64,
    /// When it was due.
    pub expected: Nanos,
    /// When it came.
    pub actual: Nanos,
}

/// Catches on their way from one measuring thread to the housekeeping thread.
#[derive(Default)]
pub struct Catches {
    places: Box<[[AtomicI64; 3]]>,
    put: AtomicU64,
    taken: AtomicU64,
    lost: AtomicU64,
}

impl Catches {
    /// With room for as many; none where nobody hunts.
    pub fn new(room: usize) -> Catches {
        let place = || [const { AtomicI64::new(0) }; 3];
        Catches { places: (0..room).map(|_| place()).collect(), ..Catches::default() }
    }

    /// Hands one over; for the measuring thread only.
    #[cold]
    #[inline(never)]
    pub fn put(&self, cycle: u64, expected: Nanos, actual: Nanos) {
        let put = self.put.load(Relaxed);
        let room = self.places.len() as u64;
        if put - self.taken.load(Acquire) >= room {
            self.lost.store(self.lost.load(Relaxed) + 1, Relaxed);
            return;
        }
        let place = &self.places[(put % room) as usize];
        place
            .iter()
            .zip([cycle as i64, expected.0, actual.0])
            .for_each(|(to, value)| to.store(value, Relaxed));
        self.put.store(put + 1, Release);
    }

    /// Takes the oldest; for the housekeeping thread only.
    pub fn take(&self, cpu: Cpu) -> Option<Catch> {
        let taken = self.taken.load(Relaxed);
        if self.put.load(Acquire) == taken {
            return None;
        }
        let place = &self.places[(taken % self.places.len() as u64) as usize];
        let [cycle, expected, actual] = [0, 1, 2].map(|at: usize| place[at].load(Relaxed));
        self.taken.store(taken + 1, Release);
        Some(Catch { cpu, cycle: cycle as u64, expected: Nanos(expected), actual: Nanos(actual) })
    }

    /// How many found no room so far.
    pub fn lost(&self) -> u64 {
        self.lost.load(Relaxed)
    }

    /// The memory that the loop writes, to be locked.
    pub fn pages(&self) -> &[[AtomicI64; 3]] {
        &self.places
    }

    /// Forgets what is there, before a round begins.
    pub fn clear(&self) {
        self.taken.store(self.put.load(Relaxed), Relaxed);
        self.lost.store(0, Relaxed);
        self.places.iter().flatten().for_each(|word| word.store(0, Relaxed));
    }
}

/// A measuring thread, as a hunter sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measurer {
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
    fn prepare(&mut self, round: usize, measurers: &[Measurer]) -> Outcome<u64>;

    /// What the round brought, a block per CPU, and the latest that the housekeeping thread came meanwhile.
    fn heard(&mut self, round: usize, blocks: &[Taken], slowest: Nanos);

    /// Makes ready for the run itself, while the measuring threads wait; returns the threshold of a spike.
    fn arm(&mut self, run: &mut Run) -> Outcome<Nanos>;

    /// Takes catches, and how many in all found no room to wait in; called every [`PULSE`], catches or not.
    fn caught(&mut self, catches: &[Catch], lost: u64);

    /// The records of a second.
    fn second(&mut self, blocks: &[Block]);

    /// Before `run` is written: at checkpoints, and at last at the end.
    fn fill(&mut self, run: &mut Run, last: bool);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catches_come_in_order_and_what_finds_no_room_is_counted() {
        let catches = Catches::new(2);
        for cycle in 0..3 {
            catches.put(cycle, Nanos(10 * cycle as i64), Nanos(1));
        }
        assert_eq!(catches.lost(), 1);
        let taken: Vec<u64> = std::iter::from_fn(|| catches.take(Cpu(1))).map(|catch| catch.cycle).collect();
        assert_eq!(taken, [0, 1]);
        catches.put(7, Nanos(5), Nanos(6));
        let expected = Catch { cpu: Cpu(1), cycle: 7, expected: Nanos(5), actual: Nanos(6) };
        assert_eq!((catches.take(Cpu(1)), catches.take(Cpu(1))), (Some(expected), None));
        catches.put(8, Nanos(0), Nanos(0));
        catches.clear();
        assert_eq!((catches.take(Cpu(1)), catches.lost()), (None, 0));
    }

    #[test]
    fn without_room_all_are_counted() {
        let catches = Catches::new(0);
        catches.put(1, Nanos(0), Nanos(0));
        assert_eq!((catches.take(Cpu(0)), catches.lost()), (None, 1));
    }
}
