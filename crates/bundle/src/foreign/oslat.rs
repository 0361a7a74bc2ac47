//! oslat's results: the gaps in which a thread that polls the clock did not run, per CPU.
//!
//! oslat labels a row with its upper edge, and prints least and largest gap rounded up to 2.4, of
//! the next lower row in 2.6, and rounded down in 2.10. Up to 2.4 the first row that is not empty
//! has the label that the minimum is; since then the row of a value is the one above it.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error};

use super::error::ImportError;
use super::format::{ForeignFormat, Imported, Reader};
use super::getopt::OptionLetters;
use super::imported::{ImportedThread, fill};
use super::json_read::{self, Frame, Numbered, cpu_of, mean_of};
use super::source::SourceText;
use super::{oslat_text, quoted};
use model::run::Run;
use model::units::{Bare, Cpu, Nanos, parse_span};
use model::vocabulary::{Policy, Quantity};

pub(super) const TEXT: ForeignFormat = ForeignFormat {
    id: "oslat-text",
    tool: "oslat's text",
    versions: "rt-tests 2.4, 2.6, 2.10",
    origin: "run here",
    carries: "histogram, least, mean and largest gap, and duration per CPU; priority, planned length",
    hides: "the last row holds all longer gaps; the mean counts each gap as its row's upper edge, and with \
            -W that is no multiple of 1000 it is wrong, and not taken",
    find: oslat_text::find,
    reader: Reader::Run(oslat_text::read),
};

pub(super) const JSON: ForeignFormat = ForeignFormat {
    id: "oslat-json",
    tool: "oslat's JSON",
    versions: "rt-tests 2.4, 2.6, 2.10",
    origin: "run here",
    carries: "the same with the command line, kernel, start and end",
    hides: "the last bucket holds all longer gaps, which nothing in it says; min and max are nanoseconds \
            with -W that is no multiple of 1000",
    find: |source| json_read::find_program(source, "oslat"),
    reader: Reader::Run(|source, _, _| read_json(source)),
};

/// oslat's output before its table, which -T at the threshold or a signal ended.
pub(super) const UNFINISHED: ForeignFormat = ForeignFormat {
    id: "oslat-unfinished",
    tool: "oslat's output without its table",
    versions: "rt-tests 2.4, 2.6, 2.10",
    origin: "run here",
    carries: "nothing: refused",
    hides: "how many gaps there were: -T ends the test at the first that reaches the threshold",
    find: oslat_text::find_unfinished,
    reader: Reader::Refused(
        "it ended at its threshold (-T) or was ended: run it without -T, or give the whole output",
    ),
};

const LETTERS: OptionLetters = OptionLetters { valued: "bcCDfmwWT", optional: "" };

/// One CPU's result in nanoseconds.
#[derive(Default)]
pub(super) struct OslatCore {
    pub cpu: Option<Cpu>,
    /// Rows that are not empty: label and count.
    pub rows: Vec<(u64, u64)>,
    pub min: u64,
    pub max: u64,
    pub mean: Option<Nanos>,
    pub duration: Option<Nanos>,
}

/// Adds the CPUs to the run; the width is that of a row in nanoseconds.
///
/// The last row counts as what is beyond the histogram where the largest gap is not in it.
pub(super) fn fill_cores(run: &mut Run, cores: Vec<OslatCore>, width: u64) -> Result<(), ImportError> {
    let first = |core: &OslatCore| core.rows.first().map(|row| row.0);
    // Labels are values up to 2.4, and upper edges of values since.
    let below = if cores.iter().any(|core| first(core) == Some(core.min)) { 0 } else { width };
    run.elapsed_ns = cores.iter().filter_map(|core| core.duration).max();
    let mut threads = Vec::with_capacity(cores.len());
    for (index, core) in cores.into_iter().enumerate() {
        let name = core.cpu.map_or_else(|| format!("thread {index}"), |cpu| format!("core {cpu}"));
        let mut buckets: Vec<(u64, u64)> =
            core.rows.iter().map(|&(label, count)| (label.saturating_sub(below), count)).collect();
        let beyond = match buckets.last() {
            Some(&(lower, count)) if core.max >= lower.saturating_add(width) => Some((lower, count)),
            Some(_) => None,
            None if core.rows.is_empty() && core.max == 0 => None,
            None => return Err(ImportError(format!("{name}: no row holds a gap: give the whole output"))),
        };
        if beyond.is_some() {
            buckets.pop();
        }
        threads.push(ImportedThread {
            cpu: core.cpu,
            measures: Quantity::Gap.into(),
            buckets,
            width,
            overflows: beyond.map_or(0, |beyond| beyond.1),
            end: beyond.map(|beyond| beyond.0),
            min: Some(core.min.into()),
            max: Some(core.max.into()),
            mean_ns: core.mean,
            ..ImportedThread::default()
        });
    }
    fill(run, threads, Nanos(1))?;
    Ok(())
}

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

/// Microseconds with up to three decimals, in nanoseconds.
pub(super) fn micros(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) || fraction.len() > 3 {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<3}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1000)?.checked_add(fraction)
}

#[derive(serde::Deserialize)]
struct CoreThread {
    cpu: Option<i64>,
    min: u64,
    max: u64,
    avg: Option<f64>,
    duration: Option<f64>,
    histogram: Numbered<u64, Label>,
}

fn read_json(source: &SourceText) -> Result<Imported, ImportError> {
    let mut frame: Frame<CoreThread> = Frame::parse(source.text().as_bytes(), "oslat")?;
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

/// oslat runs at SCHED_OTHER unless it is given a priority.
pub(super) fn fill_priority(run: &mut Run, priority: Option<u32>) {
    let policy = if priority.is_some() { Policy::Fifo } else { Policy::Other };
    (run.plan.policy, run.plan.priority) = (policy.into(), Some(priority.unwrap_or(0)));
}
