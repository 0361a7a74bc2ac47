//! A histogram of rtla's as it was read, before anything is concluded.

use super::rtla_hist_find::{RtlaColumn, RtlaTable};
use model::units::Nanos;

/// A number of the summary in thousandths; none where rtla prints `-`.
pub(super) type RtlaSummary = Option<u128>;

/// A labelled line: its number in the file, and its values.
pub(super) type Labelled<T> = Option<(usize, Vec<T>)>;

/// The content of the lines before anything is concluded.
#[derive(Debug, Default)]
pub(super) struct RtlaHist {
    pub heading: Option<RtlaTable>,
    pub unit: Option<Nanos>,
    pub elapsed: Option<Nanos>,
    pub loss: Option<String>,
    /// The line of the columns' names.
    pub head: usize,
    pub columns: Vec<RtlaColumn>,
    /// Non-empty buckets by column.
    pub buckets: Vec<Vec<(u64, u64)>>,
    pub held: usize,
    pub rows: u64,
    /// The last row's number, and the greatest common divisor of all of them.
    pub last: u64,
    pub distance: u64,
    pub step: u8,
    pub over: Labelled<u64>,
    /// `count:` to `max:`.
    pub summary: [Labelled<RtlaSummary>; 4],
    /// Names in `ALL:`, and its `count:` to `max:`.
    pub kinds: Labelled<String>,
    pub all: [Labelled<RtlaSummary>; 4],
    pub passed: u64,
    /// The last line.
    pub end: usize,
}
