//! Blocks in the form that the bundle keeps for a killed run.

use crate::measure::sink::ClosedBlock;
use bundle::tail::Tail;

/// Reused records: memory freed while samples count may be unmapped.
#[derive(Default)]
pub struct RecoveryRecords(Vec<Tail>);

impl RecoveryRecords {
    /// Records of these blocks.
    pub fn of(&mut self, closed: &[ClosedBlock]) -> &[Tail] {
        if self.0.len() < closed.len() {
            self.0.resize_with(closed.len(), Tail::default);
        }
        self.0.iter_mut().zip(closed).for_each(|(tail, closed)| fill(tail, closed));
        &self.0[..closed.len()]
    }
}

fn fill(tail: &mut Tail, closed: &ClosedBlock) {
    let block = &closed.block;
    (tail.cpu, tail.wall_offset) = (closed.cpu, closed.wall_offset);
    (tail.start, tail.end) = (block.start, block.end);
    (tail.sum, tail.min, tail.missed) = (block.sum, block.min, block.missed);
    tail.rows.clone_from(&block.rows);
    tail.missed_rows.clone_from(&block.missed_rows);
    tail.worst.clear();
    tail.worst.extend(block.top.iter().map(|sample| (sample.latency, sample.cycle, sample.time)));
}
