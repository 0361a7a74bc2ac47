//! Question about a run, and the data to answer it.

use super::shortest_period::Computing;
use crate::series::Series;
use model::histogram::Bucket;
use model::units::Nanos;

/// Confidence of every bound.
pub const CONFIDENCE: f64 = 0.95;

/// Default reach of an extrapolation, as a multiple of the run's length.
pub const DEFAULT_REACH: f64 = 10.0;
/// Largest reach that may be given: beyond it no fit supports a number.
pub const MAX_REACH: f64 = 100.0;

/// Question about a run.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// Latency that must not be reached.
    pub limit: Option<Nanos>,
    /// Computing time for which the shortest period is wanted, in place of a limit.
    pub computing: Option<Computing>,
    pub horizon: Nanos,
    /// True if a user gave the horizon; else an extrapolation is limited to its reach.
    pub chosen: bool,
    /// Reach of an extrapolation, as a multiple of the run's length.
    pub reach: f64,
}

impl Default for Question {
    /// Only the horizon of the next day.
    fn default() -> Question {
        let horizon = Nanos(86_400 * Nanos::SECOND.0);
        Question { limit: None, computing: None, horizon, chosen: false, reach: DEFAULT_REACH }
    }
}

/// Data for the answer.
#[derive(Clone, Copy)]
pub struct BoundsInput<'a> {
    /// Block maxima; empty if only a histogram was kept.
    pub series: &'a Series,
    /// Single wake-ups, without their times.
    pub histogram: HistogramInput<'a>,
    /// Totals from the run's document.
    pub run: RunTotals<'a>,
    /// Timer ticks per second of the kernel, if known.
    pub hz: Option<u32>,
}

/// Histogram over all CPUs, and the samples beyond its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct HistogramInput<'a> {
    /// Buckets, ascending.
    pub buckets: &'a [Bucket],
    /// Samples beyond the end, whose value is unknown.
    pub overflows: u64,
    /// Times and least latency of these samples, as far as known.
    pub listed: ListedOverflows<'a>,
    /// Largest latency, if known beyond the blocks.
    pub max: Option<Nanos>,
}

/// Sums over all CPUs, and their validity.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTotals<'a> {
    /// Failed integrity checks, in words.
    pub invalid: &'a [String],
    pub cycles: u64,
    /// Missed slots.
    pub missed: u64,
    /// True if the run ended at its largest latency, because its limit was reached.
    pub ended_by_limit: bool,
}

impl<'a> BoundsInput<'a> {
    /// Input of block maxima alone.
    pub fn of(series: &'a Series) -> BoundsInput<'a> {
        BoundsInput { series, histogram: HistogramInput::default(), run: RunTotals::default(), hz: None }
    }
}

/// Samples beyond the end on one CPU's list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverflowList {
    /// Their times in ns after the start, ascending.
    pub times: Vec<i64>,
    /// Time up to which the list is complete; `None` if it is to the end.
    pub until: Option<i64>,
}

/// Further data on the samples beyond a histogram's end.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListedOverflows<'a> {
    /// One list per CPU that has one with times.
    pub lists: &'a [OverflowList],
    /// Number of listed samples, with a time or without.
    pub cycles: u64,
    /// Lower bound of each latency.
    pub from: Option<Nanos>,
}
