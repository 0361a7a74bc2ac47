//! Lines of a record's files.

use model::keyword::Word;
use model::units::Nanos;
use model::wall_time::wall_time;
use model::watch::{
    WatchCoverage, WatchEnvironment, WatchInterval, WatchMark, WatchRow, WatchRun, WatchSeries, WorstWakeup,
};
use serde::{Deserialize, Serialize};

/// Schema of rows.
pub const ROWS_SCHEMA: &str = "onbeat.rows/1";
/// Schema of a record and its worst wake-ups.
pub const WATCH_SCHEMA: &str = "onbeat.watch/1";

/// 2020-01-01: records are newer, so that a clock with an earlier time has not been set. Machines
/// without a clock chip begin in 1970, and with some chips in 2000.
pub const CLOCK_SET: Nanos = Nanos(1_577_836_800 * Nanos::SECOND.0);

/// Line before rows: values for all of them up to the next such line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HeaderLine {
    pub schema: String,
    #[serde(flatten)]
    pub run: WatchRun,
    /// Span of a line: an interval, an hour, a day.
    pub span_ns: Nanos,
    /// Series of the rows; empty before the worst wake-ups, which are of all series.
    #[serde(skip_serializing_if = "Word::is_empty")]
    pub series: Word<WatchSeries>,
    pub env: String,
}

/// Time of an interval, or of several that were added up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LineSpan {
    pub seq: u64,
    /// Number of the last interval that was added up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seq: Option<u64>,
    pub mono_ns: Nanos,
    /// Recorded time, without gaps between the intervals that were added up.
    pub span_ns: Nanos,
    /// End of the last of these intervals, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_mono_ns: Option<Nanos>,
    /// CLOCK_REALTIME at `mono_ns`, RFC 3339.
    pub time: String,
    /// CLOCK_REALTIME at `mono_ns`, in ns.
    pub wall_ns: Nanos,
    pub env: String,
    pub integrity: Vec<String>,
}

/// Histograms of a series over one interval or several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowsLine {
    #[serde(flatten)]
    pub at: LineSpan,
    pub cpus: Vec<WatchRow>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<WatchRow>,
}

/// Other data of an interval or of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorstLine {
    #[serde(flatten)]
    pub at: LineSpan,
    /// Number of intervals.
    pub intervals: u64,
    pub coverage: WatchCoverage,
    pub worst: Vec<WorstWakeup>,
    pub marks: Vec<WatchMark>,
    /// Number of marks that did not fit.
    #[serde(skip_serializing_if = "is_zero")]
    pub marks_dropped: u64,
}

/// Test that serde calls.
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Environment in full, if it is new.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnvironmentLine {
    pub environment: WatchEnvironment,
}

impl LineSpan {
    /// Span of an interval.
    pub fn of(interval: &WatchInterval, seq: u64) -> LineSpan {
        LineSpan {
            seq,
            mono_ns: interval.mono_ns,
            span_ns: interval.span_ns,
            time: wall_time(interval.wall_ns),
            wall_ns: interval.wall_ns,
            env: interval.env.clone(),
            integrity: interval.integrity.clone(),
            ..LineSpan::default()
        }
    }

    /// True if its clock had been set: see [`CLOCK_SET`].
    pub fn is_dated(&self) -> bool {
        self.wall_ns >= CLOCK_SET
    }

    /// Number of the last interval in it.
    pub fn last_seq(&self) -> u64 {
        self.last_seq.unwrap_or(self.seq)
    }

    /// End of the span.
    pub fn end(&self) -> Nanos {
        self.until_mono_ns.unwrap_or(Nanos(self.mono_ns.0.saturating_add(self.span_ns.0)))
    }

    /// Adds the span of a line that follows.
    pub fn add(&mut self, next: &LineSpan) {
        self.until_mono_ns = Some(self.end().max(next.end()));
        self.last_seq = Some(self.last_seq().max(next.last_seq()));
        self.span_ns = Nanos(self.span_ns.0.saturating_add(next.span_ns.0));
        for kind in &next.integrity {
            if !self.integrity.contains(kind) {
                self.integrity.push(kind.clone());
            }
        }
    }
}

impl WorstLine {
    /// Line of an interval; a wake-up that is the worst of several series is there once.
    pub fn of(interval: &WatchInterval, seq: u64, unwritten: u64) -> WorstLine {
        let mut worst: Vec<WorstWakeup> = Vec::new();
        interval.worst.iter().for_each(|one| add_worst(&mut worst, one));
        let mut coverage = interval.coverage;
        coverage.unwritten = coverage.unwritten.saturating_add(unwritten);
        let at = LineSpan::of(interval, seq);
        WorstLine { at, intervals: 1, coverage, worst, marks: interval.marks.clone(), marks_dropped: 0 }
    }
}

/// Adds a wake-up to a list without repetitions.
pub fn add_worst(list: &mut Vec<WorstWakeup>, one: &WorstWakeup) {
    let same = |other: &&mut WorstWakeup| {
        other.is_same(one) && (&other.holder, &other.victims) == (&one.holder, &one.victims)
    };
    match list.iter_mut().find(same) {
        Some(known) => {
            for series in &one.worst_of {
                if !known.worst_of.contains(series) {
                    known.worst_of.push(series.clone());
                }
            }
        }
        None => list.push(one.clone()),
    }
}
