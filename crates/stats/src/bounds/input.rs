//! The question about a run, and the data to answer it.

use super::shortest_period::Computing;
use crate::series::Series;
use model::histogram::Bucket;
use model::units::Nanos;

/// The confidence of every bound.
pub const CONFIDENCE: f64 = 0.95;

/// How many times the run's length an extrapolation reaches unless more is asked for.
pub const DEFAULT_REACH: f64 = 10.0;
/// The most that may be asked for: beyond, no fit supports a number.
pub const MAX_REACH: f64 = 100.0;

/// What is asked of a run.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The latency that is not to be reached.
    pub limit: Option<Nanos>,
    /// With what computing time the shortest period is wanted, in place of a limit.
    pub computing: Option<Computing>,
    pub horizon: Nanos,
    /// Whether a person chose that horizon; if not, an extrapolation goes no further than it may.
    pub chosen: bool,
    /// How many times the run's length an extrapolation may reach.
    pub reach: f64,
}

impl Default for Question {
    /// Nothing but the next day.
    fn default() -> Question {
        let horizon = Nanos(86_400 * Nanos::SECOND.0);
        Question { limit: None, computing: None, horizon, chosen: false, reach: DEFAULT_REACH }
    }
}

/// The data for the answer.
#[derive(Clone, Copy)]
pub struct BoundsInput<'a> {
    /// Block maxima; empty where only a histogram was kept.
    pub series: &'a Series,
    /// What is known of single wake-ups, without their times.
    pub histogram: HistogramInput<'a>,
    /// What the run's document states.
    pub run: RunTotals<'a>,
    /// Timer ticks per second of the kernel, where known.
    pub hz: Option<u32>,
}

/// The histogram over all CPUs, and what lies beyond its end.
#[derive(Clone, Copy, Debug, Default)]
pub struct HistogramInput<'a> {
    /// Its buckets, ascending.
    pub buckets: &'a [Bucket],
    /// Samples beyond its end, whose value is not known.
    pub overflows: u64,
    /// What is known of those: which the first ones were, and how late they are at least.
    pub listed: ListedOverflows<'a>,
    /// The largest latency, where it is known beyond the blocks.
    pub max: Option<Nanos>,
}

/// Sums over all CPUs, and whether they are valid.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunTotals<'a> {
    /// Each failed integrity check, in words.
    pub invalid: &'a [String],
    pub cycles: u64,
    /// Missed slots.
    pub missed: u64,
    /// Whether the run ended at its own largest latency, as its limit asked.
    pub ended_by_limit: bool,
}

impl<'a> BoundsInput<'a> {
    /// Block maxima and nothing else.
    pub fn of(series: &'a Series) -> BoundsInput<'a> {
        BoundsInput { series, histogram: HistogramInput::default(), run: RunTotals::default(), hz: None }
    }
}

/// Those that one CPU's list has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OverflowList {
    /// When they were, in ns after the start, ascending.
    pub times: Vec<i64>,
    /// Until when the list is complete; `None` if it is to the end.
    pub until: Option<i64>,
}

/// What is known of the samples beyond a histogram's end other than their number.
#[derive(Clone, Copy, Debug, Default)]
pub struct ListedOverflows<'a> {
    /// A list per CPU that has one with times.
    pub lists: &'a [OverflowList],
    /// How many are listed, with a time or without.
    pub cycles: u64,
    /// How late each is at least.
    pub from: Option<Nanos>,
}
