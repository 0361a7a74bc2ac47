//! Properties of a record as a whole: its times, the spans of its lines, and its losses.

use serde::{Deserialize, Serialize};

use crate::keywords;
use crate::units::Nanos;

keywords! {
    /// Span of a line of a record.
    pub enum RecordTier, default Interval {
        /// an interval, as it was recorded
        Interval = "interval",
        /// the intervals of an hour
        Hour = "hour",
        /// those of a day
        Day = "day",
    }
}

impl RecordTier {
    /// Span to which lines are merged; 0 for intervals.
    pub fn span(self) -> Nanos {
        match self {
            RecordTier::Interval => Nanos(0),
            RecordTier::Hour => Nanos(3_600 * Nanos::SECOND.0),
            RecordTier::Day => Nanos(86_400 * Nanos::SECOND.0),
        }
    }

    /// Tier to which its old lines are merged.
    pub fn next(self) -> Option<RecordTier> {
        match self {
            RecordTier::Interval => Some(RecordTier::Hour),
            RecordTier::Hour => Some(RecordTier::Day),
            RecordTier::Day => None,
        }
    }
}

/// A time in the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordTime {
    pub boot: String,
    pub seq: u64,
    pub mono_ns: Nanos,
    pub wall_ns: Nanos,
}

/// Data that the record no longer holds, or never held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordLosses {
    /// Intervals whose histograms were merged to hours.
    pub rows_to_hours: u64,
    /// Intervals whose hourly histograms were merged to days.
    pub rows_to_days: u64,
    /// Intervals of which only the worst wake-ups of each hour were kept.
    pub worst_to_hours: u64,
    /// Intervals of which only the worst wake-ups of each day were kept.
    pub worst_to_days: u64,
    /// Intervals whose histograms were dropped.
    pub rows_dropped: u64,
    /// Total length of these intervals.
    pub rows_dropped_ns: Nanos,
    /// End of the last of these intervals.
    pub rows_dropped_until: RecordTime,
    /// Intervals whose worst wake-ups were dropped.
    pub worst_dropped: u64,
    /// Total length of these intervals.
    pub worst_dropped_ns: Nanos,
    /// End of the last of these intervals.
    pub worst_dropped_until: RecordTime,
    /// Lines that could not be read when they were to be merged.
    pub unread_lines: u64,
    /// Sections that could not be read when they were to be merged.
    pub damaged_sections: u64,
    /// Bytes cut at the end, left half written by a kill or a loss of power.
    pub cut_bytes: u64,
    /// Damaged intervals of the tail.
    pub damaged_intervals: u64,
}
