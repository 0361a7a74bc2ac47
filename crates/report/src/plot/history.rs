//! Blocks of a run, folded into a bounded number of columns of time.
//!
//! Blocks are streamed: the memory does not grow with the length of the run. If a run continues
//! beyond its expected end, pairs of columns are joined and each is twice as long.

use std::collections::BTreeMap;

use super::columns;
use super::heat_counts::HeatCounts;
use super::peaks::Peaks;
use model::histogram::{EARLY_BUCKET, bucket_edges, bucket_of};
use model::run::{Block, Run};
use model::units::{Cpu, Nanos};

/// Columns of time in the pictures: as many as can be distinguished.
pub const COLUMNS: usize = 240;

/// Limit of CPUs with a heat map each; more are summed in one.
pub const LANES: usize = 4;
/// Limit of levels of a block that are used; the writer has fewer.
const LEVELS: usize = 64;
/// Limit of bands of a column; further samples are counted in [`History::unplaced`].
const BANDS: usize = 128;

/// Samples of one CPU in one column of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HistoryColumn {
    pub n: u64,
    /// Number of slots missed; none without a schedule.
    pub missed: Option<u64>,
    /// Largest latency and its time.
    pub max: Option<(Nanos, Nanos)>,
}

/// Distribution of the latencies of one column.
///
/// The eight largest of each block are known exactly. For the others only the two levels around
/// them are known, so they are a count of that band, without a place within it.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// Counts between two levels; `i64::MIN` and `i64::MAX` mean an open end.
    pub bands: HeatCounts,
    /// Counts of exactly known values, by rows of an eighth of an octave.
    pub exact: HeatCounts,
}

/// Data of a heat map, of one CPU or of all together.
#[derive(Clone, Debug, Default)]
pub struct HeatLane {
    /// CPU; `None` if all are summed.
    pub cpu: Option<Cpu>,
    /// Cells, one per column of time.
    pub columns: Vec<Cells>,
}

/// Blocks of a run in columns of time.
#[derive(Clone, Debug)]
pub struct History {
    start: Option<Nanos>,
    grid: i64,
    width: i64,
    most: usize,
    used: usize,
    cpus: BTreeMap<Cpu, Vec<HistoryColumn>>,
    lanes: Vec<HeatLane>,
    peaks: Peaks,
    blocks: u64,
    unplaced: u64,
    /// Levels of the block that is being added, in a buffer that is reused.
    levels: Vec<(i64, u64)>,
}

impl History {
    /// History between two times, in up to this number of columns of whole seconds.
    pub fn new(start: Nanos, end: Nanos, columns: usize) -> History {
        Self::empty(Some(start), end.0.saturating_sub(start.0), columns)
    }

    /// History for the blocks of a run.
    pub fn for_run(run: &Run, columns: usize) -> History {
        let start = run.cpus.iter().filter_map(|cpu| cpu.t0_mono_ns).min();
        Self::empty(start, run.elapsed_ns.map_or(0, |length| length.0), columns)
    }

    fn empty(start: Option<Nanos>, length: i64, columns: usize) -> History {
        let most = columns.clamp(2, columns::MAX_COLUMNS);
        // A block is a second long: columns of a fractional length would hold two blocks or none.
        let seconds = (length.max(0) / Nanos::SECOND.0) / most as i64 + 1;
        History {
            start,
            grid: 0,
            width: seconds.saturating_mul(Nanos::SECOND.0),
            most,
            used: 0,
            cpus: BTreeMap::new(),
            lanes: Vec::new(),
            peaks: Peaks::new(start),
            blocks: 0,
            unplaced: 0,
            levels: Vec::new(),
        }
    }

    /// Adds a block; in any order, apart from the first, whose start the grid uses.
    pub fn add(&mut self, block: &Block) {
        if self.blocks == 0 {
            self.lay_grid(block.mono_ns);
        }
        self.blocks += 1;
        self.peaks.add(block);
        let column = self.column_of(block);
        let slots = self.cpus.entry(block.cpu).or_default();
        if slots.len() <= column {
            slots.resize(column + 1, HistoryColumn::default());
        }
        let when = block.max_mono_ns.unwrap_or(block.mono_ns);
        let this =
            HistoryColumn { n: block.n, missed: block.missed, max: block.max_ns.map(|max| (max, when)) };
        slots[column] = slots[column].joined(&this);
        let mut levels = std::mem::take(&mut self.levels);
        let unplaced = self.cells_of(block.cpu, column).add(block, &mut levels);
        self.levels = levels;
        self.unplaced = self.unplaced.saturating_add(unplaced);
    }

    /// Places the grid so that a column begins with the first block, at or before the start.
    fn lay_grid(&mut self, first: Nanos) {
        let start = *self.start.get_or_insert(first);
        let lead = first.0.saturating_sub(start.0);
        let columns = lead.div_euclid(self.width) + i64::from(lead.rem_euclid(self.width) > 0);
        self.grid = first.0.saturating_sub(columns.max(0).saturating_mul(self.width));
    }

    fn column_of(&mut self, block: &Block) -> usize {
        // The middle of the block counts, because its start is close to a column's edge.
        let half = block.span_ns.map_or(Nanos::SECOND.0, |span| span.0.max(0)) / 2;
        let since = block.mono_ns.0.saturating_add(half).saturating_sub(self.grid).max(0);
        while since / self.width >= self.most as i64 {
            self.join_pairs();
        }
        let column = (since / self.width) as usize;
        self.used = self.used.max(column + 1);
        column
    }

    fn join_pairs(&mut self) {
        self.width = self.width.saturating_mul(2);
        self.used = self.used.div_ceil(2);
        for slots in self.cpus.values_mut() {
            let empty = HistoryColumn::default();
            *slots = slots.chunks(2).map(|pair| pair[0].joined(pair.get(1).unwrap_or(&empty))).collect();
        }
        for lane in &mut self.lanes {
            let mut unplaced = 0u64;
            lane.columns = lane
                .columns
                .chunks(2)
                .map(|pair| {
                    let mut cells = pair[0].clone();
                    unplaced = unplaced.saturating_add(pair.get(1).map_or(0, |other| cells.join(other)));
                    cells
                })
                .collect();
            self.unplaced = self.unplaced.saturating_add(unplaced);
        }
    }

    fn cells_of(&mut self, cpu: Cpu, column: usize) -> &mut Cells {
        let shared = self.lanes.iter().position(|lane| lane.cpu.is_none_or(|of| of == cpu));
        let place = shared.unwrap_or_else(|| {
            if self.lanes.len() == LANES {
                self.share_one_lane();
                return 0;
            }
            self.lanes.push(HeatLane { cpu: Some(cpu), columns: Vec::new() });
            self.lanes.len() - 1
        });
        let columns = &mut self.lanes[place].columns;
        if columns.len() <= column {
            columns.resize_with(column + 1, Cells::default);
        }
        &mut columns[column]
    }

    fn share_one_lane(&mut self) {
        let mut all = HeatLane::default();
        for lane in std::mem::take(&mut self.lanes) {
            for (column, cells) in lane.columns.iter().enumerate() {
                if all.columns.len() <= column {
                    all.columns.push(Cells::default());
                }
                self.unplaced = self.unplaced.saturating_add(all.columns[column].join(cells));
            }
        }
        self.lanes.push(all);
    }

    /// True if there was no block.
    pub fn is_empty(&self) -> bool {
        self.blocks == 0
    }

    /// Number of columns in use.
    pub fn columns(&self) -> usize {
        self.used
    }

    /// Length of a column.
    pub fn width(&self) -> Nanos {
        Nanos(self.width)
    }

    /// Time from the start to a column's beginning; the first column may begin a little earlier.
    pub fn since_start(&self, column: usize) -> f64 {
        let start = self.start.unwrap_or_default().0;
        self.grid as f64 - start as f64 + column as f64 * self.width as f64
    }

    /// Time since the start.
    pub fn elapsed(&self, time: Nanos) -> Nanos {
        Nanos(time.0.saturating_sub(self.start.unwrap_or_default().0))
    }

    /// CPUs with their columns; a CPU may have fewer than others.
    pub fn cpus(&self) -> impl Iterator<Item = (Cpu, &[HistoryColumn])> {
        self.cpus.iter().map(|(&cpu, slots)| (cpu, slots.as_slice()))
    }

    /// Data of the heat maps: a lane per CPU, or one of all.
    pub fn lanes(&self) -> &[HeatLane] {
        &self.lanes
    }

    /// Maxima in finer columns.
    pub fn peaks(&self) -> &Peaks {
        &self.peaks
    }

    /// Samples that the heat map leaves out, because the blocks have too many different levels.
    pub fn unplaced(&self) -> u64 {
        self.unplaced
    }
}

impl HistoryColumn {
    fn joined(&self, other: &HistoryColumn) -> HistoryColumn {
        let larger = match (self.max, other.max) {
            (Some(a), Some(b)) => Some(if b.0 > a.0 { b } else { a }),
            (a, b) => a.or(b),
        };
        let missed = match (self.missed, other.missed) {
            (Some(a), Some(b)) => Some(a.saturating_add(b)),
            (a, b) => a.or(b),
        };
        HistoryColumn { n: self.n.saturating_add(other.n), missed, max: larger }
    }
}

impl Cells {
    /// Adds a block's samples; returns the number without a place. Reuses `levels`.
    fn add(&mut self, block: &Block, levels: &mut Vec<(i64, u64)>) -> u64 {
        let known = block.max_ns.iter().chain(block.top_ns.iter().take(7)).take(block.n.min(8) as usize);
        let (mut exact, mut count) = ([0; 8], 0);
        for (place, ns) in exact.iter_mut().zip(known) {
            *place = ns.0;
            count += 1;
        }
        let exact = &mut exact[..count];
        // The writer puts the largest first.
        exact.reverse();
        exact.sort_unstable();
        levels.clear();
        levels.push((i64::MIN, block.n));
        levels.extend(block.over.iter().take(LEVELS).map(|&(level, n)| (level.0, n)));
        levels[1..].sort_unstable();
        let mut unplaced = 0u64;
        let mut below = 0;
        for (i, &(lower, above)) in levels.iter().enumerate() {
            let (upper, beyond) = levels.get(i + 1).copied().unwrap_or((i64::MAX, 0));
            let inside = exact[below..].iter().take_while(|&&ns| ns < upper).count();
            below += inside;
            let rest = above.min(block.n).saturating_sub(beyond).saturating_sub(inside as u64);
            if rest == 0 {
                continue;
            }
            // Above all levels, samples beyond the exact ones are at most the least of these.
            let upper = match exact.first() {
                Some(&least) if upper == i64::MAX => coarse(least).1,
                _ => upper,
            };
            unplaced = self.put_band(lower, upper, rest).saturating_add(unplaced);
        }
        let mut rest = &*exact;
        while let Some(&first) = rest.first() {
            let row = coarse(first);
            let same = rest.iter().take_while(|&&ns| ns == first || ns < row.1).count();
            self.exact.add(row, same as u64);
            rest = &rest[same..];
        }
        unplaced
    }

    fn put_band(&mut self, lower: i64, upper: i64, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        if self.bands.rows() >= BANDS && !self.bands.has((lower, upper)) {
            return n;
        }
        self.bands.add((lower, upper), n);
        0
    }

    fn join(&mut self, other: &Cells) -> u64 {
        other.exact.iter().for_each(|(row, n)| self.exact.add(row, n));
        other.bands.iter().fold(0, |sum: u64, (band, n)| sum.saturating_add(self.put_band(band.0, band.1, n)))
    }
}

/// Row of an eighth of an octave that holds a latency: eight rows of the histogram.
fn coarse(ns: i64) -> (i64, i64) {
    let row = bucket_of(Nanos(ns));
    if row == EARLY_BUCKET {
        return (i64::MIN, 0);
    }
    let first = 1 + (row - 1) / 8 * 8;
    (bucket_edges(first).0.0, bucket_edges(first + 7).1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn block(cpu: u32, second: i64, values: &[i64]) -> Block {
        crate::fixture::block_of(Cpu(cpu), Nanos(second * 1_000_000_000), values)
    }

    fn samples(history: &History) -> (u64, u64) {
        let slots = history.cpus().flat_map(|(_, slots)| slots).map(|slot| slot.n).sum();
        let cells = history.lanes().iter().flat_map(|lane| &lane.columns);
        let cells =
            cells.flat_map(|cells| cells.bands.iter().chain(cells.exact.iter())).map(|(_, n)| n).sum::<u64>();
        (slots, cells + history.unplaced())
    }

    #[test]
    fn a_block_per_second_is_a_block_per_column() {
        let mut history = History::new(Nanos(500_000_000), Nanos(10_400_000_000), 240);
        for second in 0..10 {
            let mut block = block(0, second, &[1_000]);
            // Housekeeping is slightly late now and then.
            block.mono_ns.0 += 500_000_000 + second % 3 * 200_000;
            history.add(&block);
        }
        assert_eq!(history.columns(), 10);
        let (_, slots) = history.cpus().next().unwrap();
        assert!(slots.iter().all(|slot| slot.n == 1), "{slots:?}");
    }

    #[test]
    fn the_largest_are_exact_and_the_rest_stay_in_their_band() {
        let mut history = History::new(Nanos(0), Nanos::SECOND, 10);
        let mut values = vec![3_000; 20];
        values.extend([7_000_000, 90_000]);
        history.add(&block(0, 0, &values));
        let cells = &history.lanes()[0].columns[0];
        assert_eq!(cells.exact.of(coarse(7_000_000)), 1);
        assert_eq!(cells.exact.of(coarse(90_000)), 1);
        assert_eq!(cells.exact.of(coarse(3_000)), 6);
        assert_eq!(cells.bands.iter().map(|(_, n)| n).sum::<u64>(), 14);
        assert!(cells.bands.iter().all(|(band, _)| band.0 <= 3_000 && band.1 > 3_000), "{cells:?}");
    }

    #[test]
    fn a_run_beyond_its_end_keeps_every_sample_and_its_bound() {
        let mut history = History::new(Nanos(0), Nanos(10_000_000_000), 10);
        for second in 0..1_000 {
            for cpu in 0..6 {
                history.add(&block(cpu, second, &[2_000, 3_000 + second]));
            }
        }
        assert!(history.columns() <= 10);
        assert_eq!(samples(&history), (12_000, 12_000));
        assert_eq!(history.lanes().len(), 1);
        let worst = history.cpus().flat_map(|(_, slots)| slots).filter_map(|slot| slot.max).max();
        assert_eq!(worst.unwrap().0, Nanos(3_999));
    }

    proptest! {
        #[test]
        fn any_block_is_taken(
            start: i64, end: i64,
            blocks in proptest::collection::vec((0u32..9, any::<i64>(), proptest::collection::vec(any::<i64>(), 0..12), proptest::collection::vec((any::<i64>(), any::<u64>()), 0..5)), 0..20),
        ) {
            let mut history = History::new(Nanos(start), Nanos(end), 7);
            for (cpu, mono, values, over) in blocks {
                let mut block = crate::fixture::block_of(Cpu(cpu), Nanos(mono), &values);
                block.over.extend(over.into_iter().map(|(level, n)| (Nanos(level), n)));
                history.add(&block);
            }
            prop_assert!(history.columns() <= 7);
        }
    }
}
