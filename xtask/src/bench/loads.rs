//! Loads compared with the usual load programs, on the same CPUs, in interleaved pairs: the work of
//! each in the same time.

use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::program::tool;
use super::ratio;
use super::{Row, Rows};
use crate::debian::{self, Need};
use crate::tools::{Result, target};

const NEEDS: [Need; 4] = [
    Need { program: "hackbench", package: "rt-tests" },
    Need { program: "stress-ng", package: "stress-ng" },
    Need { program: "stressapptest", package: "stressapptest" },
    Need { program: "stress", package: "stress" },
];

const PAIRS: usize = 5;
const SECONDS: u64 = 5;
const LIMIT: Duration = Duration::from_secs(120);

/// One load and its peer: both give a rate in the same unit.
struct Comparison {
    what: &'static str,
    /// The least ratio of the medians.
    limit: f64,
    ours: fn(&Path) -> Result<f64>,
    peer: fn() -> Result<f64>,
}

/// Both use as many processes as the machine has CPUs if the number is configurable.
const COMPARISONS: [Comparison; 6] = [
    Comparison {
        what: "messaging, sockets, 128 B: messages/s",
        limit: 0.8,
        ours: |binary| rate(binary, "messaging:4x128"),
        peer: || hackbench(""),
    },
    Comparison {
        what: "messaging, pipes, 128 B: messages/s",
        limit: 0.8,
        ours: |binary| rate(binary, "messaging:4x128,through=pipes"),
        peer: || hackbench("-p"),
    },
    Comparison {
        what: "cpu: CPU seconds per second",
        limit: 0.95,
        ours: |binary| Ok(number(&load(binary, "cpu:2")?, "/0/cpu_s")? / SECONDS as f64),
        peer: stress_ng,
    },
    Comparison {
        what: "mem, 2 x 128 MiB: MB/s copied",
        limit: 0.8,
        ours: |binary| Ok(rate(binary, "mem:2x128M")? / 1e6),
        peer: stressapptest,
    },
    Comparison {
        what: "hdd, 4 x 20 MiB: MB/s to the disk",
        limit: 0.8,
        ours: |binary| written(|| load(binary, "hdd:4x20M").map(drop)),
        peer: || written(|| stress("-d 4 --hdd-bytes 20M")),
    },
    Comparison {
        what: "hdd and io: MB/s to the disk",
        limit: 0.8,
        ours: |binary| written(|| load(binary, "hdd:4x20M io:4").map(drop)),
        peer: || written(|| stress("-d 4 --hdd-bytes 20M -i 4")),
    },
];

pub fn measure(binary: &Path, quick: bool) -> Rows {
    debian::ensure(&NEEDS)?;
    COMPARISONS.iter().map(|comparison| row(comparison, binary, if quick { 2 } else { PAIRS })).collect()
}

fn row(comparison: &Comparison, binary: &Path, pairs: usize) -> Result<Row> {
    let mut measured = Vec::new();
    for pair in 0..pairs {
        let (ours, peer) = match pair % 2 {
            0 => {
                let ours = (comparison.ours)(binary)?;
                (ours, (comparison.peer)()?)
            }
            _ => {
                let peer = (comparison.peer)()?;
                ((comparison.ours)(binary)?, peer)
            }
        };
        println!("  {}: {ours:.1} and {peer:.1}", comparison.what);
        measured.push((ours, peer));
    }
    if measured.iter().any(|(_, peer)| *peer == 0.0) {
        return Ok(without_ratio(comparison, &measured));
    }
    let ratio = ratio::of_pairs(&measured).ok_or("no ratio")?.median;
    let ratios: Vec<f64> = measured.iter().map(|(ours, peer)| ours / peer).collect();
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    let median = |of: fn(&(f64, f64)) -> f64| ratio::median(measured.iter().map(of)).unwrap_or_default();
    Ok(Row {
        what: comparison.what.into(),
        ours: format!("{:.0} (x{ratio:.2}, {least:.2}-{most:.2})", median(|pair| pair.0)),
        peer: format!("{:.0}", median(|pair| pair.1)),
        limit: format!("x{}", comparison.limit),
        holds: Some(ratio >= comparison.limit),
    })
}

/// The peer did nothing at all in some pair: stress(1) removes its file before it closes it, so
/// that without a sync(2) nothing of it ever reaches the disk.
fn without_ratio(comparison: &Comparison, measured: &[(f64, f64)]) -> Row {
    let least = measured.iter().map(|(ours, _)| *ours).fold(f64::INFINITY, f64::min);
    let most_of_peer = measured.iter().map(|(_, peer)| *peer).fold(0.0, f64::max);
    Row {
        what: comparison.what.into(),
        ours: format!("at least {least:.0}"),
        peer: format!("at most {most_of_peer:.0}"),
        limit: format!("x{}", comparison.limit),
        holds: Some(least > 0.0 && least >= comparison.limit * most_of_peer),
    }
}

/// Runs a load to the end; its document.
fn load(binary: &Path, spec: &str) -> Result<Value> {
    let seconds = SECONDS.to_string();
    let mut line = vec![binary.display().to_string(), "load".into()];
    line.extend(spec.split(' ').map(str::to_owned));
    line.extend(["-q", "-D", &seconds, "--json", "-"].map(str::to_owned));
    serde_json::from_str(&tool(&line).within(LIMIT).text()?).map_err(|error| format!("{spec}: {error}"))
}

fn number(document: &Value, pointer: &str) -> Result<f64> {
    let found = document.pointer(pointer).and_then(Value::as_f64);
    found.ok_or_else(|| format!("the document lacks {pointer}"))
}

fn rate(binary: &Path, spec: &str) -> Result<f64> {
    number(&load(binary, spec)?, "/0/rate_per_s")
}

fn text(line: &str) -> Result<String> {
    let line: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    tool(&line).within(LIMIT).text()
}

/// Each of the 20 senders of a group sends `LOOPS` messages to each of its 20 receivers.
fn hackbench(through: &str) -> Result<f64> {
    const LOOPS: u32 = 1500;
    let said = text(&format!("hackbench {through} -g 4 -s 128 -l {LOOPS}"))?;
    let seconds = said.lines().find_map(|line| line.strip_prefix("Time:")?.trim().parse::<f64>().ok());
    Ok(4.0 * 20.0 * 20.0 * f64::from(LOOPS) / seconds.ok_or("hackbench gave no time")?)
}

fn stress_ng() -> Result<f64> {
    let report = target("lab/bench")?.join("stress-ng.times");
    let said = format!("time -q -f %U+%S -o {} stress-ng --quiet --cpu 2 -t {SECONDS}", report.display());
    text(&said)?;
    let times = String::from_utf8_lossy(&crate::tools::read(&report)?).into_owned();
    let seconds: Option<Vec<f64>> = times.trim().split('+').map(|part| part.parse().ok()).collect();
    let seconds = seconds.ok_or_else(|| format!("time reported {times:?}"))?;
    Ok(seconds.iter().sum::<f64>() / SECONDS as f64)
}

/// `Memory Copy: 34036.00M at 6799.13MB/s`: bytes read and bytes written, which are as many.
fn stressapptest() -> Result<f64> {
    let said = text(&format!("stressapptest -W -s {SECONDS} -M 256 -m 2"))?;
    let line = said.lines().find_map(|line| line.split_once("Memory Copy: ")?.1.split_once(" at "));
    let rate = line.and_then(|(_, rate)| rate.trim().strip_suffix("MB/s")?.parse::<f64>().ok());
    Ok(rate.ok_or("stressapptest gave no rate")? / 2.0)
}

/// It writes to its working directory, and leaves its files there if it is killed.
fn stress(arguments: &str) -> Result<()> {
    let line = format!("stress -q {arguments} -t {SECONDS}");
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    tool(&words).dir(&target("lab/bench")?).within(LIMIT).text().map(drop)
}

/// Rate of writes to the disks during a run, in MB/s: `pgpgout` of /proc/vmstat counts KiB.
fn written(run: impl FnOnce() -> Result<()>) -> Result<f64> {
    let count = || -> Result<f64> {
        let text = std::fs::read_to_string("/proc/vmstat").map_err(|error| error.to_string())?;
        let found = text.lines().find_map(|line| line.strip_prefix("pgpgout ")?.parse().ok());
        found.ok_or_else(|| "/proc/vmstat lacks pgpgout".to_string())
    };
    let (before, begun) = (count()?, Instant::now());
    run()?;
    Ok((count()? - before) * 1024.0 / 1e6 / begun.elapsed().as_secs_f64())
}
