//! Text of oslat: its heading, a table with a column per CPU, and the table's footer.

use std::ops::Range;

use super::error::ImportError;
use super::format::{ImportOptions, Imported, ResultSpan};
use super::imported::empty_run;
use super::json_read::mean_of;
use super::oslat_cores::{OslatCore, fill_cores, fill_priority, micros};
use super::source::{DocumentShape, SourceText};
use super::{THREAD_LIMIT, quoted};
use model::units::{CPU_LIMIT, Cpu, Nanos};

/// Maximum number of rows of a histogram (`-b`), with the lines around them.
const REACH: usize = 1200;
/// Maximum number of lines between the heading and the table.
const HEADING_REACH: usize = 16;

/// Label and numbers of a line of the table.
fn field(text: &str) -> Option<(&str, &str)> {
    let (label, values) = text.split_once(':')?;
    Some((label.trim(), values.trim()))
}

fn is_label(text: &str, wanted: &str) -> bool {
    field(text).is_some_and(|(label, _)| label == wanted)
}

fn is_heading(text: &str) -> bool {
    text.trim_start().starts_with("oslat V ")
}

fn is_frequency(text: &str) -> bool {
    is_label(text, "Counter Freq") || is_label(text, "CPU Freq")
}

/// Finds tables, each with its heading if that precedes it.
pub(super) fn find(source: &SourceText) -> Vec<ResultSpan> {
    let mut findings: Vec<Range<usize>> = Vec::new();
    let text = |index| source.line(index).map_or("", |line| line.text);
    for index in 0..lines_of(source) {
        if is_label(text(index), "Core") && is_frequency(text(index + 1)) {
            let from = findings.last().map_or(0, |last| last.end).max(index.saturating_sub(HEADING_REACH));
            let heading = (from..index).rev().find(|&at| is_heading(text(at)));
            findings.push(heading.unwrap_or(index)..table_end(source, index));
        }
    }
    findings.into_iter().map(ResultSpan::strong).collect()
}

/// Finds headings without a following table, and the message of the end at -T.
pub(super) fn find_unfinished(source: &SourceText) -> Vec<ResultSpan> {
    let text = |index| source.line(index).map_or("", |line| line.text);
    let is_open = |at: &usize| {
        let next = text(at + 1);
        let is_open = next.starts_with("Total runtime:") || next.starts_with("WARNING: Running SCHED_FIFO");
        let table = || (at + 1..=at + HEADING_REACH).any(|index| is_label(text(index), "Core"));
        // Since 2.4 the heading comes last.
        let is_threshold =
            text(*at).contains("Trace threshold (") && text(*at).contains(" triggered on cpu ");
        (is_open && is_heading(text(*at)) || is_threshold) && !table()
    };
    let open = (0..lines_of(source)).filter(is_open);
    open.map(|at| ResultSpan::strong(at..at + 1)).collect()
}

/// Number of lines of a text; JSON and XML have none here.
fn lines_of(source: &SourceText) -> usize {
    if source.shape == DocumentShape::Text { source.lines().len() } else { 0 }
}

/// End of the table's lines, whole or cut.
fn table_end(source: &SourceText, start: usize) -> usize {
    let mut end = start + 2;
    for (index, line) in source.slice(end..(end + REACH).min(lines_of(source))).enumerate() {
        let Some((label, _)) = field(line.text) else {
            if line.text.trim() == "..." {
                continue;
            }
            break;
        };
        let is_footer = matches!(label, "Minimum" | "Average" | "Maximum" | "Max-Min" | "Duration");
        if !is_footer && !label.ends_with("(us)") {
            break;
        }
        end = start + 2 + index + 1;
        if label == "Duration" {
            break;
        }
    }
    end
}

/// Lines of the table read so far.
#[derive(Default)]
struct Read {
    cores: Vec<OslatCore>,
    /// Labels of all rows, and true if rows were omitted before each.
    labels: Vec<(u64, bool)>,
    omitted: bool,
    /// True if a row is empty: then no row was omitted for that (-z).
    has_empty: bool,
    is_fine: bool,
    /// True if the last row states that it includes the gaps beyond it.
    has_end: bool,
    footers: u32,
}

impl Read {
    fn take(&mut self, text: &str) -> Result<(), String> {
        let Some((label, values)) = field(text) else {
            self.omitted |= text.trim() == "...";
            return Ok(());
        };
        match label {
            "Core" => return self.take_cores(values),
            "Counter Freq" | "CPU Freq" => return self.numbers(values, "(MHz)", micros).map(drop),
            "Average" => {
                let is_fine = self.is_fine;
                // There, the sum of longer gaps is in another unit.
                let mean = |text: &str| Some(text.parse().ok().and_then(|us| mean_of(us, Nanos::MICRO)));
                let means = self.numbers(values, "(us)", mean)?;
                self.cores
                    .iter_mut()
                    .zip(means)
                    .for_each(|(core, mean)| core.mean = mean.filter(|_| !is_fine));
            }
            "Minimum" => {
                let list = self.numbers(values, "(us)", micros)?;
                self.cores.iter_mut().zip(list).for_each(|(core, ns)| core.min = ns);
                self.footers |= 1;
            }
            "Maximum" => {
                let list = self.numbers(values, "(us)", micros)?;
                self.cores.iter_mut().zip(list).for_each(|(core, ns)| core.max = ns);
                self.footers |= 2;
            }
            "Max-Min" => {
                let list = self.numbers(values, "(us)", micros)?;
                let agrees = |core: &OslatCore, ns: u64| core.max.checked_sub(core.min) == Some(ns);
                if !self.cores.iter().zip(list).all(|(core, ns)| agrees(core, ns)) {
                    return Err(
                        "Max-Min is not Maximum minus Minimum: give the text as it was printed".into()
                    );
                }
            }
            "Duration" => {
                let second = |text: &str| text.parse().ok().and_then(|s| mean_of(s, Nanos::SECOND));
                let list = self.numbers(values, "(sec)", second)?;
                self.cores.iter_mut().zip(list).for_each(|(core, s)| core.duration = Some(s));
                self.footers |= 4;
            }
            label => self.take_row(label, values)?,
        }
        Ok(())
    }

    fn take_cores(&mut self, values: &str) -> Result<(), String> {
        let cpus = values.split_ascii_whitespace().take(THREAD_LIMIT + 1);
        let cpus: Option<Vec<u32>> =
            cpus.map(|word| word.parse().ok().filter(|&cpu| cpu < CPU_LIMIT)).collect();
        let cpus = cpus.filter(|cpus| (1..=THREAD_LIMIT).contains(&cpus.len()));
        let cpus = cpus.ok_or_else(|| format!("expected CPUs behind Core:, found {}", quoted(values)))?;
        let core = |cpu| OslatCore { cpu: Some(Cpu(cpu)), ..OslatCore::default() };
        self.cores = cpus.into_iter().map(core).collect();
        Ok(())
    }

    fn take_row(&mut self, label: &str, values: &str) -> Result<(), String> {
        let label = label.strip_suffix("(us)").unwrap_or(label).trim();
        let ns = micros(label).filter(|&ns| self.labels.last().is_none_or(|last| last.0 < ns));
        let ns = ns.ok_or_else(|| format!("expected a larger row in us, found {}", quoted(label)))?;
        self.is_fine |= label.contains('.');
        let (values, is_end) = match values.strip_suffix("(including overflows)") {
            Some(values) => (values, true),
            None => (values, false),
        };
        if self.has_end {
            return Err("a row behind the one with (including overflows): give one result".into());
        }
        self.has_end = is_end;
        self.labels.push((ns, std::mem::take(&mut self.omitted)));
        let counts: Vec<u64> = self.numbers(values, "", |word| word.parse().ok())?;
        self.has_empty |= !is_end && counts.iter().all(|&count| count == 0);
        for (core, count) in self.cores.iter_mut().zip(counts) {
            core.rows.extend((count > 0).then_some((ns, count)));
        }
        Ok(())
    }

    /// A number per core, with the unit behind the last one.
    fn numbers<N>(&self, values: &str, unit: &str, parse: fn(&str) -> Option<N>) -> Result<Vec<N>, String> {
        let expected = || {
            let unit = if unit.is_empty() { String::new() } else { format!(" and {unit}") };
            let count = self.cores.len();
            format!("expected {count} numbers{unit}, one per core, found {}", quoted(values))
        };
        let bare = values.len().checked_sub(unit.len()).and_then(|at| values.split_at_checked(at));
        let (bare, behind) = bare.ok_or_else(expected)?;
        let list: Option<Vec<N>> = bare.split_ascii_whitespace().map(parse).collect();
        let fits = |list: &Vec<N>| behind.eq_ignore_ascii_case(unit) && list.len() == self.cores.len();
        list.filter(fits).ok_or_else(expected)
    }

    /// First row before which others are missing.
    fn gap(&self) -> Option<u64> {
        let width = self.width();
        let mut pairs = self.labels.windows(2).filter(|pair| !pair[1].1 && self.has_empty);
        pairs.find(|pair| pair[1].0 - pair[0].0 != width).map(|pair| pair[1].0)
    }

    /// Width of a row: two rows without omitted ones between them differ by it.
    fn width(&self) -> u64 {
        let pairs = self.labels.windows(2).filter(|pair| !pair[1].1);
        pairs.map(|pair| pair[1].0 - pair[0].0).min().unwrap_or(1000)
    }
}

pub(super) fn read(
    source: &SourceText,
    finding: &ResultSpan,
    _: &ImportOptions,
) -> Result<Imported, ImportError> {
    let mut read = Read::default();
    let mut run = empty_run("oslat");
    let mut last = 0;
    for line in source.slice(finding.lines.clone()) {
        let at = |what: String| ImportError(format!("line {}: {what}", line.number));
        last = line.number;
        let text = line.text;
        if let Some(version) = text.trim_start().strip_prefix("oslat V ") {
            run.plan.tool = format!("oslat {}", version.trim().chars().take(16).collect::<String>());
        } else if read.cores.is_empty() && !is_label(text, "Core") {
            match field(text) {
                Some(("Thread priority", value)) => {
                    fill_priority(&mut run, value.strip_prefix("SCHED_FIFO:").and_then(|n| n.parse().ok()));
                }
                Some(("Total runtime", value)) => {
                    let seconds = value.strip_suffix(" seconds").and_then(|n| n.parse::<i64>().ok());
                    run.plan.duration_ns =
                        seconds.and_then(|s| s.checked_mul(Nanos::SECOND.0)).map(Nanos).filter(|ns| ns.0 > 0);
                }
                _ => {}
            }
        } else {
            read.take(text).map_err(at)?;
        }
    }
    let refuse = |what: &str| Err(ImportError(format!("line {last}: {what}")));
    if read.footers != 7 {
        return refuse("oslat's table ends without 'Duration:': give the whole output");
    }
    if let Some(gap) = read.gap() {
        return refuse(&format!("rows before that of {} us are missing: give the whole output", gap / 1000));
    }
    let width = read.width();
    let end = read.labels.last().map_or(0, |label| label.0);
    if !read.has_end && read.cores.iter().any(|core| core.max > end) {
        return refuse(
            "a gap is longer than the last row, which does not say (including overflows): give the \
                       whole output",
        );
    }
    fill_cores(&mut run, read.cores, width)?;
    Ok(run.into())
}
