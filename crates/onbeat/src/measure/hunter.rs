//! What a hunt adds to measuring: rounds of the loop before slot 0 whose samples do not count, and
//! what is done with each wake-up beyond a threshold.

use super::block::DrainedBlock;
use super::late::{LATE_QUEUE_CAPACITY, LateWakeup};
use super::sink::SpikeProgress;
use model::error::Result;
use model::run::{Block, Run};
use model::units::{Cpu, Nanos};

/// How often the housekeeping thread of a hunt looks for late wake-ups; its own timer shows that
/// its CPU runs.
pub const POLL_INTERVAL: Nanos = Nanos(10_000_000);

/// No slot of a round takes longer, so that a long interval does not make long rounds.
pub const MAX_ROUND_INTERVAL: Nanos = Nanos(20_000_000);

/// A measuring thread, as a hunter sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuringThread {
    pub cpu: Cpu,
    pub id: i32,
}

/// The rounds before slot 0; called by the housekeeping thread while the measuring threads wait.
pub trait Rounds {
    /// How many there are to be.
    fn rounds(&self) -> usize;

    /// How many late wake-ups of a thread may wait for it.
    fn late_capacity(&self) -> usize {
        LATE_QUEUE_CAPACITY
    }

    /// Prepares a round; returns its wake-ups per CPU. A refusal ends the run.
    fn prepare_round(&mut self, round: usize, threads: &[MeasuringThread]) -> Result<u64>;

    /// The round's samples, a block per CPU, and the longest delay of the housekeeping thread
    /// meanwhile.
    fn round_done(&mut self, round: usize, blocks: &[DrainedBlock], slowest: Nanos);

    /// Prepares the run itself; returns the threshold of a spike.
    fn arm(&mut self, run: &mut Run) -> Result<Nanos>;
}

/// What is done with spikes during the run; called by the housekeeping thread.
pub trait OnSpikes {
    /// How often it is asked.
    fn poll_interval(&self) -> Nanos {
        POLL_INTERVAL
    }

    /// Takes late wake-ups, and how many in all did not fit into the queue; called every
    /// [`OnSpikes::poll_interval`], late wake-ups or not.
    fn on_spikes(&mut self, late: &[LateWakeup], lost: u64);

    /// What was found so far, for the screen.
    fn so_far(&self) -> Option<SpikeProgress> {
        None
    }

    /// The records of a second.
    fn second(&mut self, blocks: &[Block]);

    /// Before `run` is written: at checkpoints, and `last` at the end.
    fn fill(&mut self, run: &mut Run, last: bool);
}

/// A hunt while onbeat measures.
pub trait Hunter: Rounds + OnSpikes {}

impl<H: Rounds + OnSpikes> Hunter for H {}
