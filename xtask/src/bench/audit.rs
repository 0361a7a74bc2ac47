//! Cost of `audit` and `tune plan`: live, and on synthetic trees of growing size, where a further
//! thread must cost the same as the previous ones.

use std::path::Path;
use std::time::{Duration, Instant};

use super::program::timed;
use super::{Folder, Row, Rows, made};
use crate::tools::{Result, target};

/// CPUs, interrupts and threads of the largest tree.
const LARGE: (u32, u32, u32) = (256, 2_000, 5_000);
const LIVE_SECONDS: f64 = 1.0;
const LARGE_SECONDS: f64 = 3.0;
const LARGE_KIB: u64 = 30_000_000 / 1024;
/// Limit of the second half of a tree's cost relative to the first: linear, with room for noise.
const GROWTH: f64 = 1.5;
const REPEATS: usize = 5;

pub fn measure(onbeat: &Path) -> Rows {
    let folder = Folder(target("lab/bench")?.join("audit"));
    std::fs::create_dir_all(&folder.0).map_err(|error| error.to_string())?;
    let line = |command: &[&str], args: &[&str]| {
        let line = std::iter::once(onbeat.display().to_string());
        line.chain(
            command.iter().chain(&["--json", "/dev/null", "-q"]).chain(args).map(|arg| (*arg).to_string()),
        )
        .collect::<Vec<_>>()
    };
    let (live, _) = best(&line(&["audit"], &[]))?;
    let (planned, _) = best(&line(&["tune", "plan"], &[]))?;
    let mut rows =
        vec![row("audit, live: s", live, LIVE_SECONDS), row("tune plan, live: s", planned, LIVE_SECONDS)];
    let mut seconds = Vec::new();
    for part in [4, 2, 1] {
        let (cpus, irqs, threads) = (LARGE.0 / part, LARGE.1 / part, LARGE.2 / part);
        let root = folder.0.join(format!("{cpus}"));
        made::write(&root, cpus, irqs, threads)?;
        let (taken, peak) = best(&line(&["audit"], &["--root", &root.display().to_string()]))?;
        seconds.push(taken);
        let what = format!("audit, {cpus} CPUs, {irqs} irqs, {threads} threads");
        rows.push(row(&format!("{what}: s"), taken, LARGE_SECONDS));
        if part == 1 {
            rows.push(Row {
                what: format!("{what}: KiB"),
                ours: peak.to_string(),
                peer: String::new(),
                limit: LARGE_KIB.to_string(),
                holds: Some(peak <= LARGE_KIB),
            });
            let half = format!("0-{}", cpus / 2 - 1);
            let args = ["--root", &root.display().to_string(), "--cpus", &half];
            let (taken, peak) = best(&line(&["tune", "plan"], &args))?;
            rows.push(row(&format!("tune plan for half of {cpus} CPUs: s"), taken, LARGE_SECONDS));
            rows.push(Row {
                what: format!("tune plan for half of {cpus} CPUs: KiB"),
                ours: peak.to_string(),
                peer: String::new(),
                limit: LARGE_KIB.to_string(),
                holds: Some(peak <= LARGE_KIB),
            });
        }
    }
    let growth = (seconds[2] - seconds[1]) / (2.0 * (seconds[1] - seconds[0]).max(0.001));
    rows.push(row("audit: cost of one more, over one before", growth, GROWTH));
    Ok(rows)
}

/// Minimum of some runs, in seconds and KiB: by our clock, as `time` prints hundredths.
fn best(line: &[String]) -> Result<(f64, u64)> {
    let run = |_| {
        let start = Instant::now();
        timed(&[], line, Duration::from_secs(60)).map(|(_, peak)| (start.elapsed().as_secs_f64(), peak))
    };
    let runs = (0..REPEATS).map(run).collect::<Result<Vec<_>>>()?;
    let seconds = runs.iter().map(|run| run.0).fold(f64::INFINITY, f64::min);
    Ok((seconds, runs.iter().map(|run| run.1).min().unwrap_or(0)))
}

fn row(what: &str, ours: f64, limit: f64) -> Row {
    Row {
        what: what.to_string(),
        ours: format!("{ours:.3}"),
        peer: String::new(),
        limit: format!("{limit}"),
        holds: Some(ours <= limit),
    }
}
