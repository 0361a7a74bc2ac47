//! Hooks of a hunt in a measurement: rounds of the loop before slot 0 whose samples do not count,
//! and the treatment of wake-ups beyond a threshold.

use super::block::DrainedBlock;
use super::late::{LATE_QUEUE_CAPACITY, LateWakeup};
use super::sink::SpikeProgress;
use model::error::Result;
use model::run::{Block, Run};
use model::units::{Cpu, Nanos};

/// Interval at which a hunt's housekeeping thread polls for late wake-ups; its timer shows that its
/// CPU runs.
pub const POLL_INTERVAL: Nanos = Nanos(10_000_000);

/// Maximum interval of the slots of a round: a long interval must not make long rounds.
pub const MAX_ROUND_INTERVAL: Nanos = Nanos(20_000_000);

/// Measuring thread, as seen by a hunter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuringThread {
    pub cpu: Cpu,
    pub id: i32,
}

/// Rounds before slot 0; called by the housekeeping thread while the measuring threads wait.
pub trait Rounds {
    /// Number of rounds.
    fn rounds(&self) -> usize;

    /// Capacity for the late wake-ups of a thread.
    fn late_capacity(&self) -> usize {
        LATE_QUEUE_CAPACITY
    }

    /// Prepares a round; returns its wake-ups per CPU. An error ends the run.
    fn prepare_round(&mut self, round: usize, threads: &[MeasuringThread]) -> Result<u64>;

    /// Takes the round's samples, a block per CPU, and the longest delay of the housekeeping thread
    /// during it.
    fn round_done(&mut self, round: usize, blocks: &[DrainedBlock], slowest: Nanos);

    /// Prepares the run itself; returns the threshold of a spike.
    fn arm(&mut self, run: &mut Run) -> Result<Nanos>;
}

/// Treatment of spikes during the run; called by the housekeeping thread.
pub trait OnSpikes {
    /// Interval between calls of [`OnSpikes::on_spikes`].
    fn poll_interval(&self) -> Nanos {
        POLL_INTERVAL
    }

    /// Takes late wake-ups, and the total number that did not fit into the queue; called every
    /// [`OnSpikes::poll_interval`], even without late wake-ups.
    fn on_spikes(&mut self, late: &[LateWakeup], lost: u64);

    /// Spikes found up to now, for the screen.
    fn so_far(&self) -> Option<SpikeProgress> {
        None
    }

    /// Takes the records of a second.
    fn second(&mut self, blocks: &[Block]);

    /// Fills `run` before it is written: at checkpoints, and at the end with `last`.
    fn fill(&mut self, run: &mut Run, last: bool);
}

/// A hunt with onbeat's measuring threads.
pub trait Hunter: Rounds + OnSpikes {}

impl<H: Rounds + OnSpikes> Hunter for H {}
