//! JSON of rt-tests' programs that hand over or wait: pmqtest, ptsematest, svsematest, sigwaittest,
//! signaltest and cyclicdeadline.
//!
//! None of them measures a wake-up by a timer, and none has a histogram: only count, least, mean
//! and largest latency of each thread or pair are known.

use model::units::{Bare, Nanos, parse_span};
use model::vocabulary::Quantity;

use super::error::ImportError;
use super::format::{ForeignFormat, Imported, Reader};
use super::getopt::{GivenOption, OptionLetters};
use super::imported::{ImportedThread, fill};
use super::json_read::{self, RtTestsFrame, cpu_of, mean_of};
use super::source::SourceText;
use super::thread_plan;

/// A program of rt-tests, with the reader of its command line.
pub(super) struct RtTestsTool {
    pub name: &'static str,
    pub measures: Quantity,
    pub letters: OptionLetters,
}

const fn tool(
    name: &'static str,
    measures: Quantity,
    valued: &'static str,
    optional: &'static str,
) -> RtTestsTool {
    RtTestsTool { name, measures, letters: OptionLetters { valued, optional } }
}

pub(super) const CYCLICDEADLINE: RtTestsTool = tool("cyclicdeadline", Quantity::Deadline, "bDis", "at");
pub(super) const PMQTEST: RtTestsTool = tool("pmqtest", Quantity::Ipc, "bdDfilpT", "at");
pub(super) const PTSEMATEST: RtTestsTool = tool("ptsematest", Quantity::Ipc, "bdDilp", "at");
pub(super) const SIGNALTEST: RtTestsTool = tool("signaltest", Quantity::Signal, "bDlpt", "a");
pub(super) const SIGWAITTEST: RtTestsTool = tool("sigwaittest", Quantity::Signal, "bdDilp", "aft");
pub(super) const SVSEMATEST: RtTestsTool = tool("svsematest", Quantity::Ipc, "bdDilp", "aft");

const VERSIONS: &str = "rt-tests 2.4, 2.6, 2.10";
const PAIRS_CARRY: &str = "count, least, mean and largest latency per pair; CPUs of pinned pairs, interval \
                           and priority; command line, kernel, start and end";
const PAIRS_HIDE: &str = "histogram; the count is that of the sender; `cpu` of threads that are not pinned \
                          is where they ran last, and not taken";

pub(super) const CYCLICDEADLINE_JSON: ForeignFormat = ForeignFormat {
    id: "cyclicdeadline-json",
    tool: "cyclicdeadline's JSON",
    versions: VERSIONS,
    origin: "run here",
    carries: "count, least, mean and largest lateness per thread; command line, kernel, start and end",
    hides: "histogram, CPUs",
    find: |source| json_read::find_program(source, CYCLICDEADLINE.name),
    reader: Reader::Run(|source, _, _| read(source, &CYCLICDEADLINE)),
};

pub(super) const PMQTEST_JSON: ForeignFormat = ForeignFormat {
    id: "pmqtest-json",
    tool: "pmqtest's JSON",
    versions: VERSIONS,
    origin: "run here",
    carries: PAIRS_CARRY,
    hides: PAIRS_HIDE,
    find: |source| json_read::find_program(source, PMQTEST.name),
    reader: Reader::Run(|source, _, _| read(source, &PMQTEST)),
};

pub(super) const PTSEMATEST_JSON: ForeignFormat = ForeignFormat {
    id: "ptsematest-json",
    tool: "ptsematest's JSON",
    versions: VERSIONS,
    origin: "run here",
    carries: PAIRS_CARRY,
    hides: PAIRS_HIDE,
    find: |source| json_read::find_program(source, PTSEMATEST.name),
    reader: Reader::Run(|source, _, _| read(source, &PTSEMATEST)),
};

pub(super) const SIGNALTEST_JSON: ForeignFormat = ForeignFormat {
    id: "signaltest-json",
    tool: "signaltest's JSON",
    versions: VERSIONS,
    origin: "run here",
    carries: "count, least, mean and largest time of a signal round all threads, per thread; command line, \
              kernel, start and end",
    hides: "histogram; mean and maximum hold the tool's own pause of 10 ms for every thread but the first; \
            `cpu` of every thread is that of the first one, and taken for it alone unless -a names one CPU",
    find: |source| json_read::find_program(source, SIGNALTEST.name),
    reader: Reader::Run(|source, _, _| read(source, &SIGNALTEST)),
};

pub(super) const SIGWAITTEST_JSON: ForeignFormat = ForeignFormat {
    id: "sigwaittest-json",
    tool: "sigwaittest's JSON",
    versions: VERSIONS,
    origin: "run here",
    carries: PAIRS_CARRY,
    hides: PAIRS_HIDE,
    find: |source| json_read::find_program(source, SIGWAITTEST.name),
    reader: Reader::Run(|source, _, _| read(source, &SIGWAITTEST)),
};

pub(super) const SVSEMATEST_JSON: ForeignFormat = ForeignFormat {
    id: "svsematest-json",
    tool: "svsematest's JSON",
    versions: VERSIONS,
    origin: "run here",
    carries: PAIRS_CARRY,
    hides: PAIRS_HIDE,
    find: |source| json_read::find_program(source, SVSEMATEST.name),
    reader: Reader::Run(|source, _, _| read(source, &SVSEMATEST)),
};

#[derive(serde::Deserialize)]
struct OtherThread {
    cycles: Option<u64>,
    min: Option<i128>,
    max: Option<i128>,
    avg: Option<f64>,
    cpu: Option<i64>,
    sender: Option<Sender>,
    receiver: Option<Receiver>,
}

#[derive(serde::Deserialize)]
struct Sender {
    cpu: Option<i64>,
    priority: Option<u32>,
    samples: u64,
    interval: Option<u32>,
}

#[derive(serde::Deserialize)]
struct Receiver {
    cpu: Option<i64>,
    min: i128,
    max: i128,
    avg: Option<f64>,
}

fn read(source: &SourceText, tool: &RtTestsTool) -> Result<Imported, ImportError> {
    let mut frame: RtTestsFrame<OtherThread> = RtTestsFrame::parse(source.text().as_bytes(), tool.name)?;
    let unit = match frame.resolution_in_ns {
        0 => Nanos::MICRO,
        1 => Nanos(1),
        other => return Err(ImportError(format!("invalid resolution_in_ns {other}: expected 0 or 1"))),
    };
    let mut run = frame.run_of(tool.name);
    let read = frame.threads(tool.name)?;
    let option = |letter, name| tool.letters.option(&frame.command_line, letter, name);
    let given = GivenOption::Absent;
    let is_pinned = option('a', "affinity") != given || option('S', "smp") != given;
    let mut priorities: Vec<u32> =
        read.iter().filter_map(|thread| thread.sender.as_ref()?.priority).collect();
    let given_us = option('i', "interval").number::<u32>();
    let known = known_cpus(&read, option('a', "affinity"));
    let mut threads = Vec::with_capacity(read.len());
    for (number, (thread, cpu)) in read.into_iter().zip(known).enumerate() {
        let thread = match (thread.sender, thread.receiver) {
            (Some(sender), Some(receiver)) => {
                let interval = sender.interval.and_then(|us| thread_plan::whole_interval(us, given_us));
                pair(&sender, &receiver, is_pinned, unit).map(|pair| ImportedThread { interval, ..pair })
            }
            _ => alone(&thread.cycles, thread.min, thread.max, thread.avg, unit)
                .ok_or_else(|| "expected cycles, min and max".to_owned())
                .and_then(|thread| Ok(ImportedThread { cpu: cpu_of(cpu)?, ..thread })),
        };
        let mut thread = thread.map_err(|what| ImportError(format!("thread {number}: {what}")))?;
        thread.measures = tool.measures.into();
        thread.number = u32::try_from(number).ok();
        threads.push(thread);
    }
    let plan = &mut run.plan;
    plan.duration_ns = option('D', "duration").value().and_then(|text| parse_span(text, Bare::Seconds).ok());
    plan.loops = option('l', "loops").number();
    priorities.extend(option('p', "prio").number::<u32>());
    if tool.measures != Quantity::Deadline {
        thread_plan::fill_policy(plan, priorities.into_iter());
    }
    if let Some(us) = given_us {
        plan.interval_ns = Some(Nanos(i64::from(us) * Nanos::MICRO.0));
    }
    thread_plan::fill_intervals(plan, &threads);
    fill(&mut run, threads, unit)?;
    Ok(run.into())
}

/// CPUs of signaltest's threads. If all have the same, it is the first one's: the program writes
/// that for each of them.
fn known_cpus(threads: &[OtherThread], affinity: GivenOption) -> Vec<Option<i64>> {
    let cpus = threads.iter().map(|thread| thread.cpu);
    let first = threads.first().and_then(|thread| thread.cpu);
    let differ = cpus.clone().any(|cpu| cpu != first);
    let is_one = affinity.number::<i64>().is_some_and(|cpu| Some(cpu) == first);
    let known = cpus.enumerate().map(|(index, cpu)| cpu.filter(|_| differ || is_one || index == 0));
    known.collect()
}

fn alone(
    cycles: &Option<u64>,
    min: Option<i128>,
    max: Option<i128>,
    avg: Option<f64>,
    unit: Nanos,
) -> Option<ImportedThread> {
    let cycles = (*cycles)?;
    let is_any = cycles > 0;
    (min.is_some() && max.is_some()).then(|| ImportedThread {
        summary_only: true,
        cycles: Some(cycles),
        // Without a sample both have their initial values.
        min: min.filter(|_| is_any),
        max: max.filter(|_| is_any),
        mean_ns: avg.and_then(|avg| mean_of(avg, unit)),
        ..ImportedThread::default()
    })
}

fn pair(
    sender: &Sender,
    receiver: &Receiver,
    is_pinned: bool,
    unit: Nanos,
) -> Result<ImportedThread, String> {
    let thread = alone(&Some(sender.samples), Some(receiver.min), Some(receiver.max), receiver.avg, unit);
    Ok(ImportedThread {
        // Both threads of a pair are pinned to the same CPU.
        cpu: cpu_of(receiver.cpu)?.filter(|_| is_pinned && receiver.cpu == sender.cpu),
        ..thread.unwrap_or_default()
    })
}
