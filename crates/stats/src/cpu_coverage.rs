//! Blocks of a run with data of a CPU, as ranges: their number does not grow with the length of the
//! run.

use std::collections::BTreeMap;

/// Blocks and time that the lines of one CPU cover.
#[derive(Debug, Default)]
pub(super) struct CpuCoverage {
    /// Blocks, as stretches from a first one to the one after the last.
    blocks: BTreeMap<i64, i64>,
    /// Sum of the lengths of its lines.
    pub(super) span: i64,
}

impl CpuCoverage {
    /// Adds a block; false if there was a line of it already.
    pub(super) fn is_new(&mut self, index: i64) -> bool {
        let before = self.blocks.range(..=index).next_back().map(|(&from, &to)| (from, to));
        if before.is_some_and(|(_, to)| index < to) {
            return false;
        }
        self.insert(index, index.saturating_add(1), before);
        true
    }

    /// Adds the blocks `from..to`; false if there was a line of any of them already.
    pub(super) fn are_new(&mut self, from: i64, to: i64) -> bool {
        let before = self.blocks.range(..to).next_back().map(|(&from, &to)| (from, to));
        if before.is_some_and(|(_, end)| from < end) {
            return false;
        }
        self.insert(from, to, before);
        true
    }

    fn insert(&mut self, from: i64, mut to: i64, before: Option<(i64, i64)>) {
        if let Some(after) = self.blocks.remove(&to) {
            to = after;
        }
        let from = before.filter(|(_, end)| *end == from).map_or(from, |(first, _)| first);
        self.blocks.insert(from, to);
    }
}
