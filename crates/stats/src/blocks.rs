//! Block maxima in columns: those of months are millions.

use model::column::Column;
use model::units::{Cpu, Nanos};

/// One block: its place in time and its largest latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockMaximum {
    /// Number of the block on the grid of the first one.
    pub index: i64,
    /// The largest latency in it, over all CPUs.
    pub max: Nanos,
    /// Time of that wake-up; for a list without times, the block's start.
    pub at: Nanos,
    pub cpu: Cpu,
    /// Wake-ups of all CPUs in it; 0 where unknown.
    pub n: u64,
    /// Number of CPUs with a value in it.
    pub cpus: u32,
}

/// Blocks, in the order in which they were added. Values that repeat from block to block take no
/// memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Blocks {
    /// Length of a block, by which the time advances.
    length: i64,
    /// Number of the block less its place.
    index: Column,
    max: Column,
    /// Time at which it was due: most are on the grid of an interval, for less memory.
    due: Column,
    /// CPU, and in the upper half the number of CPUs.
    cpu: Column,
    n: Column,
}

impl Blocks {
    /// An empty list of blocks of that length.
    pub fn new(length: Nanos) -> Blocks {
        Blocks { length: length.0, ..Blocks::default() }
    }

    pub fn push(&mut self, block: BlockMaximum) {
        self.index.push(block.index.wrapping_sub(self.len() as i64));
        self.max.push(block.max.0);
        let begin = block.index.wrapping_mul(self.length);
        self.due.push(block.at.0.wrapping_sub(begin).wrapping_sub(block.max.0));
        self.cpu.push(i64::from(block.cpu.0) | i64::from(block.cpus) << 32);
        self.n.push(block.n as i64);
    }

    /// Number of blocks.
    pub fn len(&self) -> usize {
        self.max.len()
    }

    pub fn is_empty(&self) -> bool {
        self.max.is_empty()
    }

    /// The block at a place, which must exist.
    pub fn get(&self, place: usize) -> BlockMaximum {
        let index = self.index.get(place).wrapping_add(place as i64);
        let (cpu, max) = (self.cpu.get(place) as u64, self.max.get(place));
        let due = self.due.get(place).wrapping_add(index.wrapping_mul(self.length));
        BlockMaximum {
            index,
            max: Nanos(max),
            at: Nanos(due.wrapping_add(max)),
            cpu: Cpu(cpu as u32),
            n: self.n.get(place) as u64,
            cpus: (cpu >> 32) as u32,
        }
    }

    pub fn first(&self) -> Option<BlockMaximum> {
        (!self.is_empty()).then(|| self.get(0))
    }

    /// All blocks, in order.
    pub fn iter(&self) -> impl Iterator<Item = BlockMaximum> + '_ {
        (0..self.len()).map(|place| self.get(place))
    }

    /// Largest latencies as a column.
    pub fn values(&self) -> &Column {
        &self.max
    }

    /// Largest latencies, in order.
    pub fn maxima(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.max.iter().map(Nanos)
    }

    /// Blocks that reach a level, in order; of the others only the latency is read.
    pub fn reaching(&self, level: Nanos) -> impl Iterator<Item = BlockMaximum> + '_ {
        let late = self.max.iter().enumerate().filter(move |(_, max)| *max >= level.0);
        late.map(|(place, _)| self.get(place))
    }

    /// Copy of the blocks with each edited.
    #[cfg(test)]
    pub fn edited(&self, mut edit: impl FnMut(&mut BlockMaximum)) -> Blocks {
        let mut blocks = Blocks::new(Nanos(self.length));
        for mut block in self.iter() {
            edit(&mut block);
            blocks.push(block);
        }
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn blocks_are_returned_as_pushed(list in proptest::collection::vec((any::<i64>(), any::<i64>(), any::<i64>(), any::<u32>(), any::<u64>(), any::<u32>()), 0..40), length: i64) {
            let of = |(index, max, at, cpu, n, cpus)| BlockMaximum { index, max: Nanos(max), at: Nanos(at), cpu: Cpu(cpu), n, cpus };
            let list: Vec<BlockMaximum> = list.into_iter().map(of).collect();
            let mut blocks = Blocks::new(Nanos(length));
            list.iter().for_each(|block| blocks.push(*block));
            prop_assert!(blocks.iter().eq(list.iter().copied()));
            prop_assert!(blocks.maxima().eq(list.iter().map(|block| block.max)));
            let level = list.first().map_or(Nanos(0), |block| block.max);
            prop_assert!(blocks.reaching(level).eq(list.iter().filter(|block| block.max >= level).copied()));
        }
    }
}
