//! Text of pmqtest, ptsematest, svsematest and sigwaittest: pairs of threads of which one hands
//! over to the other.
//!
//! Only pmqtest's text differs, by its time-outs (`TO`): the program of the others follows from the
//! command line before the text, or from `--as`.

use std::collections::BTreeMap;

use super::cyclictest_check::refuse_cut_after;
use super::error::ImportError;
use super::format::{ForeignFormat, Imported, Reader, ResultSpan};
use super::getopt::command_before;
use super::imported::{ImportedThread, empty_run, fill};
use super::rt_tests::{PMQTEST, PTSEMATEST, RtTestsTool, SIGWAITTEST, SVSEMATEST};
use super::source::{DocumentShape, SourceText, TextLine};
use super::{RESULT_LIMIT, THREAD_LIMIT, quoted, thread_plan};
use model::units::{Bare, CPU_LIMIT, Cpu, Nanos, parse_span};

const VERSIONS: &str = "rt-tests 2.4, 2.6, 2.10";
const CARRIES: &str = "count, least, mean and largest latency, interval and priority per pair; CPUs where \
                       both threads of each stayed on one";
const HIDES: &str = "the program's name, unless the command line precedes it; histogram";

pub(super) const PMQTEST_TEXT: ForeignFormat = ForeignFormat {
    id: "pmqtest-text",
    tool: "pmqtest's text",
    versions: VERSIONS,
    origin: "run here",
    carries: CARRIES,
    hides: "histogram",
    find: |source| find(source, &PMQTEST),
    reader: Reader::Run(|source, finding, _| read(source, finding, &PMQTEST)),
};

pub(super) const PTSEMATEST_TEXT: ForeignFormat = ForeignFormat {
    id: "ptsematest-text",
    tool: "ptsematest's text",
    versions: VERSIONS,
    origin: "run here",
    carries: CARRIES,
    hides: HIDES,
    find: |source| find(source, &PTSEMATEST),
    reader: Reader::Run(|source, finding, _| read(source, finding, &PTSEMATEST)),
};

pub(super) const SIGWAITTEST_TEXT: ForeignFormat = ForeignFormat {
    id: "sigwaittest-text",
    tool: "sigwaittest's text",
    versions: VERSIONS,
    origin: "run here",
    carries: CARRIES,
    hides: HIDES,
    find: |source| find(source, &SIGWAITTEST),
    reader: Reader::Run(|source, finding, _| read(source, finding, &SIGWAITTEST)),
};

pub(super) const SVSEMATEST_TEXT: ForeignFormat = ForeignFormat {
    id: "svsematest-text",
    tool: "svsematest's text",
    versions: VERSIONS,
    origin: "run here",
    carries: CARRIES,
    hides: HIDES,
    find: |source| find(source, &SVSEMATEST),
    reader: Reader::Run(|source, finding, _| read(source, finding, &SVSEMATEST)),
};

/// A line of a pair.
enum PairLine {
    State(usize, PairState),
    Totals(usize, PairTotals),
}

/// `#0: ID19972, P80, CPU1, I1000; #1: ID19973, P80, CPU1, TO 0, Cycles 1000`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PairState {
    id: u64,
    priority: u32,
    from_cpu: u32,
    cpu: u32,
    interval_us: u32,
    cycles: u64,
    has_timeouts: bool,
}

/// `#1 -> #0, Min    3, Cur    4, Avg    4, Max   22`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PairTotals {
    min: i128,
    avg: i128,
    max: i128,
}

/// Rest of a text, field by field.
struct Fields<'a>(&'a str);

impl Fields<'_> {
    /// Number after the label; blanks before both are skipped.
    fn number<N: std::str::FromStr>(&mut self, label: &str) -> Option<N> {
        let value = self.0.trim_start().strip_prefix(label)?.trim_start();
        let end = value.find([',', ';', ':', ' ']).unwrap_or(value.len());
        let number = value[..end].parse().ok();
        self.0 = value[end..].trim_start_matches([',', ';', ':']);
        number
    }

    fn is_over(&self) -> bool {
        self.0.trim().is_empty()
    }
}

fn parse(text: &str) -> Option<PairLine> {
    let mut fields = Fields(text);
    let first: usize = fields.number("#")?;
    if fields.0.trim_start().starts_with("->") {
        fields.0 = fields.0.trim_start().trim_start_matches("->");
        let second: usize = fields.number("#")?;
        let (min, _current) = (fields.number("Min")?, fields.number::<i128>("Cur")?);
        let (avg, max) = (fields.number("Avg")?, fields.number("Max")?);
        let is_pair = second % 2 == 0 && first == second + 1 && second / 2 < THREAD_LIMIT;
        return (is_pair && fields.is_over())
            .then_some(PairLine::Totals(second / 2, PairTotals { min, avg, max }));
    }
    let (id, _priority) = (fields.number("ID")?, fields.number::<u32>("P")?);
    let (from_cpu, interval_us) = (fields.number("CPU")?, fields.number("I")?);
    let second: usize = fields.number("#")?;
    let (_id, priority, cpu) = (fields.number::<u64>("ID")?, fields.number("P")?, fields.number("CPU")?);
    let has_timeouts = fields.0.trim_start().starts_with("TO ");
    if has_timeouts {
        fields.number::<u64>("TO")?;
    }
    let cycles = fields.number("Cycles")?;
    let is_pair = first % 2 == 0 && second == first + 1 && first / 2 < THREAD_LIMIT;
    let state = PairState { id, priority, from_cpu, cpu, interval_us, cycles, has_timeouts };
    (is_pair && fields.is_over()).then_some(PairLine::State(first / 2, state))
}

/// True for a line of a pair, possibly a damaged one.
fn begins_pair(text: &str) -> bool {
    let behind = text.trim_start().strip_prefix('#').unwrap_or_default();
    let rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
    rest.len() < behind.len() && (rest.starts_with(": ID") || rest.starts_with(" -> #"))
}

/// Blocks of pairs that may be this program's.
fn find(source: &SourceText, tool: &RtTestsTool) -> Vec<ResultSpan> {
    if source.shape != DocumentShape::Text {
        return Vec::new();
    }
    let blocks = blocks(source).into_iter().filter(|(finding, has_timeouts)| {
        let is_pmqtest = tool.name == PMQTEST.name;
        if *has_timeouts != is_pmqtest {
            return false;
        }
        let has_command = |name: &str| command_before(source, finding.lines.start, name).is_some();
        let unnamed = !UNNAMED.iter().any(|other| has_command(other.name));
        is_pmqtest || unnamed || has_command(tool.name)
    });
    blocks.map(|(finding, _)| finding).collect()
}

/// Programs with equal texts.
const UNNAMED: [&RtTestsTool; 3] = [&PTSEMATEST, &SIGWAITTEST, &SVSEMATEST];

/// Blocks of lines, each with true if it has time-outs: another first thread, or a falling count,
/// begins another run.
fn blocks(source: &SourceText) -> Vec<(ResultSpan, bool)> {
    let mut blocks: Vec<(ResultSpan, bool)> = Vec::new();
    let mut last: BTreeMap<usize, PairState> = BTreeMap::new();
    for (index, line) in source.lines().enumerate() {
        if !begins_pair(line.text) {
            continue;
        }
        // One more is enough to refuse them all.
        if blocks.len() > RESULT_LIMIT {
            break;
        }
        if let Some(PairLine::State(pair, state)) = parse(line.text) {
            let is_other = last
                .get(&pair)
                .is_some_and(|last| last.id != state.id && last.id != 0 || last.cycles > state.cycles);
            if is_other || blocks.is_empty() {
                last.clear();
                blocks.push((ResultSpan::strong(index..index), state.has_timeouts));
            }
            last.insert(pair, state);
        }
        if let Some((finding, _)) = blocks.last_mut() {
            finding.lines.end = index + 1;
        }
    }
    blocks
}

/// Pairs of a block by their last lines.
#[derive(Default)]
struct Pairs {
    states: BTreeMap<usize, PairState>,
    totals: BTreeMap<usize, PairTotals>,
    /// True if a thread changed its CPU, or a pair is on two: none is pinned.
    moved: bool,
}

impl Pairs {
    fn take(&mut self, line: &TextLine) -> Result<(), ImportError> {
        match parse(line.text) {
            None => {
                let (number, found) = (line.number, quoted(line.text));
                return Err(ImportError(format!(
                    "line {number}: expected #0: ID, P, CPU, I; #1: ID, P, CPU, Cycles or #1 -> #0, Min, \
                     Cur, Avg, Max, found {found}: give the text as it was printed"
                )));
            }
            Some(PairLine::Totals(pair, totals)) => {
                let before = self.totals.insert(pair, totals);
                // Without a sample both have their initial values.
                let has_fallen = |before: PairTotals| before.max > totals.max || before.min < totals.min;
                if before.filter(|before| before.min >= 0).is_some_and(has_fallen) {
                    let number = line.number;
                    return Err(ImportError(format!(
                        "line {number}: the maximum fell or the minimum rose since the pair's line before: \
                         expected one run: give each output alone"
                    )));
                }
            }
            Some(PairLine::State(pair, state)) => {
                let before = self.states.insert(pair, state).filter(|before| before.cycles > 0);
                self.moved |= state.cpu != state.from_cpu;
                self.moved |= before.is_some_and(|before| before.cpu != state.cpu);
            }
        }
        Ok(())
    }

    fn threads(&self, tool: &RtTestsTool, given_us: Option<u32>) -> Vec<ImportedThread> {
        let of = |(state, totals): (&PairState, &PairTotals)| {
            let is_any = state.cycles > 0;
            let mean = i64::try_from(totals.avg).ok().and_then(|us| us.checked_mul(Nanos::MICRO.0));
            ImportedThread {
                cpu: Some(Cpu(state.cpu)).filter(|cpu| !self.moved && cpu.0 < CPU_LIMIT),
                measures: tool.measures.into(),
                summary_only: true,
                cycles: Some(state.cycles),
                // Without a sample they have their initial values.
                min: Some(totals.min).filter(|_| is_any),
                max: Some(totals.max).filter(|_| is_any),
                mean_ns: mean.filter(|_| is_any).map(Nanos),
                interval: thread_plan::whole_interval(state.interval_us, given_us),
                ..ImportedThread::default()
            }
        };
        self.states.values().zip(self.totals.values()).map(of).collect()
    }
}

fn read(source: &SourceText, finding: &ResultSpan, tool: &RtTestsTool) -> Result<Imported, ImportError> {
    let mut pairs = Pairs::default();
    let mut last = 0;
    for (index, line) in finding.lines.clone().zip(source.slice(finding.lines.clone())) {
        if !begins_pair(line.text) {
            continue;
        }
        pairs.take(&line)?;
        if source.is_cut_at(index) && line.text.contains("->") {
            refuse_cut_after(&line, "Max", 5)?;
        }
        last = line.number;
    }
    if pairs.states.keys().ne(pairs.totals.keys()) || pairs.states.keys().copied().ne(0..pairs.states.len()) {
        return Err(ImportError(format!(
            "line {last}: expected #0: and #1 -> #0 of each pair from 0 on: give the whole output"
        )));
    }
    let mut run = empty_run(tool.name);
    let command = command_before(source, finding.lines.start, tool.name);
    let given_us = command.and_then(|command| tool.letters.option(command, 'i', "interval").number());
    let threads = pairs.threads(tool, given_us);
    thread_plan::fill_policy(&mut run.plan, pairs.states.values().map(|state| state.priority));
    thread_plan::fill_intervals(&mut run.plan, &threads);
    if let Some(command) = command {
        let option = |letter, name| tool.letters.option(command, letter, name);
        let length = option('D', "duration").value().and_then(|text| parse_span(text, Bare::Seconds).ok());
        (run.plan.duration_ns, run.plan.loops) = (length, option('l', "loops").number());
    }
    fill(&mut run, threads, Nanos::MICRO)?;
    Ok(run.into())
}
