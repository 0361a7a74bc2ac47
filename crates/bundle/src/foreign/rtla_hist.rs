//! rtla's histograms: `timerlat hist` and `osnoise hist`.
//!
//! A row's first number is the lower edge of its bucket, the next ones are counts of the columns
//! `IRQ-000`, `Thr-000`, `Usr-000` (`CPU-000` of osnoise). Rows without a sample are omitted, and
//! the width of a bucket is not printed: [`super::rtla_width`] derives it.

use model::units::Nanos;
use model::vocabulary::Quantity;

use super::error::ImportError;
use super::format::{ImportOptions, Imported, ResultSpan};
use super::imported::{ImportedThread, empty_run, fill};
use super::rtla_hist_find::{HistLine, LABELS, RtlaColumn, RtlaTable, next_step, parse};
use super::rtla_hist_table::{RtlaHist, RtlaSummary};
use super::rtla_shared::refuse;
use super::source::{SourceText, TextLine};
use super::{
    BUCKET_LIMIT, quoted, rtla_command, rtla_hist_check as check, rtla_shared, rtla_width as width, unit,
};
use model::text::several;

/// Reads the block.
pub(super) fn read(
    source: &SourceText,
    finding: &ResultSpan,
    options: &ImportOptions,
) -> Result<Imported, ImportError> {
    let mut lines = source.slice(finding.lines.clone());
    let is_osnoise = |line: TextLine| match parse(line.text) {
        HistLine::Heading(table) => Some(table == RtlaTable::Osnoise),
        HistLine::Columns(columns, _) => Some(columns.iter().any(|column| column.quantity == Quantity::Gap)),
        _ => None,
    };
    let name =
        if lines.find_map(is_osnoise) == Some(true) { "rtla osnoise hist" } else { "rtla timerlat hist" };
    read_block(source, finding, options, name).map_err(|error| rtla_shared::of_tool(name, error))
}

fn read_block(
    source: &SourceText,
    finding: &ResultSpan,
    options: &ImportOptions,
    name: &str,
) -> Result<Imported, ImportError> {
    let mut hist = RtlaHist::default();
    for line in source.slice(finding.lines.clone()) {
        hist.end = line.number;
        hist.take(line.number, parse(line.text))
            .map_err(|what| ImportError(format!("line {}: {what}", line.number)))?;
    }
    let table = hist.table()?;
    check::complete(&hist, table)?;
    let command = rtla_command::before(source, finding.lines.start, table, "hist");
    let unit = hist.unit.unwrap_or(match &command {
        _ if options.nanoseconds => Nanos(1),
        Some(command) if command.nanoseconds => Nanos(1),
        _ => Nanos::MICRO,
    });
    let contradicts = |command: &rtla_command::RtlaCommand| command.nanoseconds != (unit == Nanos(1));
    let command = command.filter(|command| !contradicts(command) && width::agrees(&hist, command));
    let shape = width::shape(&hist, table, command.as_ref())?;
    check::columns(&hist, &shape)?;
    check::all(&hist)?;
    let mut run = empty_run(name);
    if let Some(command) = &command {
        command.fill(&mut run.plan);
    }
    let interval = run.plan.interval_ns;
    let mut threads = hist.threads(&shape, unit);
    threads.iter_mut().for_each(|thread| thread.interval = interval);
    fill(&mut run, threads, unit)?;
    rtla_shared::describe(&mut run, source, finding.lines.end, hist.elapsed, hist.loss.as_deref());
    let unit_name = if unit == Nanos(1) { "ns" } else { "us" };
    if hist.unit.is_none() && command.is_none() && !options.nanoseconds {
        run.plan
            .notes
            .push("latencies were taken as microseconds: '# Time unit is' is not in the text".into());
    }
    run.plan.notes.extend(shape.note(table, command.is_some(), unit_name));
    let mut imported = Imported::from(run);
    if hist.passed > 0 {
        let lines = several(hist.passed, "line between its own was", "lines between its own were");
        imported.remarks.push(format!("{lines} skipped"));
    }
    Ok(imported)
}

impl RtlaHist {
    fn take(&mut self, number: usize, line: HistLine) -> Result<(), ImportError> {
        match line {
            HistLine::Heading(table) => self.heading = Some(table),
            HistLine::Unit(text) => {
                let stated = unit::stated(text).filter(|unit| [Nanos(1), Nanos::MICRO].contains(unit));
                let Some(stated) = stated.filter(|unit| self.unit.is_none_or(|before| before == *unit))
                else {
                    return refuse(format!(
                        "invalid unit {}: expected microseconds (us) or nanoseconds (ns), as rtla prints it",
                        quoted(text)
                    ));
                };
                self.unit = Some(stated);
            }
            HistLine::Elapsed(text) => self.elapsed = rtla_shared::elapsed(text),
            HistLine::Columns(columns, _) => {
                self.head = number;
                self.buckets = vec![Vec::new(); columns.len()];
                self.columns = columns;
            }
            HistLine::Row(text) if self.head > 0 && self.step == 0 => return self.take_row(text),
            HistLine::Labelled(name, numbers) => return self.take_labelled(number, name, numbers),
            HistLine::Loss(text) => self.loss = Some(text.to_owned()),
            HistLine::Other(text) if self.head > 0 && self.step == 0 && self.is_damaged(text) => {
                return refuse(format!(
                    "invalid row {}: expected a number and {} counts",
                    quoted(text),
                    self.columns.len()
                ));
            }
            HistLine::Stop | HistLine::Row(_) | HistLine::Other(_) => self.passed += 1,
        }
        Ok(())
    }

    /// True for a line with the words of a row, most of them numbers.
    fn is_damaged(&self, text: &str) -> bool {
        let words = text.split_ascii_whitespace();
        let numbers = words.clone().filter(|word| word.parse::<u64>().is_ok()).count();
        words.count() == self.columns.len() + 1 && 2 * numbers > self.columns.len()
    }

    fn take_row(&mut self, text: &str) -> Result<(), ImportError> {
        let count = self.columns.len();
        let invalid =
            || ImportError(format!("invalid row {}: expected a number and {count} counts", quoted(text)));
        let mut words = text.split_ascii_whitespace().map(|word| word.parse::<u64>().map_err(|_| invalid()));
        let bucket = words.next().ok_or_else(invalid)??;
        let mut index = 0;
        for word in words {
            let counted = word?;
            let buckets = self.buckets.get_mut(index).ok_or_else(invalid)?;
            if counted > 0 {
                buckets.push((bucket, counted));
                self.held += 1;
            }
            index += 1;
        }
        if index != count {
            return Err(invalid());
        }
        if self.held > BUCKET_LIMIT {
            return refuse(format!("expected at most {BUCKET_LIMIT} buckets that are not empty"));
        }
        if self.rows > 0 && self.last >= bucket {
            let last = self.last;
            return refuse(format!(
                "row {bucket} after row {last}: expected ascending rows of one histogram"
            ));
        }
        (self.rows, self.last, self.distance) = (self.rows + 1, bucket, width::gcd(self.distance, bucket));
        Ok(())
    }

    fn take_labelled(&mut self, number: usize, name: &str, numbers: &str) -> Result<(), ImportError> {
        // A table without columns is refused as a whole.
        let Some(next) = next_step(self.step, name).filter(|_| !self.columns.is_empty()) else {
            self.passed += 1;
            return Ok(());
        };
        self.step = next;
        let words = numbers.split_ascii_whitespace();
        if name == "ALL" {
            self.kinds = Some((number, words.map(str::to_owned).collect()));
            return Ok(());
        }
        let expected = self.kinds.as_ref().map_or(self.columns.len(), |kinds| kinds.1.len());
        let found = words.clone().count();
        if found != expected {
            let zeros = if found == 1 && numbers.trim() == "0" && self.step < 6 {
                "; rtla prints single zeros where no noise is within the histogram: repeat with a larger -E"
            } else {
                ": give the whole output"
            };
            return refuse(format!("expected {expected} numbers after {name}:, found {found}{zeros}"));
        }
        let invalid = |word: &str| {
            ImportError(format!("invalid number {} after {name}:: give the output as it was", quoted(word)))
        };
        if name == "over" {
            let over = words.map(|word| word.parse::<u64>().map_err(|_| invalid(word)));
            self.over = Some((number, over.collect::<Result<_, _>>()?));
            return Ok(());
        }
        let values = words.map(|word| check::thousandths(word).ok_or_else(|| invalid(word)));
        let values = Some((number, values.collect::<Result<_, _>>()?));
        let label = LABELS.iter().position(|label| *label == name);
        let place = if self.kinds.is_some() { &mut self.all } else { &mut self.summary };
        if let Some(place) = label.and_then(|label| place.get_mut(label)) {
            *place = values;
        }
        Ok(())
    }

    /// Table of the columns; an error if the heading states the other one.
    fn table(&self) -> Result<RtlaTable, ImportError> {
        let (end, head) = (self.end, self.head);
        let Some(first) = self.columns.first() else {
            return refuse(match head {
                0 => format!("line {end}: the histogram ends before its columns: give the whole output"),
                _ => format!(
                    "line {head}: no CPU has a sample: repeat the run with a lower threshold (-T) or longer"
                ),
            });
        };
        let is_gap = |column: &RtlaColumn| column.quantity == Quantity::Gap;
        let table = if is_gap(first) { RtlaTable::Osnoise } else { RtlaTable::Timerlat };
        if self.heading.is_some_and(|heading| heading != table) {
            return refuse(format!(
                "line {head}: the columns are not those of the heading: give one whole output"
            ));
        }
        let mut keys: Vec<_> =
            self.columns.iter().map(|column| (column.cpu, column.quantity.name())).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() != self.columns.len()
            || self.columns.iter().any(|column| is_gap(column) != is_gap(first))
        {
            return refuse(format!(
                "line {head}: the columns are not those of one run: give the output as it was"
            ));
        }
        Ok(table)
    }

    /// Value of the summary of a column.
    pub(super) fn value(&self, label: usize, column: usize) -> RtlaSummary {
        self.summary.get(label)?.as_ref()?.1.get(column).copied()?
    }

    /// Number of a column's samples beyond the rows.
    pub(super) fn overflows(&self, column: usize) -> u64 {
        self.over.as_ref().and_then(|over| over.1.get(column).copied()).unwrap_or(0)
    }

    fn threads(&mut self, shape: &width::HistShape, unit: Nanos) -> Vec<ImportedThread> {
        let whole = |value: RtlaSummary| value.and_then(|value| i128::try_from(value / 1000).ok());
        let buckets = std::mem::take(&mut self.buckets);
        let threads = self.columns.iter().zip(buckets).enumerate().map(|(index, (column, buckets))| {
            let mean = self.value(2, index).and_then(|mean| mean.checked_mul(unit.0.unsigned_abs().into()));
            let thread = ImportedThread {
                cpu: Some(column.cpu),
                measures: column.quantity.into(),
                min: whole(self.value(1, index)),
                max: whole(self.value(3, index)),
                mean_ns: mean.and_then(|mean| i64::try_from((mean + 500) / 1000).ok()).map(Nanos),
                ..ImportedThread::default()
            };
            match shape.width {
                Some(width) => {
                    let overflows = self.overflows(index);
                    ImportedThread { buckets, width, overflows, end: Some(shape.end), ..thread }
                }
                // Without a row no width is needed: all samples are beyond the last.
                None if buckets.is_empty() && self.overflows(index) > 0 => {
                    let end = thread.min.and_then(|min| u64::try_from(min).ok());
                    ImportedThread { overflows: self.overflows(index), end, ..thread }
                }
                None => {
                    let cycles = self.value(0, index).and_then(|count| u64::try_from(count / 1000).ok());
                    ImportedThread { summary_only: true, cycles, ..thread }
                }
            }
        });
        threads.collect()
    }
}
