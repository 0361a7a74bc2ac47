//! A histogram of rtla as it was read, before any conclusion.

use super::rtla_hist_find::{RtlaColumn, RtlaTable};
use model::units::Nanos;

/// A number of the summary in thousandths; `None` if rtla prints `-`.
pub(super) type RtlaSummary = Option<u128>;

/// A labelled line: its number in the file, and its values.
pub(super) type Labelled<T> = Option<(usize, Vec<T>)>;

/// Content of the lines, before any conclusion.
#[derive(Debug, Default)]
pub(super) struct RtlaHist {
    pub heading: Option<RtlaTable>,
    pub unit: Option<Nanos>,
    pub elapsed: Option<Nanos>,
    pub loss: Option<String>,
    /// Line of the columns' names.
    pub head: usize,
    pub columns: Vec<RtlaColumn>,
    /// Non-empty buckets by column.
    pub buckets: Vec<Vec<(u64, u64)>>,
    pub held: usize,
    pub rows: u64,
    /// Number of the last row.
    pub last: u64,
    /// Greatest common divisor of all rows' numbers.
    pub distance: u64,
    pub step: u8,
    pub over: Labelled<u64>,
    /// `count:` to `max:`.
    pub summary: [Labelled<RtlaSummary>; 4],
    /// Names in `ALL:`.
    pub kinds: Labelled<String>,
    /// Values of `count:` to `max:` of `ALL:`.
    pub all: [Labelled<RtlaSummary>; 4],
    pub passed: u64,
    /// Last line.
    pub end: usize,
}
