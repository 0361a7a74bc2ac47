//! hwlatdetect's output and its `--report`: windows in which the kernel's hwlat tracer found gaps.
//!
//! A line is a window: the longest gap within two reads of the clock (inner) and between two such
//! pairs (outer), and since 2.5 the CPU and the number of gaps. A sample here is a line's longest.

use std::collections::BTreeMap;
use std::ops::Range;

use super::error::ImportError;
use super::format::{ForeignFormat, ImportOptions, Imported, Reader, ResultSpan};
use super::imported::{ImportedThread, empty_run, fill};
use super::quoted;
use super::source::{DocumentShape, SourceText, TextLine};
use model::run::{Run, WORST, Worst};
use model::sort::CompactSort;
use model::units::{CPU_LIMIT, Cpu, CpuSet, Nanos};
use model::vocabulary::{IdleStates, Quantity};
use model::wall_time::wall_time;

pub(super) const FORMAT: ForeignFormat = ForeignFormat {
    id: "hwlatdetect",
    tool: "hwlatdetect",
    versions: "rt-tests 2.10",
    origin: "run here",
    carries: "each window's longest gap with its wall time and CPU, threshold, planned length; of a --report \
              the same without threshold and length",
    hides: "gaps outside of its windows, by default half of the time; the length of all gaps but the longest \
            of a window; CPU and number of gaps in old versions",
    find,
    reader: Reader::Run(read),
};

const HEADING: &str = "hwlatdetect:  test duration ";

/// Label of the number of windows that follow.
const RECORDED: &str = "Samples recorded:";

/// A window with gaps.
struct Window {
    /// Wall time.
    time: Nanos,
    longest_us: u64,
    cpu: Option<Cpu>,
    count: Option<u64>,
}

fn is_window(text: &str) -> bool {
    text.trim_start().starts_with("ts: ") && text.contains(", inner:")
}

/// True for a line of the result after the one with the number of samples.
fn is_footer(text: &str) -> bool {
    let starts = ["Samples exceeding threshold:", "MTBF:", "SMIs during run:", "report saved to "];
    starts.iter().any(|start| text.starts_with(start)) || text.contains(" SMIs occured on cpu ")
}

fn find(source: &SourceText) -> Vec<ResultSpan> {
    if source.shape != DocumentShape::Text {
        return Vec::new();
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    // Windows that the open block still lacks, once their number is stated.
    let mut open: Option<Option<u64>> = None;
    for (index, line) in source.lines().enumerate() {
        let text = line.text.trim();
        if text.starts_with(HEADING) {
            open = Some(None);
            ranges.push(index..index + 1);
            continue;
        }
        let is_result = is_window(text) || is_footer(text);
        match open.as_mut() {
            // Before it, debugging lines may be among the others.
            Some(left @ None) => {
                *left = text.strip_prefix(RECORDED).map(|count| count.trim().parse().unwrap_or(0));
                if is_result || left.is_some() || text.starts_with("Max Latency:") || text == "test finished"
                {
                    extend(&mut ranges, index);
                }
            }
            Some(Some(left)) if is_result => {
                *left = left.saturating_sub(u64::from(is_window(text)));
                extend(&mut ranges, index);
            }
            // A line of another program between the windows.
            Some(Some(1..)) => {}
            Some(Some(0)) => open = None,
            None if !is_window(text) => {}
            // A report consists of lines of consecutive windows.
            None if ranges.last().is_some_and(|range| range.end == index) => extend(&mut ranges, index),
            None => ranges.push(index..index + 1),
        }
    }
    ranges.into_iter().map(ResultSpan::strong).collect()
}

fn extend(ranges: &mut [Range<usize>], index: usize) {
    if let Some(range) = ranges.last_mut() {
        range.end = index + 1;
    }
}

/// Content of the lines around the windows.
#[derive(Default)]
struct Stated {
    heading: bool,
    cpus: CpuSet,
    max: Option<Option<u64>>,
    recorded: Option<u64>,
    exceeding: Option<u64>,
}

fn read(source: &SourceText, finding: &ResultSpan, _: &ImportOptions) -> Result<Imported, ImportError> {
    let mut run = empty_run("hwlatdetect");
    let mut stated = Stated::default();
    let mut windows = Vec::new();
    let mut last = 0;
    for line in source.slice(finding.lines.clone()) {
        last = line.number;
        if is_window(line.text) {
            windows.push(window(&line)?);
        } else {
            take(&mut run, &mut stated, &line)?;
        }
    }
    check(&stated, &windows).map_err(|what| ImportError(format!("line {last}: {what}")))?;
    let gaps: Option<u64> = windows.iter().map(|window| window.count).sum();
    if let Some(gaps) = gaps.filter(|&gaps| gaps != windows.len() as u64) {
        run.plan
            .notes
            .push(format!("{gaps} gaps in {} windows, of each of which the longest counts", windows.len()));
    }
    fill(&mut run, threads(&stated, windows), Nanos::MICRO)?;
    Ok(run.into())
}

fn window(line: &TextLine) -> Result<Window, ImportError> {
    let expected = || {
        ImportError(format!(
            "line {}: expected ts: SECONDS, inner:US, outer:US, cpu:N, count:N, found {}",
            line.number,
            quoted(line.text)
        ))
    };
    let mut fields = line.text.trim().split(", ");
    let mut value = |name: &str| fields.next().map(|field| field.strip_prefix(name).ok_or_else(expected));
    let time = value("ts: ").ok_or_else(expected)??;
    let time = seconds(time).ok_or_else(expected)?;
    let mut number = |name: &str| match value(name) {
        None => Ok(None),
        Some(text) => text?.trim().parse::<u64>().map(Some).map_err(|_| expected()),
    };
    let inner = number("inner:")?.ok_or_else(expected)?;
    let outer = number("outer:")?.ok_or_else(expected)?;
    let cpu = number("cpu:")?
        .map(|cpu| u32::try_from(cpu).ok().filter(|&cpu| cpu < CPU_LIMIT).ok_or_else(expected));
    let cpu = cpu.transpose()?.map(Cpu);
    let count = number("count:")?;
    Ok(Window { time, longest_us: inner.max(outer), cpu, count })
}

/// Seconds with nine decimals, as the tracer prints them.
fn seconds(text: &str) -> Option<Nanos> {
    let (whole, fraction) = text.trim().split_once('.')?;
    let fraction: i64 = fraction.parse().ok().filter(|_| fraction.len() == 9)?;
    whole.parse::<i64>().ok()?.checked_mul(Nanos::SECOND.0)?.checked_add(fraction).map(Nanos)
}

fn take(run: &mut Run, stated: &mut Stated, line: &TextLine) -> Result<(), ImportError> {
    let text = line.text.trim();
    let expected =
        |what: &str| ImportError(format!("line {}: expected {what}, found {}", line.number, quoted(text)));
    if let Some(rest) = text.strip_prefix(HEADING) {
        stated.heading = true;
        let seconds = rest.strip_suffix(" seconds").and_then(|n| n.parse::<i64>().ok());
        let length = seconds.and_then(|s| s.checked_mul(Nanos::SECOND.0)).filter(|&ns| ns >= 0);
        run.plan.duration_ns = Some(Nanos(length.ok_or_else(|| expected("a number of seconds"))?));
    }
    if text == "c-states disabled" {
        run.plan.idle = IdleStates::Held.into();
    }
    let Some((name, value)) = text.split_once(':') else { return Ok(()) };
    let value = value.trim();
    let count = || value.parse::<u64>().map(Some).map_err(|_| expected("a number of samples"));
    let us = || {
        let us = value.strip_suffix("us").and_then(|us| us.parse::<u64>().ok());
        us.ok_or_else(|| expected("a number of us"))
    };
    match name {
        "CPU list" if value != "None" => {
            stated.cpus = CpuSet::parse(value).map_err(|_| expected("a list of CPUs"))?;
        }
        "Latency threshold" => {
            let ns = i64::try_from(us()?).ok().and_then(|us| us.checked_mul(Nanos::MICRO.0));
            run.plan.over_ns = ns.map(Nanos);
        }
        "Sample window" | "Sample width" => run.plan.notes.push(format!("{} {value}", name.to_lowercase())),
        "Max Latency" if value == "Below threshold" => stated.max = Some(None),
        "Max Latency" => stated.max = Some(Some(us()?)),
        "Samples recorded" => stated.recorded = count()?,
        "Samples exceeding threshold" => stated.exceeding = count()?,
        _ => {}
    }
    Ok(())
}

/// Compares the totals with those of the windows.
fn check(stated: &Stated, windows: &[Window]) -> Result<(), String> {
    let count = windows.len() as u64;
    if !stated.heading {
        return Ok(());
    }
    let Some(recorded) = stated.recorded else {
        return Err("hwlatdetect's output ends without 'Samples recorded:': give the whole output".into());
    };
    if recorded != count {
        return Err(format!("Samples recorded says {recorded}, and {count} follow: give the whole output"));
    }
    let longest = windows.iter().map(|window| window.longest_us).max();
    // Up to 1.x it is the detector's maximum, also below the threshold.
    let is_below = windows.is_empty() && stated.exceeding.is_none_or(|exceeding| exceeding == 0);
    if !is_below && stated.max.is_some_and(|max| max != longest) {
        return Err("Max Latency does not match the samples: give the output as it was printed".into());
    }
    let gaps: Option<u64> =
        windows.iter().try_fold(0u64, |sum, window| sum.checked_add(window.count.unwrap_or(1)));
    if stated.exceeding.is_some_and(|exceeding| Some(exceeding) != gaps) {
        return Err(
            "Samples exceeding threshold is not the sum of the counts: give the output as it was printed"
                .into(),
        );
    }
    Ok(())
}

/// A thread per CPU that was listed or had a gap; without either, one thread without a CPU.
fn threads(stated: &Stated, windows: Vec<Window>) -> Vec<ImportedThread> {
    let mut of_cpu: BTreeMap<Option<Cpu>, Vec<Window>> = BTreeMap::new();
    for cpu in stated.cpus.iter() {
        of_cpu.entry(Some(cpu)).or_default();
    }
    for window in windows {
        of_cpu.entry(window.cpu).or_default().push(window);
    }
    if of_cpu.is_empty() {
        of_cpu.entry(None).or_default();
    }
    of_cpu.into_iter().map(|(cpu, windows)| thread(cpu, windows)).collect()
}

fn thread(cpu: Option<Cpu>, mut windows: Vec<Window>) -> ImportedThread {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for window in &windows {
        *counts.entry(window.longest_us).or_default() += 1;
    }
    windows.compact_sort_by_key(|window| (std::cmp::Reverse(window.longest_us), window.time));
    let sum: u128 = windows.iter().map(|window| u128::from(window.longest_us) * 1000).sum();
    let mean = sum.checked_div(windows.len() as u128).and_then(|ns| i64::try_from(ns).ok());
    let worst = windows.iter().take(WORST).map(|window| Worst {
        latency_ns: i64::try_from(window.longest_us).ok().and_then(|us| us.checked_mul(1000)).map(Nanos),
        time: wall_time(window.time),
        ..Worst::default()
    });
    ImportedThread {
        cpu,
        measures: Quantity::Gap.into(),
        min: counts.keys().next().map(|&us| us.into()),
        max: counts.keys().last().map(|&us| us.into()),
        buckets: counts.into_iter().collect(),
        mean_ns: mean.map(Nanos),
        worst: worst.collect(),
        ..ImportedThread::default()
    }
}
