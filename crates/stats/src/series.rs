//! Series of block maxima of a run: the largest latency of each second over all CPUs, in order,
//! with its time.
//!
//! CPUs share the causes of delays (a hypervisor, a firmware interrupt), so their blocks are not
//! independent: a block is the machine's, and its value the largest of its CPUs.

use std::collections::{BTreeMap, VecDeque};

pub use super::blocks::{BlockMaximum, Blocks};
use super::cpu_coverage::CpuCoverage;
use super::levels::Levels;
use super::values::SeriesValues;
use model::column::Column;
use model::run::Peak;
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};

/// Block length that onbeat records.
pub const BLOCK: Nanos = Nanos::SECOND;

/// Value of a line without wake-ups: below every latency.
const NONE: Nanos = Nanos(i64::MIN);

/// Number of newest blocks in which a line's block is searched; lines of one second come together.
const NEAR: usize = 64;

/// Block maxima of a run or of a list, with the circumstances of their recording.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Length of a block.
    pub block: Nanos,
    /// Step in which latencies were recorded: each lies in `[max, max + step)`.
    pub step: Nanos,
    /// Step of the times in `at`.
    pub tick: Nanos,
    /// Full blocks with all CPUs, ascending by index.
    pub blocks: Blocks,
    /// Blocks that are not in `blocks`, because a CPU has no value in them or they are cut short.
    pub partial: Blocks,
    /// Lines that span several blocks: only the time of their largest latency is known.
    pub joined: u64,
    /// Time for which all CPUs are known to have been watched; without blocks, the run's stated
    /// length.
    pub observed: Nanos,
    /// Time by which the run lasted longer by its document: that time is in no block.
    pub unrecorded: Nanos,
    /// CPUs with lines.
    pub cpus: Vec<Cpu>,
    /// CPUs that the run measured, without lines.
    pub unseen: Vec<Cpu>,
}

impl Series {
    /// Series of a list without gaps; `None` is a block without a value.
    pub fn of_list(maxima: &[Option<Nanos>], block: Nanos, step: Nanos) -> Series {
        Series::of_maxima(maxima.iter().copied(), block, step)
    }

    /// Like [`Series::of_list`], from an iterator.
    pub fn of_maxima(maxima: impl Iterator<Item = Option<Nanos>>, block: Nanos, step: Nanos) -> Series {
        let at = |index: i64| Nanos(block.0.saturating_mul(index));
        let (mut blocks, mut count) = (Blocks::new(block), 0);
        for max in maxima {
            let (index, at) = (count, at(count));
            max.into_iter()
                .for_each(|max| blocks.push(BlockMaximum { index, max, at, cpu: Cpu(0), n: 0, cpus: 1 }));
            count += 1;
        }
        Series { block, step, tick: block, blocks, observed: at(count), ..Series::default() }
    }

    /// The parts of the run that are in no block, in words: time, or CPUs.
    pub fn lost(&self) -> Option<String> {
        if self.blocks.is_empty() {
            return None;
        }
        if let Some(cpu) = self.unseen.first() {
            return Some(format!("CPU {cpu} was measured but has no block record"));
        }
        let much = self.unrecorded.0 > self.observed.0 / 100;
        much.then(|| format!("{} of the run have no block record", self.unrecorded.spoken()))
    }

    /// All blocks, full or not, in the order of time.
    pub fn every(&self) -> impl Iterator<Item = BlockMaximum> + '_ {
        let (whole, all) = (self.blocks.len(), self.blocks.len() + self.partial.len());
        let block =
            move |at: usize| if at < whole { self.blocks.get(at) } else { self.partial.get(at - whole) };
        let key = move |at: usize| {
            let block = block(at);
            (block.at, block.index)
        };
        // Places take less memory than blocks, and most series need none.
        let in_order = (1..all).all(|at| key(at - 1) <= key(at));
        let mut order: Vec<u32> = if in_order { Vec::new() } else { (0..all as u32).collect() };
        order.compact_sort_by_key(|&at| key(at as usize));
        (0..all).map(move |place| block(order.get(place).map_or(place, |&at| at as usize)))
    }

    /// Block with the largest latency of all; the first of equal ones.
    pub fn worst(&self) -> Option<BlockMaximum> {
        let all = self.blocks.iter().chain(self.partial.iter());
        all.max_by_key(|block| (block.max, std::cmp::Reverse(block.at)))
    }

    /// Maxima of the full blocks, in the order of time.
    pub fn values(&self) -> SeriesValues<'_> {
        SeriesValues::from(self.blocks.values())
    }

    /// Median number of wake-ups per block; `None` if unknown.
    pub fn samples_per_block(&self) -> Option<u64> {
        let blocks = self.blocks.len();
        let counts = Levels::of(self.blocks.iter().map(|block| block.n as f64), blocks);
        counts.at(blocks as u64 / 2).map(|median| median as u64).filter(|&n| n > 0)
    }

    /// Maxima of blocks of a multiple of the length; a stretch that is not filled is excluded.
    pub fn coarser(&self, times: u32) -> Column {
        let times = i64::from(times.max(1));
        let mut coarse = Column::default();
        let mut open: Option<(i64, i64, Nanos)> = None;
        for block in self.blocks.iter() {
            let place = block.index.div_euclid(times);
            open = match open {
                Some((at, count, max)) if at == place => Some((at, count + 1, max.max(block.max))),
                _ => Some((place, 1, block.max)),
            };
            open.filter(|open| open.1 == times).into_iter().for_each(|open| coarse.push(open.2.0));
        }
        coarse
    }
}

/// Builds a series from the lines of a run, one at a time, in any order.
#[derive(Debug, Default)]
pub struct Collector {
    only: Option<Vec<Cpu>>,
    interval: Nanos,
    origin: Option<Nanos>,
    /// Blocks to which no line is expected to add any more.
    blocks: Blocks,
    /// Newest blocks, to which lines may still add.
    near: VecDeque<BlockMaximum>,
    late: Vec<BlockMaximum>,
    short: Vec<BlockMaximum>,
    joined: u64,
    lanes: BTreeMap<Cpu, CpuCoverage>,
    /// Edges of long stretches without a wake-up: by block, the change in the number of CPUs that
    /// are in one.
    silent: BTreeMap<i64, i64>,
}

impl Collector {
    /// Collector for these CPUs, or all, which wake at an interval (0 if unknown).
    pub fn new(only: Option<Vec<Cpu>>, interval: Nanos) -> Collector {
        Collector { only, interval, blocks: Blocks::new(BLOCK), ..Collector::default() }
    }

    /// Adds a line; one without a wake-up covers its time and has no value.
    pub fn add(&mut self, line: &Peak) {
        if self.only.as_ref().is_some_and(|only| !only.contains(&line.cpu)) {
            return;
        }
        let max = line.max_ns.unwrap_or(NONE);
        let span = line.span_ns.unwrap_or_else(|| self.usual(line.n)).0.max(0);
        let at = line.max_mono_ns.unwrap_or(Nanos(line.mono_ns.0.saturating_add(span / 2)));
        let long = span > BLOCK.0 / 2 * 3;
        if long && line.max_ns.is_none() && self.add_silence(line, span) {
            return;
        }
        self.joined += u64::from(long);
        // CPUs begin up to an interval after each other: the middle of a line decides to which
        // block it belongs.
        let middle = if long { at } else { Nanos(line.mono_ns.0.saturating_add(span / 2)) };
        let origin = *self.origin.get_or_insert(line.mono_ns);
        let index = middle.0.saturating_sub(origin.0).div_euclid(BLOCK.0);
        let lane = self.lanes.entry(line.cpu).or_default();
        // A second line of a CPU's block adds its samples, but no CPU and no time.
        let fresh = lane.is_new(index);
        if fresh {
            lane.span = lane.span.saturating_add(span);
        }
        let block = BlockMaximum { index, max, at, cpu: line.cpu, n: line.n, cpus: u32::from(fresh) };
        if span < BLOCK.0 / 2 { self.short.push(block) } else { self.place(block) }
    }

    /// Adds a line of several blocks without a wake-up: no more is known of each of them. False if
    /// the CPU has lines of them already.
    fn add_silence(&mut self, line: &Peak, span: i64) -> bool {
        let origin = *self.origin.get_or_insert(line.mono_ns);
        let block = |time: i64| time.saturating_sub(origin.0).saturating_add(BLOCK.0 / 2).div_euclid(BLOCK.0);
        let (from, to) = (block(line.mono_ns.0), block(line.mono_ns.0.saturating_add(span)));
        let lane = self.lanes.entry(line.cpu).or_default();
        if to <= from || !lane.are_new(from, to) {
            return false;
        }
        lane.span = lane.span.saturating_add(span);
        *self.silent.entry(from).or_default() += 1;
        *self.silent.entry(to).or_default() -= 1;
        true
    }

    /// Length of a line that states none: a block, or the time of its wake-ups if that is longer.
    fn usual(&self, n: u64) -> Nanos {
        let wakeups = self.interval.0.saturating_mul(i64::try_from(n).unwrap_or(i64::MAX));
        if wakeups > BLOCK.0 / 2 * 3 { Nanos(wakeups) } else { BLOCK }
    }

    fn place(&mut self, block: BlockMaximum) {
        if self.near.back().is_none_or(|last| last.index < block.index) {
            self.near.push_back(block);
            if self.near.len() > NEAR {
                self.near.pop_front().into_iter().for_each(|block| self.blocks.push(block));
            }
            return;
        }
        // Lines of one second come together: the newest is the likeliest.
        match self.near.iter_mut().rev().find(|there| there.index == block.index) {
            Some(there) => there.join(&block),
            None => self.late.push(block),
        }
    }

    /// Builds the series of an observation of length `observed`, with latencies in steps of `step`
    /// and times in steps of `tick`.
    pub fn finish(mut self, step: Nanos, tick: Nanos, observed: Option<Nanos>) -> Series {
        let mut blocks = std::mem::take(&mut self.blocks);
        self.near.drain(..).for_each(|block| blocks.push(block));
        if !self.late.is_empty() {
            blocks = with_late(&blocks, &mut self.late);
        }
        let all = self.lanes.len() as u32;
        let is_whole = |block: &BlockMaximum| block.max != NONE && block.cpus >= all;
        // Most runs have only whole blocks: those of months are not copied.
        let (whole, mut partial) = if self.silent.is_empty() && blocks.iter().all(|block| is_whole(&block)) {
            (blocks, Blocks::new(BLOCK))
        } else {
            parted(&blocks, &self.silent, is_whole)
        };
        // The second in which a run ends is cut short on all its CPUs, and is one block.
        join_by_index(&mut self.short);
        self.short.iter().filter(|block| block.max != NONE).for_each(|block| partial.push(*block));
        // Time in which one CPU was not watched does not count for the machine.
        let covered = self.lanes.values().map(|lane| lane.span).min();
        let length = observed.filter(|length| length.0 > 0);
        let watched = match (covered, length) {
            (Some(covered), Some(length)) => covered.min(length.0),
            (Some(covered), None) => covered,
            (None, length) => length.map_or(0, |length| length.0),
        };
        Series {
            block: BLOCK,
            step,
            tick,
            blocks: whole,
            partial,
            joined: self.joined,
            observed: Nanos(watched),
            unrecorded: Nanos(length.map_or(0, |length| length.0.saturating_sub(watched).max(0))),
            cpus: self.lanes.into_keys().collect(),
            unseen: Vec::new(),
        }
    }
}

/// Splits blocks into those that are whole and those that lack a CPU that was not silent.
fn parted(
    blocks: &Blocks,
    silent: &BTreeMap<i64, i64>,
    is_whole: impl Fn(&BlockMaximum) -> bool,
) -> (Blocks, Blocks) {
    let (mut steps, mut silent) = (silent.iter().peekable(), 0i64);
    let (mut whole, mut partial) = (Blocks::new(BLOCK), Blocks::new(BLOCK));
    // Seconds without a wake-up have no value, but were watched.
    for mut block in blocks.iter() {
        while let Some((_, step)) = steps.next_if(|step| *step.0 <= block.index) {
            silent += step;
        }
        block.cpus = block.cpus.saturating_add(u32::try_from(silent).unwrap_or(0));
        if block.max == NONE {
            continue;
        }
        if is_whole(&block) {
            whole.push(block);
        } else {
            partial.push(block);
        }
    }
    (whole, partial)
}

/// Blocks in order, merged with lines that came long after those of their time.
fn with_late(blocks: &Blocks, late: &mut Vec<BlockMaximum>) -> Blocks {
    late.compact_sort_by_key(|block| block.index);
    let (mut known, mut late) = (blocks.iter().peekable(), late.drain(..).peekable());
    let mut all = Blocks::new(BLOCK);
    let mut open: Option<BlockMaximum> = None;
    loop {
        let next = match (known.peek(), late.peek()) {
            (Some(a), Some(b)) if b.index < a.index => late.next(),
            (Some(_), _) => known.next(),
            (None, _) => late.next(),
        };
        let Some(next) = next else { break };
        match &mut open {
            Some(last) if last.index == next.index => last.join(&next),
            _ => open.replace(next).into_iter().for_each(|done| all.push(done)),
        }
    }
    open.into_iter().for_each(|done| all.push(done));
    all
}

/// Sorts blocks, and joins those of the same time.
fn join_by_index(blocks: &mut Vec<BlockMaximum>) {
    blocks.compact_sort_by_key(|block| block.index);
    blocks.dedup_by(|next, previous| {
        let same = next.index == previous.index;
        if same {
            previous.join(next);
        }
        same
    });
}

impl BlockMaximum {
    fn join(&mut self, other: &BlockMaximum) {
        if other.max > self.max {
            (self.max, self.at, self.cpu) = (other.max, other.at, other.cpu);
        }
        self.n = self.n.saturating_add(other.n);
        self.cpus += other.cpus;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: i64 = 7_000_000_000;

    fn line(cpu: u32, second: i64, span: i64, max: i64) -> Peak {
        let start = T0 + second * BLOCK.0 + i64::from(cpu) * 500_000;
        Peak {
            cpu: Cpu(cpu),
            mono_ns: Nanos(start),
            span_ns: Some(Nanos(span)),
            n: 1_000,
            max_ns: Some(Nanos(max)),
            max_mono_ns: Some(Nanos(start + span - 1_000_000)),
            response_ns: None,
        }
    }

    fn series(lines: &[Peak]) -> Series {
        let mut collector = Collector::new(None, Nanos(1_000_000));
        lines.iter().for_each(|line| collector.add(line));
        collector.finish(Nanos(1), Nanos(1_000_000), None)
    }

    #[test]
    fn a_block_is_the_machine_s_largest_of_that_second() {
        let lines: Vec<Peak> =
            (0..3).flat_map(|s| [line(0, s, BLOCK.0, 10 + s), line(1, s, BLOCK.0, 12 - s)]).collect();
        let series = series(&lines);
        let values: Vec<i64> = series.blocks.iter().map(|block| block.max.0).collect();
        assert_eq!(values, [12, 11, 12]);
        assert_eq!(
            (series.blocks.get(2).cpu, series.blocks.get(2).n, series.observed),
            (Cpu(0), 2_000, Nanos(3 * BLOCK.0))
        );
        let mut backwards = lines;
        backwards.reverse();
        let again = self::series(&backwards);
        assert_eq!(again.blocks.values(), series.blocks.values(), "the order of the lines does not matter");
    }

    #[test]
    fn a_second_line_of_a_block_is_no_second_cpu() {
        let mut lines: Vec<Peak> =
            (0..10).flat_map(|s| [line(0, s, BLOCK.0, 5), line(1, s, BLOCK.0, 6)]).collect();
        lines.extend((0..60).map(|s| line(0, s, BLOCK.0, 7)));
        let series = series(&lines);
        assert_eq!((series.blocks.len(), series.partial.len()), (10, 50));
        assert_eq!(series.observed, Nanos(10 * BLOCK.0), "CPU 1 was watched no longer");
        assert_eq!(series.blocks.get(3).max, Nanos(7), "yet what the second line saw is kept");
    }

    #[test]
    fn a_cpu_that_was_silent_for_long_lacks_in_no_block() {
        // A followed thread moves to CPU 1 in the fourth second, and comes back in the sixth.
        let silent = |cpu, second: i64, seconds: i64| Peak {
            n: 0,
            max_ns: None,
            max_mono_ns: None,
            ..line(cpu, second, seconds * BLOCK.0, 0)
        };
        let mut lines: Vec<Peak> = (0..3).map(|s| line(0, s, BLOCK.0, 10 + s)).collect();
        lines.push(silent(1, 0, 3));
        lines.extend((3..6).map(|s| line(1, s, BLOCK.0, 20 + s)));
        lines.push(silent(0, 3, 2));
        lines.push(line(0, 5, BLOCK.0, 90));
        for _ in 0..2 {
            let series = series(&lines);
            let values: Vec<i64> = series.blocks.iter().map(|block| block.max.0).collect();
            assert_eq!((values, series.partial.len(), series.joined), (vec![10, 11, 12, 23, 24, 90], 0, 0));
            assert_eq!(series.observed, Nanos(6 * BLOCK.0));
            lines.reverse();
        }
        // Blocks with a line are not silent, and a stretch of any length is one step.
        lines.extend([silent(1, 1, 4), silent(1, 7, i64::MAX / BLOCK.0 / 2)]);
        assert_eq!(series(&lines).blocks.len(), 6);
    }

    #[test]
    fn the_second_in_which_a_run_ends_is_one_block() {
        let mut lines: Vec<Peak> =
            (0..3).flat_map(|s| [line(0, s, BLOCK.0, 5), line(1, s, BLOCK.0, 6)]).collect();
        lines.extend([line(0, 3, BLOCK.0 / 4, 8), line(1, 3, BLOCK.0 / 4, 9)]);
        let series = series(&lines);
        assert_eq!((series.blocks.len(), series.partial.len(), series.partial.get(0).max), (3, 1, Nanos(9)));
    }

    #[test]
    fn what_no_block_covers_was_not_observed() {
        let mut collector = Collector::new(None, Nanos(1_000_000));
        (0..60).for_each(|s| collector.add(&line(0, s, BLOCK.0, 5)));
        let series = collector.finish(Nanos(1), Nanos(1_000_000), Some(Nanos(i64::MAX)));
        assert_eq!(
            (series.observed, series.unrecorded),
            (Nanos(60 * BLOCK.0), Nanos(i64::MAX - 60 * BLOCK.0))
        );
    }

    #[test]
    fn a_block_that_lacks_a_cpu_is_not_compared_with_whole_ones() {
        let series = series(&[line(0, 0, BLOCK.0, 1), line(1, 0, BLOCK.0, 2), line(0, 1, BLOCK.0, 99)]);
        assert_eq!((series.blocks.len(), series.partial.len()), (1, 1));
        assert_eq!(series.worst().map(|block| block.max), Some(Nanos(99)), "yet nothing is lost");
    }

    #[test]
    fn a_merged_line_is_placed_where_its_largest_latency_was() {
        let mut lines = vec![line(0, 0, BLOCK.0, 5), line(0, 1, 10 * BLOCK.0, 50)];
        lines.extend((11..20).map(|s| line(0, s, BLOCK.0, 6)));
        let series = series(&lines);
        assert_eq!((series.joined, series.blocks.len()), (1, 11));
        assert_eq!((series.blocks.get(1).index, series.blocks.get(1).max), (10, Nanos(50)));
        assert_eq!(
            series.coarser(10).iter().collect::<Vec<_>>(),
            [50],
            "the first ten seconds are not all known, the next are"
        );
    }

    #[test]
    fn a_cut_end_and_an_empty_second_are_no_blocks() {
        let empty = Peak { max_ns: None, n: 0, ..line(0, 1, BLOCK.0, 0) };
        let series = series(&[line(0, 0, BLOCK.0, 5), empty, line(0, 2, 10_000_000, 70)]);
        assert_eq!((series.blocks.len(), series.partial.len()), (1, 1));
        assert_eq!(series.worst().map(|block| block.max), Some(Nanos(70)));
        assert_eq!(Series::default().worst(), None);
    }

    #[test]
    fn coarser_blocks_are_full_ones() {
        let coarser = |list: &[Option<Nanos>]| {
            Series::of_list(list, BLOCK, Nanos(1)).coarser(2).iter().collect::<Vec<_>>()
        };
        let list: Vec<Option<Nanos>> = [3, 1, 4, 1, 5, 9, 2].map(|ns| Some(Nanos(ns))).to_vec();
        assert_eq!(coarser(&list), [3, 4, 9]);
        let gap = [Some(Nanos(3)), None, Some(Nanos(4)), Some(Nanos(1))];
        assert_eq!(coarser(&gap), [4]);
    }

    #[test]
    fn times_out_of_range_do_no_harm() {
        for (mono, span) in [(i64::MAX, i64::MAX), (i64::MIN, -5), (0, i64::MIN)] {
            let peak = Peak { mono_ns: Nanos(mono), span_ns: Some(Nanos(span)), ..line(0, 0, 1, 3) };
            let series = series(&[line(0, 0, BLOCK.0, 5), peak]);
            assert_eq!(series.every().count(), 2);
        }
    }
}
