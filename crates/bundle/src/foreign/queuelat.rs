//! Text of queuelat: the time that each copy of a block of memory took, in rows of 100 ns.
//!
//! queuelat prints a row only if its count differs from the next row's: each row represents those
//! omitted before it as well, with the same count. It prints a first histogram while it sizes the
//! block, whose rows end in `packetfillrates`; if the time ran out before that, the totals are
//! those of the last trial.

use super::error::ImportError;
use super::format::{ForeignFormat, ImportOptions, Imported, Reader, ResultSpan};
use super::imported::{ImportedThread, empty_run, fill};
use super::quoted;
use super::source::{DocumentShape, SourceText};
use model::units::Nanos;
use model::vocabulary::Quantity;

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    id: "queuelat",
    tool: "queuelat",
    versions: "rt-tests 2.4, 2.6, 2.10",
    origin: "run here",
    carries: "histogram of the times of a loop that copies memory, least and largest as edges of their rows",
    hides: "CPU, exact extremes and mean (Avg uses upper edges); omitted rows have the count of the next \
            one, not 0; a time-out (-t) while it sizes its block gives the last trial's numbers",
    find,
    reader: Reader::Run(read),
};

/// Width of a row in nanoseconds.
const WIDTH: u64 = 100;
/// End of the histogram in nanoseconds.
const END: u64 = 70_000;

const MIN: &str = "Min loop processing time:";
const MAX: &str = "Max loop processing time:";
const AVG: &str = "Avg loop processing time:";

/// Parsed `[0 - 99] = 17`, or `[70000 - END] = 0` without an upper edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LoopRow {
    lower: u64,
    is_end: bool,
    count: u64,
}

fn row(text: &str) -> Option<LoopRow> {
    let (edges, count) = text.trim().strip_prefix('[')?.split_once("] = ")?;
    let (lower, upper) = edges.split_once(" - ")?;
    let (lower, count): (u64, u64) = (lower.parse().ok()?, count.trim().parse().ok()?);
    let is_end = upper == "END";
    let fits = if is_end { lower == END } else { lower < END && upper.parse() == Ok(lower + WIDTH - 1) };
    (fits && lower % WIDTH == 0).then_some(LoopRow { lower, is_end, count })
}

fn is_row(text: &str) -> bool {
    text.trim_start().starts_with('[') && text.contains("] = ")
}

fn is_start(text: &str) -> bool {
    text.trim_start().starts_with("tsc_freq_ghz = ") && text.contains("cycles_to_ns")
}

/// Finds a block from the heading, or the first row, to the line of the mean.
fn find(source: &SourceText) -> Vec<ResultSpan> {
    if source.shape != DocumentShape::Text {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let (mut open, mut end, mut framed) = (None, 0, false);
    let close = |open: &mut Option<usize>, end: usize, framed: bool| {
        open.take().filter(|_| framed).map(|start| ResultSpan::strong(start..end))
    };
    for (index, line) in source.lines().enumerate() {
        let text = line.text.trim();
        if is_start(text) {
            findings.extend(close(&mut open, end, framed));
            framed = false;
        }
        let is_footer = [MIN, MAX, AVG].iter().any(|start| text.starts_with(start));
        if is_start(text) || is_footer || is_row(text) {
            open.get_or_insert(index);
            end = index + 1;
            framed |= is_start(text) || is_footer;
        }
        if text.starts_with(AVG) {
            findings.extend(close(&mut open, end, framed));
            framed = false;
        }
    }
    findings.extend(close(&mut open, end, framed));
    findings
}

/// Final histogram while it is read.
#[derive(Default)]
struct Histogram {
    rows: Vec<(u64, u64)>,
    /// Lower edge of the next row.
    next: u64,
    beyond: Option<u64>,
    min: Option<LoopRow>,
    max: Option<LoopRow>,
    avg: Option<u64>,
}

impl Histogram {
    fn take(&mut self, text: &str) -> Result<(), String> {
        let expected = || format!("expected a row of queuelat like [0 - 99] = 17, found {}", quoted(text));
        if let Some(rest) = text.strip_prefix(MIN) {
            self.min = Some(extreme(rest).ok_or_else(expected)?);
        } else if let Some(rest) = text.strip_prefix(MAX) {
            self.max = Some(extreme(rest).ok_or_else(expected)?);
        } else if let Some(rest) = text.strip_prefix(AVG) {
            self.avg = Some(rest.trim().parse().map_err(|_| expected())?);
        } else if is_row(text) {
            let row = row(text).filter(|row| row.lower >= self.next && self.beyond.is_none());
            let row = row.ok_or_else(expected)?;
            // Omitted rows have its count.
            let lowers = (self.next..=row.lower).step_by(WIDTH as usize).filter(|&lower| lower < END);
            self.rows.extend(lowers.filter(|_| row.count > 0).map(|lower| (lower, row.count)));
            self.next = row.lower + WIDTH;
            self.beyond = row.is_end.then_some(row.count);
        }
        Ok(())
    }

    /// Compares the totals with those of the rows.
    fn check(&self) -> Result<(), String> {
        let Some((beyond, avg)) = self.beyond.zip(self.avg) else {
            return Err(
                "queuelat's histogram ends without 'Avg loop processing time:': give the whole output".into(),
            );
        };
        let end = (beyond > 0).then_some((END, beyond));
        let all = || self.rows.iter().copied().chain(end);
        let is_row = |stated: Option<LoopRow>, row: Option<(u64, u64)>| {
            stated.map(|stated| (stated.lower, stated.count)) == row
        };
        let count: u128 = all().map(|row| u128::from(row.1)).sum();
        let sum: u128 = all().map(|row| u128::from(row.0 + WIDTH - 1) * u128::from(row.1)).sum();
        if count == 0 {
            return Err("queuelat counted no loop: run it longer (-t)".into());
        }
        if !is_row(self.min, all().next())
            || !is_row(self.max, all().last())
            || sum / count != u128::from(avg)
        {
            return Err("queuelat's Min, Max and Avg do not match its rows: give the whole output".into());
        }
        Ok(())
    }
}

/// Parses `[0 - 99] = 17`; beyond the end the upper edge is printed like a real one.
fn extreme(text: &str) -> Option<LoopRow> {
    let (edges, count) = text.trim().strip_prefix('[')?.split_once("] = ")?;
    let lower = edges.split_once(" - ")?.0.parse().ok().filter(|lower| lower % WIDTH == 0)?;
    Some(LoopRow { lower, is_end: lower >= END, count: count.trim().parse().ok()? })
}

fn read(source: &SourceText, finding: &ResultSpan, _: &ImportOptions) -> Result<Imported, ImportError> {
    let mut histogram = Histogram::default();
    let (mut is_sized, mut last) = (false, 0);
    for line in source.slice(finding.lines.clone()) {
        last = line.number;
        let text = line.text.trim();
        if text.contains("packetfillrates=") {
            is_sized = true;
        } else if text.starts_with("default_n=") {
            // The rows so far were those of the sizing, of which the last has no fill rates.
            (is_sized, histogram) = (true, Histogram::default());
        } else {
            histogram.take(text).map_err(|what| ImportError(format!("line {}: {what}", line.number)))?;
        }
    }
    histogram.check().map_err(|what| ImportError(format!("line {last}: {what}")))?;
    let mut run = empty_run("queuelat");
    run.plan.notes.push("least and largest are edges of rows of 100 ns".into());
    let mut remarks = Vec::new();
    if !is_sized {
        let what = "queuelat ended while it sized its block: these are its last trial's loops";
        run.plan.notes.push(what.into());
        remarks.push(format!("{what}; give it more time (-t)"));
    }
    let largest = histogram.rows.last().map(|row| i128::from(row.0 + WIDTH - 1));
    let beyond = histogram.beyond.unwrap_or(0);
    let thread = ImportedThread {
        measures: Quantity::Gap.into(),
        width: WIDTH,
        overflows: beyond,
        end: Some(END),
        min: histogram.rows.first().map(|row| row.0.into()),
        max: largest.filter(|_| beyond == 0),
        buckets: histogram.rows,
        ..ImportedThread::default()
    };
    fill(&mut run, vec![thread], Nanos(1))?;
    Ok(Imported { run, blocks: Vec::new(), remarks })
}
