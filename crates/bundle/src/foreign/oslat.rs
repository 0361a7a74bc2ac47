//! Results of oslat: the gaps in which a thread that polls the clock did not run, per CPU.
//!
//! oslat labels a row with its upper edge, and prints least and largest gap rounded up to 2.4, of
//! the next lower row in 2.6, and rounded down in 2.10. Up to 2.4 the label of the first row that
//! is not empty equals the minimum; since then the row of a value is the one above it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error};

use super::error::ImportError;
use super::format::{ForeignFormat, Imported, Reader};
use super::getopt::OptionLetters;

use super::json_read::{self, NumberedEntries, RtTestsFrame, cpu_of, mean_of};
use super::oslat_cores::{OslatCore, fill_cores, fill_priority, micros};
use super::source::SourceText;
use super::{oslat_text, quoted};
use model::units::{Bare, Nanos, parse_span};

pub(super) const TEXT: ForeignFormat = ForeignFormat {
    id: "oslat-text",
    tool: "oslat's text",
    versions: "rt-tests 2.4, 2.6, 2.10",
    origin: "run here",
    carries: "histogram, least, mean and largest gap, and duration per CPU; priority, planned length",
    hides: "the last row holds all longer gaps; the mean counts each gap as its row's upper edge, and is \
            wrong and ignored if -W is not a multiple of 1000",
    find: oslat_text::find,
    reader: Reader::Run(oslat_text::read),
};

pub(super) const JSON: ForeignFormat = ForeignFormat {
    id: "oslat-json",
    tool: "oslat's JSON",
    versions: "rt-tests 2.4, 2.6, 2.10",
    origin: "run here",
    carries: "the same with the command line, kernel, start and end",
    hides: "the last bucket holds all longer gaps, without a mark; min and max are in nanoseconds if -W is \
            not a multiple of 1000",
    find: |source| json_read::find_program(source, "oslat"),
    reader: Reader::Run(|source, _, _| read_json(source)),
};

/// Output of oslat before its table, ended by -T at the threshold or by a signal.
pub(super) const UNFINISHED: ForeignFormat = ForeignFormat {
    id: "oslat-unfinished",
    tool: "oslat's output without its table",
    versions: "rt-tests 2.4, 2.6, 2.10",
    origin: "run here",
    carries: "nothing: refused",
    hides: "the number of gaps: -T ends the test at the first that reaches the threshold",
    find: oslat_text::find_unfinished,
    reader: Reader::Refused(
        "it ended at its threshold (-T) or was interrupted: run it without -T, or give the whole output",
    ),
};

const LETTERS: OptionLetters = OptionLetters { valued: "bcCDfmwWT", optional: "" };

/// A label of the JSON in nanoseconds: microseconds, with three decimals or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Label {
    ns: u64,
    is_fraction: bool,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}.{:03}", self.ns / 1000, self.ns % 1000)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let ns = micros(&text).ok_or_else(|| {
            D::Error::custom(format!("expected a bucket in microseconds, found {}", quoted(&text)))
        })?;
        Ok(Label { ns, is_fraction: text.contains('.') })
    }
}

#[derive(serde::Deserialize)]
struct CoreThread {
    cpu: Option<i64>,
    min: u64,
    max: u64,
    avg: Option<f64>,
    duration: Option<f64>,
    histogram: NumberedEntries<u64, Label>,
}

fn read_json(source: &SourceText) -> Result<Imported, ImportError> {
    let mut frame: RtTestsFrame<CoreThread> = RtTestsFrame::parse(source.text().as_bytes(), "oslat")?;
    let mut run = frame.run_of("oslat");
    let threads = frame.threads("oslat")?;
    let option = |letter, name| LETTERS.option(&frame.command_line, letter, name);
    let is_fine = threads.iter().flat_map(|thread| &thread.histogram.0).any(|row| row.0.is_fraction);
    let width = option('W', "bucket-width").number().filter(|&width| width > 0).unwrap_or(1000);
    let unit = if is_fine { Nanos(1) } else { Nanos::MICRO };
    let mut cores = Vec::with_capacity(threads.len());
    for (number, thread) in threads.into_iter().enumerate() {
        let at = |what: String| ImportError(format!("thread {number}: {what}"));
        let ns = |value: u64| {
            value.checked_mul(unit.0 as u64).ok_or_else(|| at("a gap of more than 292 years".to_owned()))
        };
        cores.push(OslatCore {
            cpu: cpu_of(thread.cpu).map_err(at)?,
            rows: thread.histogram.0.into_iter().map(|(label, count)| (label.ns, count)).collect(),
            min: ns(thread.min)?,
            max: ns(thread.max)?,
            mean: thread.avg.filter(|_| !is_fine).and_then(|avg| mean_of(avg, Nanos::MICRO)),
            duration: thread.duration.and_then(|s| mean_of(s, Nanos::SECOND)),
        });
        if let Some(core) = cores.last_mut() {
            core.rows.retain(|row| row.1 > 0);
        }
    }
    let duration = option('D', "duration").value();
    run.plan.duration_ns = duration.and_then(|text| parse_span(text, Bare::Seconds).ok());
    fill_priority(&mut run, option('f', "rtprio").number());
    fill_cores(&mut run, cores, width)?;
    Ok(run.into())
}

#[cfg(test)]
mod tests {
    use crate::foreign::testing::import_one;
    use crate::foreign::{ImportOptions, import};
    use model::units::Nanos;

    const BUCKETS: &str = include_str!("../../../../tests/fixtures/foreign/oslat/2.10-buckets.json");

    #[test]
    fn numbers_that_contradict_each_other_are_refused() {
        let refusal = |from: &str, to: &str| {
            assert_eq!(BUCKETS.matches(from).count(), 1, "{from}");
            let text = BUCKETS.replacen(from, to, 1);
            import(text.as_bytes(), &ImportOptions::default()).map_or_else(|error| error.0, |_| "read".into())
        };
        assert_eq!(refusal("\"avg\": 1.047114", "\"avg\": 1.047114"), "read");
        for (from, to, what) in [
            ("\"avg\": 1.047114", "\"avg\": 500.5", "the mean, 500500, does not match the rows"),
            ("\"avg\": 1.047114", "\"avg\": 1e30", "a mean of more than"),
            ("\"duration\": 1.006", "\"duration\": 0.006", "do not fit its duration, 6 ms"),
            ("\"duration\": 1.006", "\"duration\": 1e30", "do not fit its duration"),
            ("\"57\": 2", "\"57\": 9223372036854775808", "do not fit its duration"),
            ("\"57\": 2", "\"57\": 1500000", "the mean, 1047, does not match the rows"),
        ] {
            let error = refusal(from, to);
            assert!(error.contains(what), "{to}: {error}");
        }
    }

    #[test]
    fn the_mean_of_short_gaps_is_their_rows_upper_edge() {
        let frame = BUCKETS.split("\"thread\"").next().unwrap();
        let thread = "\"0\": {\"histogram\": {\"2\": 900}, \"cpu\": 1, \"freq\": 2597, \"min\": 1, \
                      \"avg\": 2.0, \"max\": 1, \"duration\": 1.006}";
        let run = import_one(&format!("{frame}\"thread\": {{{thread}}}}}"));
        assert_eq!((run.cpus[0].max_ns, run.cpus[0].mean_ns), (Some(Nanos(1_000)), Some(Nanos(2_000))));
    }
}
