//! Lines of LinuxCNC's `latency-histogram --nox`: extremes of each thread so far.

use super::error::ImportError;
use super::format::{ForeignFormat, ImportOptions, Imported, Reader, ResultSpan};
use super::imported::{ImportedThread, empty_run, fill};
use super::source::{DocumentShape, SourceText};
use super::{THREAD_LIMIT, decimal, quoted, unit};
use model::keyword::Word;
use model::units::Nanos;

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    id: "linuxcnc",
    tool: "LinuxCNC's latency-histogram --nox",
    versions: "2.9.4",
    origin: "run here",
    carries: "least and largest deviation of each thread's period, time",
    hides: "the number of samples, the periods, the CPU; a wake-up after a late one counts as early, by up \
            to a period",
    find,
    reader: Reader::Run(read),
};

/// Quantity: the excess of a period over its length.
const QUANTITY: &str = "period";

/// Lines before the first one in which LinuxCNC may state that it has no real-time kernel.
const REACH: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq)]
struct Row<'a> {
    seconds: u64,
    thread: &'a str,
    min: Nanos,
    max: Nanos,
}

/// Parses `   16 s   base min: -24.900 us max:92336.100 us sdev:  16.500 us`, or a damaged one.
fn parse(line: &str) -> Option<Result<Row<'_>, ImportError>> {
    let (seconds, rest) = line.trim().split_once(" s ")?;
    let seconds = seconds.parse().ok()?;
    let (thread, rest) = rest.trim_start().split_once(" min:")?;
    let thread = thread.trim();
    let is_ours =
        !thread.is_empty() && !thread.contains(' ') && rest.contains("max:") && rest.contains("sdev:");
    let (min, max) = rest.split_once("max:").filter(|_| is_ours)?;
    let row = value(min).zip(value(max)).filter(|(min, max)| min <= max);
    let row = row.map(|(min, max)| Row { seconds, thread, min, max });
    Some(row.ok_or_else(|| {
        ImportError(format!("expected N s thread min: N us max: N us, found {}", quoted(line.trim())))
    }))
}

/// Parses a number and its unit.
fn value(text: &str) -> Option<Nanos> {
    let mut words = text.split_ascii_whitespace();
    let number = words.next()?;
    decimal::in_ns(number, unit::stated(words.next()?)?)
}

/// Finds runs of such lines; one ends if the time falls.
fn find(source: &SourceText) -> Vec<ResultSpan> {
    let mut findings: Vec<ResultSpan> = Vec::new();
    let mut last = 0;
    for (index, line) in source.lines().enumerate().filter(|_| source.shape == DocumentShape::Text) {
        let Some(row) = parse(line.text) else { continue };
        let seconds = row.map_or(last, |row| row.seconds);
        match findings.last_mut().filter(|_| seconds >= last) {
            Some(open) => open.lines.end = index + 1,
            None => findings.push(ResultSpan::strong(index..index + 1)),
        }
        last = seconds;
    }
    findings
}

fn read(source: &SourceText, finding: &ResultSpan, _: &ImportOptions) -> Result<Imported, ImportError> {
    let mut rows: Vec<Row> = Vec::new();
    for line in source.slice(finding.lines.clone()) {
        let Some(row) = parse(line.text) else { continue };
        let at = |error: ImportError| error.at(line.number);
        let row = row.map_err(at)?;
        match rows.iter().position(|known| known.thread == row.thread) {
            Some(known) if row.min > rows[known].min || row.max < rows[known].max => {
                return Err(at(ImportError(format!(
                    "the minimum or maximum of {} shrinks: give one run at a time",
                    quoted(row.thread)
                ))));
            }
            Some(known) => rows[known] = row,
            None if rows.len() < THREAD_LIMIT => rows.push(row),
            None => return Err(at(ImportError(format!("expected at most {THREAD_LIMIT} threads")))),
        }
    }
    let mut run = empty_run("LinuxCNC latency-histogram");
    let names = rows.iter().enumerate().map(|(at, row)| format!("thread {at} is {}", quoted(row.thread)));
    run.plan.notes.extend(names);
    run.plan.notes.push("deviation of each period from its length".into());
    let start = finding.lines.start;
    if source.slice(start.saturating_sub(REACH)..start).any(|line| line.text.contains("POSIX non-realtime")) {
        run.plan.notes.push("POSIX non-realtime".into());
    }
    let seconds = rows.iter().map(|row| row.seconds).max().and_then(|s| i64::try_from(s).ok());
    run.elapsed_ns = seconds.and_then(|s| s.checked_mul(Nanos::SECOND.0)).map(Nanos);
    let thread = |_: &Row| ImportedThread {
        measures: Word::from(QUANTITY),
        summary_only: true,
        ..ImportedThread::default()
    };
    fill(&mut run, rows.iter().map(thread).collect(), Nanos(1))?;
    for (cpu, row) in run.cpus.iter_mut().zip(&rows) {
        (cpu.min_ns, cpu.max_ns) = (Some(row.min), Some(row.max));
    }
    Ok(run.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::import;
    use crate::foreign::testing::import_one;
    use proptest::prelude::*;

    macro_rules! log {
        ($name:literal) => {
            include_str!(concat!("../../../../tests/fixtures/foreign/linuxcnc/2.9.4-", $name, ".txt"))
        };
    }

    #[test]
    fn the_last_lines_count() {
        for (text, truth, seconds) in [
            (log!("nox"), &[(-24_900, 92_336_100), (-999_900, 91_763_000)][..], 22),
            (log!("nox-nobase"), &[(-999_900, 34_069_700)], 10),
            (log!("nox-verbose"), &[(-49_900, 16_024_300), (-999_900, 15_868_000)], 9),
        ] {
            let run = import_one(text);
            assert_eq!(run.check(), Ok(()));
            let found: Vec<_> =
                run.cpus.iter().map(|cpu| (cpu.min_ns.unwrap().0, cpu.max_ns.unwrap().0)).collect();
            assert_eq!(found, truth);
            assert_eq!(run.elapsed_ns, Some(Nanos(seconds * 1_000_000_000)));
            assert!(
                run.cpus.iter().all(|cpu| (cpu.cpu, cpu.cycles, cpu.quantity()) == (None, None, QUANTITY))
            );
            assert_eq!(run.plan.notes.last().unwrap(), "POSIX non-realtime");
        }
    }

    #[test]
    fn runs_are_separated_and_damage_is_refused() {
        let log = format!("{}{}", log!("nox"), log!("nox-nobase"));
        assert_eq!(import(log.as_bytes(), &ImportOptions::default()).unwrap().len(), 2);
        for (from, to, wanted) in [
            ("max:92336.100", "max:9233x.100", "expected N s thread"),
            ("max:34576.700", "max:4576.700", "maximum of 'base' shrinks"),
        ] {
            let error =
                import(log!("nox").replacen(from, to, 1).as_bytes(), &ImportOptions::default()).unwrap_err();
            assert!(error.0.starts_with("line ") && error.0.contains(wanted), "{error}");
        }
    }

    const ANY: &str = "(([0-9]{1,2} s |base|servo| min: | us | max:|sdev:|[0-9.-]{1,6}| |\
        \n){0,9}\n){0,5}";

    proptest! {
        #[test]
        fn any_text_is_read(text in ANY) {
            if let Ok(runs) = import(text.as_bytes(), &ImportOptions::default()) {
                prop_assert!(runs.iter().all(|one| one.run.check().is_ok()));
            }
        }
    }
}
