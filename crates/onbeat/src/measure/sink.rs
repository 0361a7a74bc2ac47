//! Receiver of results during a run: the interface of `measure` to bundles and screens.

use super::block::DrainedBlock;
use super::total::Total;
use model::error::Result;
use model::run::{Block, Run};
use model::units::{Cpu, Nanos};

/// Full block, with everything that a checkpoint sums: a killed run is recovered from these.
#[derive(Default)]
pub struct ClosedBlock {
    pub cpu: Cpu,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC at the time of the block.
    pub wall_offset: Nanos,
    pub block: DrainedBlock,
}

/// Results of the last second.
pub struct Progress<'a> {
    /// Records for `blocks.jsonl`.
    pub blocks: &'a [Block],
    /// The same blocks in full.
    pub closed: &'a [ClosedBlock],
    /// Sums up to now.
    pub totals: &'a [Total],
    /// Time since slot 0.
    pub elapsed: Nanos,
    pub duration: Option<Nanos>,
    /// A line for each followed thread; empty without any.
    pub threads: &'a [ThreadProgress],
    /// Spikes of a hunt up to now.
    pub spikes: Option<&'a SpikeProgress>,
}

/// Findings of a hunt up to now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpikeProgress {
    /// Number of late wake-ups and cycles.
    pub count: u64,
    /// Largest culprit by the longest slice of each spike; `""` before the first.
    pub top: String,
}

/// State of a followed thread up to now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadProgress {
    /// Name and ID.
    pub name: String,
    pub period: Option<Nanos>,
    pub cycles: u64,
    /// Null without a deadline.
    pub late: Option<u64>,
    pub worst: Option<Nanos>,
    /// Largest part of the worst response.
    pub culprit: String,
}

/// Receiver of results; an error says what is lost, and the run continues.
pub trait Sink {
    /// Takes the blocks of the last second.
    fn second(&mut self, progress: &Progress) -> Result<()>;

    /// Takes all statistics up to now.
    fn checkpoint(&mut self, run: &Run) -> Result<()>;

    /// True once the user ended the run other than by a signal; asked when the housekeeping thread
    /// is notified.
    fn ended_by_user(&self) -> bool {
        false
    }
}
