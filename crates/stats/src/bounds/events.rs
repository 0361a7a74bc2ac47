//! Exceedances of a level as events: simultaneous ones count as one.

use super::input::BoundsInput;
use crate::series::{BlockMaximum, Series};
use crate::time::cluster;
use model::histogram::Bucket;
use model::units::{Cpu, Nanos};

/// Distance in intervals below which exceedances are one event.
pub const TOGETHER: i64 = 10;

/// Number of events that reached a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// Lower limit of the number.
    pub at_least: u64,
    /// Upper limit: larger than the lower one if the latencies or times of samples were not
    /// recorded.
    pub at_most: u64,
}

/// Least distance in ns of the spikes of two events.
///
/// A block holds one event at most: of its other wake-ups the values are kept, not the times. In a
/// list each block counts, for its times are no finer.
pub fn gap(series: &Series) -> i64 {
    let fine = series.tick < series.block;
    // Shorter than a block: else blocks that are all late would be one event of any length.
    let most = series.block.0 / 10;
    if fine { series.tick.0.saturating_mul(TOGETHER).min(most) } else { 0 }
}

/// Number of events of a series at or above the level.
pub fn of_series(series: &Series, level: Nanos) -> u64 {
    count(series, level, |_| true)
}

/// Like [`of_series`], for events in which this CPU was the latest.
pub fn of_series_on(series: &Series, level: Nanos, cpu: Cpu) -> u64 {
    count(series, level, |block| block.cpu == cpu)
}

fn count(series: &Series, level: Nanos, counts: impl Fn(&BlockMaximum) -> bool) -> u64 {
    let all = series.blocks.reaching(level).chain(series.partial.reaching(level));
    let mut times: Vec<i64> = all.filter(|block| counts(block)).map(|block| block.at.0).collect();
    times.sort_unstable();
    let mut events = 0;
    cluster::peaks(times.into_iter().map(|time| (time, 0)), gap(series), |_| events += 1);
    events
}

/// Events that reached the level: by block maxima if there are any, else by the histogram.
///
/// A recorded value lies within its step, so a value less than a step below the level may have
/// reached it.
pub fn reached(input: &BoundsInput, level: Nanos) -> Reached {
    let certain = u64::from(input.histogram.max.is_some_and(|max| max >= level));
    if input.series.worst().is_none() {
        return of_histogram(input, level, certain);
    }
    let series = input.series;
    let at_least = of_series(series, level).max(certain);
    let step = series.step.0.max(1) - 1;
    let mut at_most = of_series(series, Nanos(level.0.saturating_sub(step))).max(at_least);
    if series.lost().is_some() {
        // Samples that are in no block are in the histogram, without times.
        at_most = at_most.max(samples(input, |bucket| bucket.upper > level));
    }
    Reached { at_least, at_most }
}

fn samples(input: &BoundsInput, keep: impl Fn(&Bucket) -> bool) -> u64 {
    input
        .histogram
        .buckets
        .iter()
        .filter(|bucket| keep(bucket))
        .fold(0u64, |sum, bucket| sum.saturating_add(bucket.count))
}

/// Events of samples without times, of which the number is unknown: at least one, or as many as an
/// import lists with times, and at most one per sample.
fn of_histogram(input: &BoundsInput, level: Nanos, certain: u64) -> Reached {
    if input.histogram.max.is_some_and(|max| max < level) {
        return Reached { at_least: 0, at_most: 0 };
    }
    let end = input
        .histogram
        .listed
        .from
        .or(input.histogram.buckets.last().map(|bucket| bucket.upper))
        .unwrap_or_default();
    // Beyond the histogram's end each sample is known to be at least as late as the end.
    let surely = if level <= end { input.histogram.overflows } else { 0 };
    let late = samples(input, |bucket| bucket.lower >= level).saturating_add(surely);
    let at_most = if input.histogram.buckets.is_empty() {
        input.run.cycles
    } else {
        samples(input, |bucket| bucket.upper > level).saturating_add(input.histogram.overflows)
    };
    let listed =
        if input.histogram.listed.from.is_some_and(|from| level <= from) { listed_events(input) } else { 0 };
    let at_least = certain.max(late.min(1)).max(listed);
    Reached { at_least, at_most: at_most.max(at_least) }
}

/// Lower bound of the number of events in the lists: simultaneous or consecutive exceedances count
/// as one.
fn listed_events(input: &BoundsInput) -> u64 {
    let mut times: Vec<i64> =
        input.histogram.listed.lists.iter().flat_map(|list| &list.times).copied().collect();
    times.sort_unstable();
    let gap = input.series.tick.0.saturating_mul(TOGETHER);
    let mut events = 0;
    cluster::peaks(times.into_iter().map(|at| (at, 0)), gap, |_| events += 1);
    events
}

#[cfg(test)]
mod tests {
    use super::super::input::{HistogramInput, RunTotals};
    use super::*;
    use crate::series::BLOCK;

    fn input<'a>(series: &'a Series, rows: &'a [Bucket], overflows: u64) -> BoundsInput<'a> {
        BoundsInput {
            histogram: HistogramInput { buckets: rows, overflows, ..HistogramInput::default() },
            ..BoundsInput::of(series)
        }
    }

    #[test]
    fn a_list_counts_its_blocks_and_a_run_its_events() {
        let list: Vec<Option<Nanos>> = [5, 60, 61, 5, 70].map(|us| Some(Nanos(us * 1_000))).to_vec();
        let mut series = Series::of_list(&list, BLOCK, Nanos(1));
        let count = |series: &Series| reached(&input(series, &[], 0), Nanos(60_000)).at_most;
        assert_eq!(count(&series), 3);
        series.tick = Nanos(1_000_000);
        assert_eq!(count(&series), 3, "a second apart are two events at an interval of 1 ms");
        let near = Nanos(series.blocks.get(1).at.0 + 9_000_000);
        series.blocks =
            series.blocks.edited(|block| block.at = if block.index == 2 { near } else { block.at });
        assert_eq!(count(&series), 2, "nine intervals apart are one");
    }

    #[test]
    fn a_long_interval_does_not_make_one_event_of_an_hour() {
        let list = vec![Some(Nanos(60_000)); 3_600];
        let series = Series { tick: Nanos(500_000_000), ..Series::of_list(&list, BLOCK, Nanos(1)) };
        assert_eq!(reached(&input(&series, &[], 0), Nanos(10_000)).at_least, 3_600);
    }

    #[test]
    fn the_run_s_own_maximum_and_its_steps_count() {
        let series = Series::of_list(&[Some(Nanos(30_000)); 60], BLOCK, Nanos(1_000));
        let mut known = input(&series, &[], 0);
        known.histogram.max = Some(Nanos(199_000_000));
        assert_eq!(reached(&known, Nanos(1_000_000)).at_least, 1, "no block has it, yet it was");
        let within = reached(&input(&series, &[], 0), Nanos(30_500));
        assert_eq!((within.at_least, within.at_most), (0, 60), "30 us recorded may be 30.9 us");
        assert_eq!(reached(&input(&series, &[], 0), Nanos(31_000)).at_most, 0);
    }

    #[test]
    fn a_histogram_bounds_the_count() {
        let rows = [Bucket::new(Nanos(0), Nanos(10), 100), Bucket::new(Nanos(10), Nanos(20), 4)];
        let series = Series::default();
        let mut summary = input(&series, &[], 0);
        summary.histogram.max = Some(Nanos(30));
        summary.run = RunTotals { cycles: 500, ..RunTotals::default() };
        assert_eq!(reached(&summary, Nanos(20)), Reached { at_least: 1, at_most: 500 });
        assert_eq!(reached(&summary, Nanos(31)), Reached { at_least: 0, at_most: 0 });
        let at = |level: i64, overflows| {
            let reached = reached(&input(&series, &rows, overflows), Nanos(level));
            (reached.at_least, reached.at_most)
        };
        assert_eq!(at(10, 0), (1, 4), "one event or four");
        assert_eq!(at(15, 0), (0, 4), "the level lies within a bucket");
        assert_eq!(at(20, 3), (1, 3), "beyond the end all are at least at the end");
        assert_eq!(at(25, 3), (0, 3), "but how far is not known");
    }
}
