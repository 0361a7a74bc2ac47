//! The receiver of results during a run: all that `measure` knows of bundles and screens.

use super::block::DrainedBlock;
use super::total::Total;
use model::run::{Block, Run};
use model::units::{Cpu, Nanos};

/// A full block, with all that a checkpoint sums: a killed run is recovered from these.
#[derive(Default)]
pub struct ClosedBlock {
    pub cpu: Cpu,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC at its time.
    pub wall_offset: Nanos,
    pub block: DrainedBlock,
}

/// The results of the last second.
pub struct Progress<'a> {
    /// The records for `blocks.jsonl`.
    pub blocks: &'a [Block],
    /// The same blocks in full.
    pub closed: &'a [ClosedBlock],
    /// The sums so far.
    pub totals: &'a [Total],
    /// Time since slot 0.
    pub elapsed: Nanos,
    pub duration: Option<Nanos>,
    /// Of a hunt that follows threads, a line for each.
    pub threads: &'a [ThreadProgress],
    /// Of any hunt, its spikes so far.
    pub spikes: Option<&'a SpikeProgress>,
}

/// What a hunt has found so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpikeProgress {
    /// Late wake-ups and cycles.
    pub count: u64,
    /// Who took most of them, as far as one slice shows; `""` before the first.
    pub top: String,
}

/// What is known of a followed thread so far.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadProgress {
    /// Name and number.
    pub name: String,
    pub period: Option<Nanos>,
    pub cycles: u64,
    /// Null where there is no deadline yet.
    pub late: Option<u64>,
    pub worst: Option<Nanos>,
    /// What took most of the worst response.
    pub culprit: String,
}

/// Takes results; an error reports what is lost, and measuring goes on.
pub trait Sink {
    /// Takes the blocks of the last second.
    fn second(&mut self, progress: &Progress) -> Result<(), String>;

    /// Takes all statistics so far.
    fn checkpoint(&mut self, run: &Run) -> Result<(), String>;
}
