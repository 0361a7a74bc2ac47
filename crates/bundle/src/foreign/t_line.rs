//! `T:` lines of signaltest and cyclicdeadline, which lack cyclictest's interval or priority.

use std::collections::BTreeMap;

use super::cyclictest_check::refuse_cut_after;
use super::error::ImportError;
use super::format::{ForeignFormat, Imported, Reader, ResultSpan};
use super::getopt::command_before;
use super::imported::{ImportedThread, empty_run, fill};
use super::labelled_numbers::LabelledNumbers;
use super::rt_tests::{CYCLICDEADLINE, RtTestsTool, SIGNALTEST};
use super::source::{DocumentShape, SourceText};
use super::thread_totals::ThreadTotals;
use super::{THREAD_LIMIT, quoted, thread_plan};
use model::units::{Bare, Nanos, parse_span};
use model::vocabulary::Quantity;

pub(super) const SIGNALTEST_TEXT: ForeignFormat = ForeignFormat {
    id: "signaltest-text",
    tool: "signaltest's text",
    versions: "rt-tests 2.4, 2.6, 2.10",
    origin: "run here",
    carries: "count, least, mean and largest time of a signal round all threads, per thread; priority",
    hides: "histogram, CPUs; mean and maximum hold the tool's own pause of 10 ms for every thread but the \
            first; the samples of -v, which are the first thread's alone and lack the last one",
    find: |source| find(source, TLineKind::Signal),
    reader: Reader::Run(|source, finding, _| read(source, finding, TLineKind::Signal)),
};

pub(super) const CYCLICDEADLINE_TEXT: ForeignFormat = ForeignFormat {
    id: "cyclicdeadline-text",
    tool: "cyclicdeadline's text",
    versions: "rt-tests 2.4, 2.6, 2.10",
    origin: "run here",
    carries: "count, least, mean and largest lateness and interval per thread",
    hides: "histogram, CPUs",
    find: |source| find(source, TLineKind::Deadline),
    reader: Reader::Run(|source, finding, _| read(source, finding, TLineKind::Deadline)),
};

/// Program by the first label: `P:` alone is signaltest's, `I:` alone cyclicdeadline's.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TLineKind {
    Signal,
    Deadline,
}

impl TLineKind {
    fn tool(self) -> &'static RtTestsTool {
        match self {
            TLineKind::Signal => &SIGNALTEST,
            TLineKind::Deadline => &CYCLICDEADLINE,
        }
    }

    fn label(self) -> &'static str {
        match self {
            TLineKind::Signal => "P:",
            TLineKind::Deadline => "I:",
        }
    }

    /// Thread, id, and the text from the first label on.
    fn begin(self, text: &str) -> Option<(usize, u64, &str)> {
        let (thread, rest) = text.trim().strip_prefix("T:")?.split_once('(')?;
        let (id, rest) = rest.split_once(')')?;
        let rest = rest.trim_start();
        let behind = rest.strip_prefix(self.label())?.trim_start();
        let behind = behind.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start();
        let thread = thread.trim().parse().ok().filter(|&thread: &usize| thread < THREAD_LIMIT)?;
        behind.starts_with("C:").then_some((thread, id.trim().parse().ok()?, rest))
    }
}

/// Numbers of a line.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    /// Priority or interval.
    first: u32,
    cycles: u64,
    min: i128,
    avg: i128,
    max: i128,
}

fn totals(kind: TLineKind, rest: &str) -> Option<Totals> {
    let mut rest = LabelledNumbers(rest);
    let (first, cycles, min) = (rest.number(kind.label())?, rest.number("C:")?, rest.number("Min:")?);
    let (_last, avg, max) = (rest.number::<i128>("Act:")?, rest.number("Avg:")?, rest.number("Max:")?);
    rest.is_over().then_some(Totals { first, cycles, min, avg, max })
}

/// Finds blocks of lines: another id of a thread, or falling totals, begin another run.
fn find(source: &SourceText, kind: TLineKind) -> Vec<ResultSpan> {
    if source.shape != DocumentShape::Text {
        return Vec::new();
    }
    let mut findings: Vec<ResultSpan> = Vec::new();
    let mut threads: BTreeMap<usize, ThreadTotals> = BTreeMap::new();
    for (index, line) in source.lines().enumerate() {
        let Some((thread, id, rest)) = kind.begin(line.text) else {
            // A line that the end of the text cuts belongs to the result, which is refused for it.
            let last = findings.last_mut().filter(|last| last.lines.end == index);
            if let Some(last) = last.filter(|_| source.is_cut_at(index) && line.text.starts_with("T:")) {
                last.lines.end = index + 1;
            }
            continue;
        };
        let progress =
            totals(kind, rest).map(|all| ThreadTotals { id, cycles: all.cycles, min: all.min, max: all.max });
        let is_other =
            threads.get(&thread).zip(progress).is_some_and(|(last, progress)| !last.goes_on_to(&progress));
        if is_other || findings.is_empty() {
            threads.clear();
            findings.push(ResultSpan::strong(index..index + 1));
        }
        threads.extend(progress.map(|progress| (thread, progress)));
        if let Some(finding) = findings.last_mut() {
            finding.lines.end = index + 1;
        }
    }
    findings
}

/// Reads the last line of each thread.
fn read(source: &SourceText, finding: &ResultSpan, kind: TLineKind) -> Result<Imported, ImportError> {
    let tool = kind.tool();
    let mut last: BTreeMap<usize, Totals> = BTreeMap::new();
    for (index, line) in finding.lines.clone().zip(source.slice(finding.lines.clone())) {
        let expected = || {
            let (number, label, found) = (line.number, kind.label(), quoted(line.text));
            ImportError(format!(
                "line {number}: expected T: thread (id) {label} C: Min: Act: Avg: Max:, found {found}"
            ))
        };
        let is_cut = source.is_cut_at(index);
        let Some((thread, _, rest)) = kind.begin(line.text) else {
            if is_cut && line.text.starts_with("T:") {
                return Err(expected());
            }
            continue;
        };
        let totals = totals(kind, rest).ok_or_else(expected)?;
        if is_cut {
            refuse_cut_after(&line, "Max:", 8)?;
        }
        last.insert(thread, totals);
    }
    if last.keys().copied().ne(0..last.len()) {
        let line = source.line(finding.lines.start).map_or(1, |line| line.number);
        return Err(ImportError(format!(
            "line {line}: expected threads 0 to {}: give the whole output",
            last.keys().last().copied().unwrap_or(0)
        )));
    }
    let mut run = empty_run(tool.name);
    let micros = |us: i128| i64::try_from(us).ok().and_then(|us| us.checked_mul(Nanos::MICRO.0)).map(Nanos);
    let threads: Vec<ImportedThread> = last
        .values()
        .map(|totals| ImportedThread {
            measures: tool.measures.into(),
            summary_only: true,
            cycles: Some(totals.cycles),
            // Without a sample both have their initial values.
            min: Some(totals.min).filter(|_| totals.cycles > 0),
            max: Some(totals.max).filter(|_| totals.cycles > 0),
            mean_ns: micros(totals.avg),
            interval: (kind == TLineKind::Deadline).then(|| micros(totals.first.into())).flatten(),
            ..ImportedThread::default()
        })
        .collect();
    if tool.measures == Quantity::Signal {
        thread_plan::fill_policy(&mut run.plan, last.values().map(|totals| totals.first));
    }
    thread_plan::fill_intervals(&mut run.plan, &threads);
    if let Some(command) = command_before(source, finding.lines.start, tool.name) {
        let option = |letter, name| tool.letters.option(command, letter, name);
        let length = option('D', "duration").value().and_then(|text| parse_span(text, Bare::Seconds).ok());
        (run.plan.duration_ns, run.plan.loops) = (length, option('l', "loops").number());
    }
    fill(&mut run, threads, Nanos::MICRO)?;
    Ok(run.into())
}
