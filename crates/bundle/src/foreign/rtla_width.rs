//! Width of the buckets and end of rtla's histograms, which are not printed.
//!
//! A row's number is a multiple of the width, so the greatest common divisor of all rows' numbers
//! is one too, and holds every sample of its row in any case. The summary bounds it: a column's
//! largest latency is within its last row, or, with samples beyond, after the end.

use super::error::ImportError;
use super::rtla_command::RtlaCommand;
use super::rtla_hist_find::RtlaTable;
use super::rtla_hist_table::RtlaHist;
use super::rtla_shared::refuse;

/// Maximum width of buckets (`-b`) that rtla accepts.
const WIDTH_LIMIT: u64 = 999_999;
/// Least number of buckets (`-E`) that rtla accepts.
const LEAST_ENTRIES: u64 = 10;

/// Form of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HistShape {
    /// Width of a bucket; `None` if it is unknown, with one row or none.
    pub width: Option<u64>,
    /// First latency beyond the histogram, as far as is known.
    pub end: u64,
    /// True if the only row was assumed to extend to the largest latency.
    spans: bool,
}

pub(super) fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Whole value of a column's summary.
fn whole(hist: &RtlaHist, label: usize, column: usize) -> Option<u64> {
    hist.value(label, column).and_then(|value| u64::try_from(value / 1000).ok())
}

/// Least and largest width with which summary and rows agree.
fn bounds(hist: &RtlaHist) -> (u64, u64) {
    let (mut least, mut most) = (1, u64::MAX);
    for (index, buckets) in hist.buckets.iter().enumerate() {
        let (min, max) = (whole(hist, 1, index), whole(hist, 3, index));
        // A value from 2^63 on is an early wake-up.
        let max = max.filter(|&max| i64::try_from(max).is_ok());
        if let Some((min, first)) = min.zip(buckets.first()) {
            least = least.max(min.saturating_sub(first.0).saturating_add(1));
        }
        match (hist.overflows(index), max, buckets.last()) {
            (0, Some(max), Some(last)) => least = least.max(max.saturating_sub(last.0).saturating_add(1)),
            (1.., Some(max), _) => most = most.min((max / LEAST_ENTRIES).min(max.saturating_sub(hist.last))),
            _ => {}
        }
    }
    (least, most)
}

/// Width and end that a command line states.
fn stated(command: &RtlaCommand) -> Option<(u64, u64)> {
    command.width.checked_mul(command.entries).map(|end| (command.width, end))
}

/// True for a command line that may be that of the histogram.
pub(super) fn agrees(hist: &RtlaHist, command: &RtlaCommand) -> bool {
    let Some((width, end)) = stated(command) else { return false };
    let (least, most) = bounds(hist);
    let beyond = |index: usize| match (hist.overflows(index), whole(hist, 3, index)) {
        (1.., Some(max)) => max >= end,
        _ => true,
    };
    (least..=most).contains(&width)
        && hist.distance % width == 0
        && hist.last.saturating_add(width) <= end
        && (0..hist.columns.len()).all(beyond)
}

/// Derives the width and the end.
pub(super) fn shape(
    hist: &RtlaHist,
    table: RtlaTable,
    command: Option<&RtlaCommand>,
) -> Result<HistShape, ImportError> {
    if let Some((width, end)) = command.and_then(stated) {
        return Ok(HistShape { width: Some(width), end, spans: false });
    }
    let (least, most) = bounds(hist);
    if hist.rows < 2 {
        // For osnoise the largest noise is rounded down to the row's number as well.
        let overflow = (0..hist.columns.len()).any(|index| hist.overflows(index) > 0);
        let known = hist.rows > 0 && !overflow && hist.summary[3].is_some() && table == RtlaTable::Timerlat;
        if !known && hist.summary[3].is_none() {
            return refuse(format!(
                "line {}: the width of the buckets is not known from so few rows: run rtla without \
                 --no-summary",
                hist.end
            ));
        }
        return Ok(HistShape {
            width: known.then_some(least),
            end: hist.last.saturating_add(least),
            spans: known,
        });
    }
    let widest = hist.distance.min(most).min(WIDTH_LIMIT);
    let Some(width) = (least.min(widest + 1)..=widest).rev().find(|width| hist.distance % width == 0) else {
        return refuse(format!(
            "line {}: the summary contradicts the rows: give the output as it was",
            hist.summary[3].as_ref().map_or(hist.end, |max| max.0)
        ));
    };
    let end = hist.last.saturating_add(width).max(width.saturating_mul(LEAST_ENTRIES));
    Ok(HistShape { width: Some(width), end, spans: false })
}

impl HistShape {
    /// Remarks on these conclusions.
    pub(super) fn note(&self, table: RtlaTable, is_stated: bool, unit: &str) -> Vec<String> {
        let mut notes = Vec::new();
        match self.width {
            None => {
                notes.push("the buckets are omitted: their width is not known from so few rows".to_owned())
            }
            Some(_) if self.spans => {
                notes.push(
                    "the only bucket was taken to reach up to the largest latency: its width is not stated"
                        .into(),
                );
            }
            Some(width) if width > 1 && !is_stated => {
                notes.push(format!("buckets of {width} {unit}, by the distance of the rows"));
            }
            Some(_) => {}
        }
        if let Some(width) = self.width.filter(|&width| width > 1 && table == RtlaTable::Osnoise) {
            notes.push(format!(
                "least, mean and largest noise are lower edges of buckets: up to {} {unit} more",
                width - 1
            ));
        }
        notes
    }
}
