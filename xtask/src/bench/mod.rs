//! onbeat and cyclictest on this machine, alternating: their costs, results and losses. Then its
//! statistics and its audit.
//!
//! Numbers with their conditions, never part of the gate: a shared machine's timing proves nothing
//! about the code. `--gate` is for machines that are quiet.

mod audit;
mod block_records;
mod decode;
mod endings;
mod explain;
mod farm;
mod foreign;
mod held;
mod hunted;
mod in_turns;
mod instructions;
mod loads;
mod long_report;
mod lossless;
mod made;
mod median;
mod memory;
mod page;
mod probes;
mod program;
mod ratio;
mod recording;
mod statistics;
mod wakeups;
mod watched;
mod weight;

use std::path::{Path, PathBuf};

use crate::debian::{self, Need};
use crate::dist;
use crate::tools::{Result, Tool, root, target};
use program::Onbeat;

const NEEDS: [Need; 3] = [
    Need { program: "cyclictest", package: "rt-tests" },
    Need { program: "valgrind", package: "valgrind" },
    Need { program: "time", package: "time" },
];

const STATISTICS: &str = "statistics";
const LONG_REPORT: &str = "long report";
const AUDIT: &str = "audit";
const DECODE: &str = "decode";
const EXPLAIN: &str = "explain";
const HUNT: &str = "hunt memory";
const LOADS: &str = "loads";
const PROBES: &str = "probes";
const ENDINGS: &str = "endings";
const WATCH: &str = "watch";
const PAGE: &str = "page";
const FARM: &str = "farm";
const FARM_SENDER: &str = "farm sender";
const WEIGHT: &str = "weight";
const RECORDING: &str = "recording";

/// Measurements with a peer, in order.
const WITH_PEERS: [&str; 8] =
    [WEIGHT, "own wake-ups", "memory", "instructions", "held process", "nothing lost", "median", PROBES];

/// Measurements without a peer, which follow; they need only `time`.
const ALONE: [&str; 13] = [
    STATISTICS,
    LONG_REPORT,
    AUDIT,
    DECODE,
    EXPLAIN,
    HUNT,
    RECORDING,
    LOADS,
    ENDINGS,
    WATCH,
    PAGE,
    FARM,
    FARM_SENDER,
];

/// onbeat next to cyclictest, interleaved, then its statistics of runs of days.
#[derive(Clone, Debug, clap::Args)]
pub struct Args {
    /// Shorter runs; weight without the static binary.
    #[arg(long)]
    quick: bool,
    /// Fail if a limit is missed.
    #[arg(long)]
    gate: bool,
    /// Run only the parts with this name.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Measure this binary instead of building one.
    #[arg(long, value_name = "FILE")]
    onbeat: Option<PathBuf>,
    /// An earlier build to compare with, in turns (statistics, long report, recording).
    #[arg(long, value_name = "FILE")]
    before: Option<PathBuf>,
}

pub use decode::decode_pages;
pub use memory::run_in_group;
pub use weight::check as check_weight;

/// One line of the result.
pub struct Row {
    what: String,
    ours: String,
    peer: String,
    limit: String,
    /// True if the value is within the limit; `None` without a limit.
    holds: Option<bool>,
}

/// A temporary folder, removed when it is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // A file that cannot be removed stays in target/, where it does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The lines of one measurement, or the reason for their absence.
type Rows = Result<Vec<Row>>;

/// Measures and prints the table.
pub fn run(options: &Args) -> Result<()> {
    let wanted = |name: &str| options.only.as_ref().is_none_or(|only| name.contains(only.as_str()));
    let all = || WITH_PEERS.into_iter().chain(ALONE);
    let chosen: Vec<&str> = all().filter(|name| wanted(name)).collect();
    if chosen.is_empty() {
        return Err(format!("no part has that name: {}", all().collect::<Vec<_>>().join(", ")));
    }
    let farm_alone = chosen.iter().all(|part| [FARM, FARM_SENDER].contains(part));
    if chosen == [PAGE] || farm_alone {
        // Nothing of Debian's is compared with.
    } else if chosen.iter().all(|part| ALONE.contains(part)) {
        debian::ensure(&NEEDS[2..])?;
    } else {
        debian::ensure(&NEEDS)?;
    }
    // Decoding is measured in a separate program, the recorder in this one, the weight in the
    // static build.
    let own_build = [&[DECODE][..], &[WATCH], &[WEIGHT]].contains(&&chosen[..]) || farm_alone;
    if !own_build && options.onbeat.is_none() {
        Tool::new("cargo")
            .args(["rustc", "--quiet", "--profile", "dist", "--package", "onbeat", "--bin", "onbeat"])
            .args(["--", "-C", "opt-level=2"]) // as `dist` does
            .dir(&root())
            .show()?;
    }
    let built = target("dist")?.join("onbeat");
    let binary = options.onbeat.clone().unwrap_or(built);
    let quick = options.quick;
    let measured: Vec<(&str, Rows)> =
        chosen.into_iter().map(|name| (name, part(name, &binary, options))).collect();
    println!("\n{}\n", conditions(quick)?);
    print_row("", "onbeat", "cyclictest", "limit", "");
    let mut missed = 0;
    for (name, rows) in measured {
        match rows {
            Err(why) => {
                missed += 1;
                println!("{name}: not measured: {why}");
            }
            Ok(rows) => {
                for row in &rows {
                    let verdict = row.holds.map_or("", |holds| if holds { "ok" } else { "MISSED" });
                    print_row(&row.what, &row.ours, &row.peer, &row.limit, verdict);
                }
                missed += rows.iter().filter(|row| row.holds == Some(false)).count();
            }
        }
    }
    println!("\n{missed} limits missed");
    if options.gate && missed > 0 { Err("a limit was missed".to_string()) } else { Ok(()) }
}

fn part(name: &str, binary: &Path, options: &Args) -> Rows {
    let (quick, before) = (options.quick, options.before.as_deref());
    if name == WATCH {
        let mut rows = watched::measure(quick)?;
        rows.extend(foreign::measure(quick)?);
        return Ok(rows);
    }
    if name == WEIGHT {
        return weight::measure(!quick);
    }
    let default = Onbeat::at(binary.to_owned())?;
    match name {
        "own wake-ups" => wakeups::measure(&default, quick),
        "memory" => {
            let fixed = dist::build(std::env::consts::ARCH).and_then(Onbeat::at)?;
            memory::measure(&default, &fixed, quick)
        }
        "instructions" => instructions::measure(&default, quick),
        "held process" => held::measure(&default),
        "nothing lost" => lossless::measure(&default, quick),
        "median" => median::measure(&default, quick),
        LONG_REPORT => long_report::measure(binary, before, quick),
        AUDIT => audit::measure(binary),
        DECODE => decode::measure(quick),
        EXPLAIN => explain::measure(binary, quick),
        HUNT => hunted::measure(binary, quick),
        RECORDING => recording::measure(binary, before, quick),
        LOADS => loads::measure(binary, quick),
        ENDINGS => endings::measure(binary, quick),
        PROBES => probes::measure(binary, quick),
        PAGE => page::measure(binary),
        FARM => farm::pages(quick),
        FARM_SENDER => farm::sender(quick),
        _ => statistics::measure(binary, before, quick),
    }
}

fn print_row(what: &str, ours: &str, peer: &str, limit: &str, verdict: &str) {
    println!("{what:<44} {ours:>22} {peer:>22} {limit:>12}  {verdict}");
}

fn conditions(quick: bool) -> Result<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_string();
    let release = read("/proc/sys/kernel/osrelease");
    let load = read("/proc/loadavg");
    let load = load.split(' ').next().unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_err(|error| error.to_string())?;
    let length = if quick { "quick: shorter runs, fewer pairs" } else { "full length" };
    Ok(format!("Linux {release}, {cpus} CPUs, load {load} at the end; {length}; FIFO 80 on CPUs 0 and 1"))
}
