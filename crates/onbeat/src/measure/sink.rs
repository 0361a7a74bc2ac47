//! Where results go while a run is on: `measure` knows no more of bundles and screens than this.

use super::total::Total;
use bundle::tail::Tail;
use model::run::{Block, Run};
use model::units::Nanos;

/// What the last second brought.
pub struct Progress<'a> {
    /// The blocks taken, for `blocks.jsonl`.
    pub blocks: &'a [Block],
    /// The same whole, for `tail`.
    pub tails: &'a [Tail],
    /// The sums so far.
    pub totals: &'a [Total],
    /// Time since slot 0.
    pub elapsed: Nanos,
    /// The planned length.
    pub duration: Option<Nanos>,
}

/// Where results go while the run is on.
pub trait Sink {
    /// Takes the blocks of the last second; an error says what is lost, and measuring goes on.
    fn second(&mut self, tick: &Progress) -> Result<(), String>;

    /// Takes all statistics so far; an error says what is lost, and measuring goes on.
    fn checkpoint(&mut self, run: &Run) -> Result<(), String>;
}
