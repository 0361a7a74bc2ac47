//! What is known of a record as a whole: its times, what its lines span, what it no longer holds.

use serde::{Deserialize, Serialize};

use crate::keywords;
use crate::units::Nanos;

keywords! {
    /// What a line of a record spans.
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
    /// The span that its lines are added up to, none for intervals.
    pub fn span(self) -> Nanos {
        match self {
            RecordTier::Interval => Nanos(0),
            RecordTier::Hour => Nanos(3_600 * Nanos::SECOND.0),
            RecordTier::Day => Nanos(86_400 * Nanos::SECOND.0),
        }
    }

    /// What its lines are added up to when they are old.
    pub fn next(self) -> Option<RecordTier> {
        match self {
            RecordTier::Interval => Some(RecordTier::Hour),
            RecordTier::Hour => Some(RecordTier::Day),
            RecordTier::Day => None,
        }
    }
}

/// A time of the record.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordTime {
    pub boot: String,
    pub seq: u64,
    pub mono_ns: Nanos,
    pub wall_ns: Nanos,
}

/// What the record no longer holds, or never held.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordLosses {
    /// Intervals whose histograms were added up to hours, and those of these that were to days.
    pub rows_to_hours: u64,
    pub rows_to_days: u64,
    /// Intervals of which the worst of each hour were kept, and of each day.
    pub worst_to_hours: u64,
    pub worst_to_days: u64,
    /// Intervals whose histograms were dropped, and how long they were together,
    pub rows_dropped: u64,
    pub rows_dropped_ns: Nanos,
    /// up to this time.
    pub rows_dropped_until: RecordTime,
    /// The same for the worst wake-ups.
    pub worst_dropped: u64,
    pub worst_dropped_ns: Nanos,
    pub worst_dropped_until: RecordTime,
    /// Lines and sections that could not be read any more when they were to be merged.
    pub unread_lines: u64,
    pub damaged_sections: u64,
    /// Bytes at the end that a kill or a loss of power had left half written.
    pub cut_bytes: u64,
    /// Intervals of the tail that were damaged.
    pub damaged_intervals: u64,
}
