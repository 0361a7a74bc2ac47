//! Blocks that a measuring thread writes to: two per CPU, one in use, the other with the
//! housekeeping thread.
//!
//! Exactly one thread writes a block at a time, so relaxed loads and stores (no locked instruction)
//! are enough; the hand-over is one release store by the writer and one by the reader.

use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::*};

use super::late::LateQueue;
use model::histogram::{BUCKETS, bucket_edges, bucket_of};
use model::units::Nanos;

/// Number of largest latencies that a block keeps with a timestamp.
pub const WORST_PER_BLOCK: usize = model::run::WORST;

/// Length of a block.
pub const BLOCK_LENGTH: Nanos = Nanos::SECOND;

/// Wake-up recorded with all its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencySample {
    pub latency: Nanos,
    pub cycle: u64,
    pub time: Nanos,
}

/// Samples of one CPU and second, as written by the measuring thread.
#[repr(align(128))]
pub struct BlockBuffer {
    rows: Box<[AtomicU64; BUCKETS]>,
    /// Lateness of missed slots; with `rows`, the latencies that a periodic task would have seen.
    missed_rows: Box<[AtomicU64; BUCKETS]>,
    sum: AtomicI64,
    missed: AtomicU64,
    min: AtomicI64,
    top: [[AtomicI64; 3]; WORST_PER_BLOCK],
    start: AtomicI64,
    end: AtomicI64,
    /// Number of block ends at which the other block was not free yet.
    merged: AtomicU64,
    /// CPU time of the thread from the start of its loop to the end of the block.
    used: AtomicI64,
}

#[inline(always)]
fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Relaxed) + by, Relaxed);
}

/// Rows allocated on the heap: 30 KiB would not fit on a measuring thread's small stack.
fn new_rows() -> Box<[AtomicU64; BUCKETS]> {
    let rows: Box<[AtomicU64]> = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
    rows.try_into().expect("there are BUCKETS rows")
}

impl BlockBuffer {
    fn new() -> BlockBuffer {
        let block = BlockBuffer {
            rows: new_rows(),
            missed_rows: new_rows(),
            sum: AtomicI64::new(0),
            missed: AtomicU64::new(0),
            min: AtomicI64::new(0),
            top: [const { [const { AtomicI64::new(0) }; 3] }; WORST_PER_BLOCK],
            start: AtomicI64::new(0),
            end: AtomicI64::new(0),
            merged: AtomicU64::new(0),
            used: AtomicI64::new(0),
        };
        block.clear();
        block
    }

    #[inline(always)]
    pub fn count(&self, latency: Nanos) {
        bump(&self.rows[bucket_of(latency)], 1);
        self.sum.store(self.sum.load(Relaxed).wrapping_add(latency.0), Relaxed);
    }

    /// Stores a wake-up that is a new minimum or among the largest; returns the minimum, and the
    /// latency above which the next one is among the largest.
    #[inline(never)]
    pub fn keep(&self, sample: LatencySample) -> (Nanos, Nanos) {
        let min = self.min.load(Relaxed).min(sample.latency.0);
        self.min.store(min, Relaxed);
        let mut carried = [sample.latency.0, sample.cycle as i64, sample.time.0];
        for entry in &self.top {
            let kept = [entry[0].load(Relaxed), entry[1].load(Relaxed), entry[2].load(Relaxed)];
            if carried[0] > kept[0] {
                entry.iter().zip(carried).for_each(|(place, value)| place.store(value, Relaxed));
                carried = kept;
            }
        }
        (Nanos(min), Nanos(self.top[WORST_PER_BLOCK - 1][0].load(Relaxed)))
    }

    /// Counts missed slots that were late by `first`, `first - spacing`, `first - 2 * spacing`,
    /// ..., all less than the latency of the wake-up, which is already counted.
    ///
    /// Takes at most as many steps as there are rows, whatever the count.
    #[inline(never)]
    pub fn count_missed(&self, first: Nanos, spacing: Nanos, count: u64) {
        bump(&self.missed, count);
        let (mut late, mut left) = (first.0, count);
        while left > 0 {
            let row = bucket_of(Nanos(late));
            let within = ((late - bucket_edges(row).0.0.max(0)) / spacing.0) as u64 + 1;
            let here = within.min(left);
            bump(&self.missed_rows[row], here);
            left -= here;
            late -= here as i64 * spacing.0;
        }
    }

    /// Notes that the block continues because the housekeeping thread still holds the other one.
    pub fn note_merged(&self) {
        bump(&self.merged, 1);
    }

    fn open(&self, start: Nanos) {
        self.start.store(start.0, Relaxed);
    }

    fn close(&self, end: Nanos, used: Nanos) {
        self.end.store(end.0, Relaxed);
        self.used.store(used.0, Relaxed);
    }

    /// Writes every word, so that its page is mapped (and on the writer's memory node) before use.
    pub fn clear(&self) {
        self.rows.iter().chain(self.missed_rows.iter()).for_each(|row| row.store(0, Relaxed));
        self.clear_sums();
    }

    fn clear_sums(&self) {
        self.sum.store(0, Relaxed);
        self.missed.store(0, Relaxed);
        self.min.store(i64::MAX, Relaxed);
        self.merged.store(0, Relaxed);
        for entry in &self.top {
            entry[0].store(i64::MIN, Relaxed);
        }
    }
}

/// Outcome of a block's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockSwap {
    /// The other block is in use now.
    Swapped,
    /// The housekeeping thread still held it: the block in use continues.
    Merged,
}

/// Result of taking a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    Block,
    Nothing,
}

/// Pair of blocks of one CPU, and their hand-over.
pub struct CpuBuffers {
    blocks: [BlockBuffer; 2],
    /// Blocks finished by the measuring thread; the lowest bit is the index of the block in use.
    published: AtomicU32,
    /// Blocks finished by the housekeeping thread.
    consumed: AtomicU32,
    /// Wake-ups beyond a hunt's threshold.
    pub late: LateQueue,
}

impl CpuBuffers {
    /// Buffers with room for that many late wake-ups.
    pub fn new(late_capacity: usize) -> CpuBuffers {
        CpuBuffers {
            blocks: [BlockBuffer::new(), BlockBuffer::new()],
            published: AtomicU32::new(0),
            consumed: AtomicU32::new(0),
            late: LateQueue::new(late_capacity),
        }
    }

    /// Block in use; for the measuring thread only.
    pub fn current(&self) -> &BlockBuffer {
        &self.blocks[(self.published.load(Relaxed) & 1) as usize]
    }

    /// Starts the first block; for the measuring thread, or before it starts.
    pub fn begin(&self, start: Nanos) {
        self.blocks.iter().for_each(BlockBuffer::clear);
        self.published.store(0, Relaxed);
        self.consumed.store(0, Relaxed);
        self.late.clear();
        self.current().open(start);
    }

    /// Hands over the block in use and starts the other at `start`, unless that one is not free.
    ///
    /// `used` is the CPU time of the thread since its loop began.
    #[inline(never)]
    pub fn swap(&self, start: Nanos, used: Nanos) -> BlockSwap {
        let published = self.published.load(Relaxed);
        if self.consumed.load(Acquire) != published {
            self.current().note_merged();
            return BlockSwap::Merged;
        }
        self.current().close(start, used);
        self.published.store(published.wrapping_add(1), Release);
        self.current().open(start);
        BlockSwap::Swapped
    }

    /// Number of blocks that the housekeeping thread has taken.
    pub fn consumed(&self) -> u32 {
        self.consumed.load(Relaxed)
    }

    /// Sets the thread's CPU time at the end of its loop, for the block in use.
    pub fn set_used(&self, used: Nanos) {
        self.current().used.store(used.0, Relaxed);
    }

    /// Memory that the loop writes, to be locked.
    pub fn pages(&self) -> impl Iterator<Item = &[AtomicU64]> {
        self.blocks.iter().flat_map(|block| [&block.rows[..], &block.missed_rows[..]])
    }

    /// Takes a block that the writer handed over, if there is one, and frees it; for the
    /// housekeeping thread only.
    pub fn take(&self, into: &mut DrainedBlock) -> Drained {
        let consumed = self.consumed.load(Relaxed);
        if self.published.load(Acquire) == consumed {
            return Drained::Nothing;
        }
        into.take(&self.blocks[(consumed & 1) as usize]);
        self.consumed.store(consumed.wrapping_add(1), Release);
        Drained::Block
    }

    /// Takes the rest of the block in use, after the measuring thread has ended.
    pub fn take_last(&self, end: Nanos, into: &mut DrainedBlock) {
        self.current().end.store(end.0, Relaxed);
        into.take(self.current());
    }
}

/// Block taken by the housekeeping thread: non-empty rows only; its buffers are reused.
#[derive(Default)]
pub struct DrainedBlock {
    /// Row and count of the wake-ups, ascending.
    pub rows: Vec<(usize, u64)>,
    /// Row and count of the missed slots' lateness, ascending.
    pub missed_rows: Vec<(usize, u64)>,
    /// Sum of the latencies.
    pub sum: i64,
    pub cycles: u64,
    pub missed: u64,
    /// Minimum latency; meaningless without wake-ups.
    pub min: Nanos,
    /// Largest latencies, descending.
    pub top: Vec<LatencySample>,
    /// Start of the block.
    pub start: Nanos,
    pub end: Nanos,
    /// Number of further seconds that it covers.
    pub merged: u64,
    /// CPU time of the thread from the start of its loop to the end of the block.
    pub used: Nanos,
}

impl DrainedBlock {
    /// Adds one wake-up; for hunts that count without a measuring thread.
    pub fn add(&mut self, sample: LatencySample) {
        let row = bucket_of(sample.latency);
        match self.rows.binary_search_by_key(&row, |&(row, _)| row) {
            Ok(at) => self.rows[at].1 += 1,
            Err(at) => self.rows.insert(at, (row, 1)),
        }
        self.min = if self.cycles == 0 { sample.latency } else { self.min.min(sample.latency) };
        self.cycles += 1;
        self.sum = self.sum.saturating_add(sample.latency.0);
        let place = self.top.partition_point(|kept| kept.latency >= sample.latency);
        if place < WORST_PER_BLOCK {
            self.top.insert(place, sample);
            self.top.truncate(WORST_PER_BLOCK);
        }
    }

    fn take(&mut self, block: &BlockBuffer) {
        self.top.clear();
        self.top.extend(block.top.iter().map(|entry| LatencySample {
            latency: Nanos(entry[0].load(Relaxed)),
            cycle: entry[1].load(Relaxed) as u64,
            time: Nanos(entry[2].load(Relaxed)),
        }));
        self.top.retain(|sample| sample.latency.0 != i64::MIN);
        // Only these buckets can have counts: the others are not read.
        let (first, last) = (
            bucket_of(Nanos(block.min.load(Relaxed))),
            self.top.first().map_or(0, |worst| bucket_of(worst.latency)),
        );
        take_rows(&block.rows, first..=last, &mut self.rows);
        let last = if block.missed.load(Relaxed) > 0 { last } else { 0 };
        take_rows(&block.missed_rows, 1..=last, &mut self.missed_rows);
        self.cycles = self.rows.iter().map(|row| row.1).sum();
        self.sum = block.sum.load(Relaxed);
        self.missed = block.missed.load(Relaxed);
        self.min = Nanos(block.min.load(Relaxed));
        self.start = Nanos(block.start.load(Relaxed));
        self.end = Nanos(block.end.load(Relaxed));
        self.merged = block.merged.load(Relaxed);
        self.used = Nanos(block.used.load(Relaxed));
        block.clear_sums();
    }
}

fn take_rows(rows: &[AtomicU64; BUCKETS], range: RangeInclusive<usize>, into: &mut Vec<(usize, u64)>) {
    into.clear();
    let Some(counters) = rows.get(range.clone()) else { return };
    let mut row = *range.start();
    // Most buckets between the least and the worst are empty: they are skipped 12 at a time.
    for dozen in counters.chunks(12) {
        if dozen.iter().fold(0, |all, counter| all | counter.load(Relaxed)) != 0 {
            for (index, counter) in dozen.iter().enumerate() {
                let count = counter.load(Relaxed);
                if count > 0 {
                    into.push((row + index, count));
                    counter.store(0, Relaxed);
                }
            }
        }
        row += dozen.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn buffers() -> CpuBuffers {
        let buffers = CpuBuffers::new(0);
        buffers.begin(Nanos(0));
        buffers
    }

    #[test]
    fn a_block_that_is_not_free_is_joined_and_nothing_is_lost() {
        let buffers = buffers();
        let put = |ns| {
            buffers.current().count(Nanos(ns));
            buffers.current().keep(LatencySample { latency: Nanos(ns), cycle: 0, time: Nanos(ns) });
        };
        let mut taken = DrainedBlock::default();
        put(5);
        assert_eq!(buffers.swap(Nanos(10), Nanos(4)), BlockSwap::Swapped);
        put(6);
        assert_eq!(
            buffers.swap(Nanos(20), Nanos(5)),
            BlockSwap::Merged,
            "the reader still has the first block"
        );
        put(7);
        assert_eq!(buffers.take(&mut taken), Drained::Block);
        assert_eq!((taken.cycles, taken.start, taken.end), (1, Nanos(0), Nanos(10)));
        assert_eq!(buffers.take(&mut taken), Drained::Nothing);
        assert_eq!(buffers.swap(Nanos(30), Nanos(6)), BlockSwap::Swapped);
        assert_eq!(buffers.take(&mut taken), Drained::Block);
        assert_eq!((taken.cycles, taken.merged, taken.sum), (2, 1, 13));
        assert_eq!((taken.start, taken.end, taken.used), (Nanos(10), Nanos(30), Nanos(6)));
    }

    proptest! {
        #[test]
        fn the_top_is_what_sorting_gives(latencies in proptest::collection::vec(-100i64..1000, 1..60)) {
            let buffers = buffers();
            let (mut min, mut floor) = (Nanos(i64::MAX), Nanos(i64::MIN));
            for (cycle, &ns) in latencies.iter().enumerate() {
                buffers.current().count(Nanos(ns));
                if ns < min.0 || ns > floor.0 {
                    let (latency, cycle, time) = (Nanos(ns), cycle as u64, Nanos(ns));
                    (min, floor) = buffers.current().keep(LatencySample { latency, cycle, time });
                }
            }
            let mut taken = DrainedBlock::default();
            buffers.take_last(Nanos(9), &mut taken);
            let mut sorted = latencies.clone();
            sorted.sort_unstable_by(|a, b| b.cmp(a));
            let top: Vec<i64> = taken.top.iter().map(|s| s.latency.0).collect();
            prop_assert_eq!(&top[..], &sorted[..sorted.len().min(WORST_PER_BLOCK)]);
            prop_assert_eq!(taken.min.0, *sorted.last().expect("not empty"));
            prop_assert_eq!(taken.sum, latencies.iter().sum::<i64>());
            prop_assert!(taken.top.iter().all(|s| latencies[s.cycle as usize] == s.latency.0));
            let mut added = DrainedBlock::default();
            for (cycle, &ns) in latencies.iter().enumerate() {
                added.add(LatencySample { latency: Nanos(ns), cycle: cycle as u64, time: Nanos(ns) });
            }
            // Equally late wake-ups may be in either order.
            let late = |taken: &DrainedBlock| taken.top.iter().map(|s| s.latency).collect::<Vec<_>>();
            prop_assert_eq!(late(&added), late(&taken));
            prop_assert!(added.top.iter().all(|s| latencies[s.cycle as usize] == s.latency.0));
            prop_assert_eq!(&added.rows, &taken.rows);
            prop_assert_eq!((added.sum, added.cycles, added.min), (taken.sum, taken.cycles, taken.min));
        }

        #[test]
        fn missed_slots_fall_into_the_rows_that_counting_one_by_one_gives(
            spacing in 1i64..2_000_000, count in 1u64..3_000, rest in 0i64..2_000_000,
        ) {
            let rest = rest % spacing;
            let first = Nanos(rest + (count as i64 - 1) * spacing);
            let buffers = buffers();
            let late = Nanos(first.0 + spacing);
            buffers.current().count(late);
            buffers.current().keep(LatencySample { latency: late, cycle: 1, time: late });
            buffers.current().count_missed(first, Nanos(spacing), count);
            let mut taken = DrainedBlock::default();
            buffers.take_last(Nanos(9), &mut taken);
            let mut rows = std::collections::BTreeMap::new();
            for j in 0..count as i64 {
                *rows.entry(bucket_of(Nanos(first.0 - j * spacing))).or_insert(0u64) += 1;
            }
            prop_assert_eq!(taken.missed_rows, rows.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(taken.missed, count);
        }
    }
}
