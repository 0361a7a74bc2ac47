//! jitterdebugger's screen: a `T:` line per thread, with `A:` for its CPU.

use std::collections::BTreeMap;

use super::error::ImportError;
use super::format::{ForeignFormat, ImportOptions, Imported, Reader, ResultSpan};
use super::imported::{ImportedThread, empty_run, fill};
use super::labelled_numbers::LabelledNumbers;
use super::source::{DocumentShape, SourceText};
use super::thread_totals::ThreadTotals;
use super::{THREAD_LIMIT, command_words, decimal, quoted};
use model::run::Plan;
use model::units::{Bare, CPU_LIMIT, Cpu, Nanos, parse_span};
use model::vocabulary::Policy;

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    id: "jitterdebugger-text",
    tool: "jitterdebugger's text",
    versions: "0.3.1",
    origin: "run here",
    carries: "count, least, mean and largest latency per CPU; in a log the command line before it",
    hides: "the unit (-N), the histogram, interval and priority; with -v the last update counts",
    find,
    reader: Reader::Run(read),
};

/// Default period, without -i.
const DEFAULT_INTERVAL: Nanos = Nanos::MILLI;
/// Default priority, without -p.
const DEFAULT_PRIORITY: u32 = 80;

/// Smallest latency, in an unknown unit, that cannot be in microseconds: a millisecond at best.
const NOT_MICROS: u64 = 1000;

#[derive(Clone, Debug, PartialEq)]
struct Row<'a> {
    thread: usize,
    tid: u64,
    cpu: Cpu,
    cycles: u64,
    min: u64,
    avg: &'a str,
    max: u64,
}

impl Row<'_> {
    fn totals(&self) -> ThreadTotals {
        ThreadTotals { id: self.tid, cycles: self.cycles, min: self.min.into(), max: self.max.into() }
    }
}

/// Parses `T: 0 (13522) A: 0 C:      7959 Min:        12 Avg:   22.89 Max:      1319`; `None` for
/// lines of other tools, an error for a damaged one.
fn parse(line: &str) -> Option<Result<Row<'_>, ImportError>> {
    let line = line.trim_start().trim_start_matches("^C");
    let rest = line.strip_prefix("T:").filter(|rest| rest.contains(") A:") && !rest.contains(" P:"))?;
    Some(row_of(rest).ok_or_else(|| {
        ImportError(format!("expected T: thread (id) A: CPU C: Min: Avg: Max:, found {}", quoted(line)))
    }))
}

fn row_of(rest: &str) -> Option<Row<'_>> {
    let (thread, rest) = rest.split_once('(')?;
    let (tid, rest) = rest.split_once(')')?;
    let mut rest = LabelledNumbers(rest);
    let row = Row {
        thread: thread.trim().parse().ok().filter(|&n: &usize| n < THREAD_LIMIT)?,
        tid: tid.trim().parse().ok()?,
        cpu: rest.number("A:").filter(|&cpu| cpu < CPU_LIMIT).map(Cpu)?,
        cycles: rest.number("C:")?,
        min: rest.number("Min:")?,
        avg: rest.word("Avg:")?,
        max: rest.number("Max:")?,
    };
    // Without a sample the largest has its initial value.
    (rest.is_over() && (row.cycles > 0 || row.max == 0)).then_some(row)
}

/// Finds runs of such lines; one ends if a thread's id changes or its totals fall.
fn find(source: &SourceText) -> Vec<ResultSpan> {
    let mut findings: Vec<ResultSpan> = Vec::new();
    let mut threads: BTreeMap<usize, ThreadTotals> = BTreeMap::new();
    for (index, line) in source.lines().enumerate().filter(|_| source.shape == DocumentShape::Text) {
        let Some(parsed) = parse(line.text) else { continue };
        let ended = parsed
            .as_ref()
            .is_ok_and(|row| threads.get(&row.thread).is_some_and(|last| !last.goes_on_to(&row.totals())));
        if ended {
            threads.clear();
        }
        match findings.last_mut().filter(|_| !ended) {
            Some(open) => open.lines.end = index + 1,
            None => findings.push(ResultSpan::strong(index..index + 1)),
        }
        if let Ok(row) = parsed {
            threads.insert(row.thread, row.totals());
        }
    }
    findings
}

fn read(source: &SourceText, finding: &ResultSpan, options: &ImportOptions) -> Result<Imported, ImportError> {
    let mut rows: BTreeMap<usize, Row> = BTreeMap::new();
    let mut number = 0;
    for line in source.slice(finding.lines.clone()) {
        if let Some(row) = parse(line.text) {
            let row = row.map_err(|what| ImportError(format!("line {}: {what}", line.number)))?;
            rows.insert(row.thread, row);
            number = line.number;
        }
    }
    let command = command_words::before(source, finding.lines.start + 1, |line| {
        command_words::within(line, "jitterdebugger")
    });
    let unit = match command {
        _ if options.nanoseconds => Nanos(1),
        Some(command) if command_words::has_flag(command, 'N', "--nsec") => Nanos(1),
        Some(_) => Nanos::MICRO,
        None => {
            let least = rows.values().filter(|row| row.cycles > 0).map(|row| row.min).min();
            if least.is_some_and(|least| least >= NOT_MICROS) && options.format.is_none() {
                return Err(ImportError(format!(
                    "line {number}: no unit is stated and the least latency is {}: give -N for nanoseconds, \
                     or --as {} for microseconds",
                    least.unwrap_or_default(),
                    FORMAT.id
                )));
            }
            Nanos::MICRO
        }
    };
    let mut run = empty_run("jitterdebugger");
    if let Some(command) = command {
        plan_of(&mut run.plan, command);
    }
    let interval = run.plan.interval_ns;
    let threads = rows.into_values().map(|row| ImportedThread {
        cpu: Some(row.cpu),
        summary_only: true,
        cycles: Some(row.cycles),
        min: Some(row.min.into()),
        max: Some(row.max.into()),
        mean_ns: decimal::in_ns(row.avg, unit),
        interval,
        ..ImportedThread::default()
    });
    fill(&mut run, threads.collect(), unit).map_err(|what| format!("line {number}: {what}"))?;
    Ok(run.into())
}

/// Schedule of a command line; its threads are always SCHED_FIFO.
fn plan_of(plan: &mut Plan, command: &str) {
    let micros = |text: &str| text.parse::<u32>().ok().map(|us| Nanos(i64::from(us) * Nanos::MICRO.0));
    plan.interval_ns =
        command_words::option(command, "-i", "--interval").map_or(Some(DEFAULT_INTERVAL), micros);
    plan.interval_ns = plan.interval_ns.filter(|interval| interval.0 > 0);
    let priority = command_words::option(command, "-p", "--priority");
    plan.priority = priority.map_or(Some(DEFAULT_PRIORITY), |text| text.parse().ok());
    plan.policy = Policy::Fifo.into();
    let duration = command_words::option(command, "-D", "--duration");
    plan.duration_ns = duration.and_then(|text| parse_span(text, Bare::Seconds).ok());
    plan.loops = command_words::option(command, "-l", "--loops").and_then(|text| text.parse().ok());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::import;
    use crate::foreign::testing::import_one;
    use model::run::Run;
    use proptest::prelude::*;

    macro_rules! screen {
        ($name:literal) => {
            include_str!(concat!("../../../../tests/fixtures/foreign/jitterdebugger/0.3.1-", $name, ".txt"))
        };
    }

    fn numbers(run: &Run) -> Vec<(u32, u64, i64, i64, i64)> {
        let of = |ns: Option<Nanos>| ns.unwrap().0;
        let cpus = run.cpus.iter();
        cpus.map(|cpu| {
            let (min, mean, max) = (of(cpu.min_ns), of(cpu.mean_ns), of(cpu.max_ns));
            (cpu.cpu.unwrap().0, cpu.cycles.unwrap(), min, mean, max)
        })
        .collect()
    }

    #[test]
    fn every_screen_agrees_with_its_numbers() {
        let of = |text: &str| numbers(&import_one(text));
        let us =
            |(cpu, n, min, mean, max): (u32, u64, i64, i64, i64)| (cpu, n, min * 1000, mean * 10, max * 1000);
        for (text, truth) in [
            (screen!("interval"), [(0, 7959, 12, 2289, 1319), (1, 7932, 8, 5369, 9599)]),
            (screen!("loops"), [(0, 500, 16, 3026, 251), (1, 500, 15, 3025, 97)]),
            (screen!("samples"), [(0, 485, 15, 4069, 3985), (1, 463, 15, 4342, 3754)]),
            (screen!("short"), [(0, 1, 34, 3400, 34), (1, 1, 37, 3700, 37)]),
            (screen!("two"), [(0, 2994, 16, 2745, 828), (1, 2990, 11, 4233, 4056)]),
            (screen!("verbose"), [(0, 903, 14, 3195, 66), (1, 902, 16, 2949, 360)]),
        ] {
            assert_eq!(of(text), truth.map(us));
            assert!(import_one(text).cpus.iter().all(|cpu| cpu.is_summary()));
        }
        let none = import_one(screen!("none"));
        assert!(none.cpus.iter().all(|cpu| (cpu.cycles, cpu.max_ns) == (Some(0), None)));
    }

    #[test]
    fn a_unit_that_is_not_stated_is_not_guessed() {
        let text = screen!("one");
        let error = import(text.as_bytes(), &ImportOptions::default()).unwrap_err().0;
        assert!(error.contains("line 3") && error.contains("give -N"), "{error}");
        let ns = [(1, 1889, 15_926, 36_812, 3_242_912)];
        let options = ImportOptions { nanoseconds: true, ..ImportOptions::default() };
        assert_eq!(numbers(&import(text.as_bytes(), &options).unwrap()[0].run), ns);
        let run = import_one(&format!("$ jitterdebugger -D 2s -a 1 -N -i 500\n{text}"));
        assert_eq!(numbers(&run), ns);
        assert_eq!((run.plan.interval_ns, run.plan.priority), (Some(Nanos(500_000)), Some(80)));
    }

    #[test]
    fn each_run_of_a_log_is_one_and_none_is_cyclictests() {
        let log = format!("{}\nnext\n{}", screen!("loops"), screen!("verbose"));
        let runs = import(log.as_bytes(), &ImportOptions::default()).unwrap();
        assert_eq!(runs.iter().map(|one| one.run.samples()).collect::<Vec<_>>(), [Some(1000), Some(1805)]);
        let case = "T: 0 ( 2165) A: 0 C:      2990 Min:         3 Avg:    3.08 Max:        41 \n\
                    T: 1 ( 2166) A: 1 C:      2985 Min:         3 Avg:    3.21 Max:        52 \n";
        let truth = [(0, 2990, 3000, 3080, 41_000), (1, 2985, 3000, 3210, 52_000)];
        assert_eq!(numbers(&import_one(case)), truth);
    }

    #[test]
    fn damaged_lines_are_refused_with_their_number() {
        let text = screen!("loops").replace("Min:        15", "Min:        x5");
        let error = import(text.as_bytes(), &ImportOptions::default()).unwrap_err().0;
        assert!(error.starts_with("line 4: expected T: thread"), "{error}");
        let text = screen!("loops").replace("Max:        97", "Max:         9");
        let error = import(text.as_bytes(), &ImportOptions::default()).unwrap_err().0;
        assert!(error.contains("the minimum, 15, is above the maximum, 9"), "{error}");
    }

    const ANY: &str = "((T: ?[0-9]|\\([0-9]{1,3}\\)|A: [0-9]|C: [0-9]{1,3}|Min:|Avg:|Max:|[0-9.]{1,4}|\
         |\n){0,12}\n){0,4}";

    proptest! {
        #[test]
        fn any_text_is_read(text in ANY) {
            if let Ok(runs) = import(text.as_bytes(), &ImportOptions::default()) {
                prop_assert!(runs.iter().all(|one| one.run.check().is_ok()));
            }
        }
    }
}
