//! Memory of a hunt and the size of its checkpoints while every wake-up is a spike and its
//! housekeeping thread starves.

use std::fs::metadata;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::program::{start, timed};
use super::{Folder, Row, Rows};
use crate::tools::{Running, Tool, read, target};

const PEAK_KIB: u64 = 64 << 10;
const CHECKPOINT_BYTES: u64 = 1_000_000;

/// Threads that compete with the housekeeping thread for its CPU, as far as SCHED_OTHER allows.
const HOGS: usize = 3;

pub fn measure(onbeat: &Path, quick: bool) -> Rows {
    let folder = Folder(target("lab/bench")?.join("hunted"));
    std::fs::create_dir_all(&folder.0).map_err(|error| error.to_string())?;
    let mut rows = Vec::new();
    for starved in [false, true] {
        let run = folder.0.join(if starved { "starved" } else { "flood" });
        let hogs = if starved { HOGS } else { 0 };
        let largest = hunt(onbeat, &run, hogs, if quick { 12 } else { 25 })?;
        let document: Value =
            serde_json::from_slice(&read(&run.join("run.json"))?).map_err(|error| error.to_string())?;
        let name = if starved { "starved" } else { "flooded" };
        let peak = document["overhead"]["max_rss_kib"].as_u64().ok_or("the hunt does not say its memory")?;
        let listed = document["spikes"].as_array().map_or(0, Vec::len);
        rows.push(row(format!("hunt, {name}, peak KiB"), peak, Some(PEAK_KIB)));
        rows.push(row(format!("hunt, {name}, largest checkpoint, bytes"), largest, Some(CHECKPOINT_BYTES)));
        rows.push(row(format!("hunt, {name}, spikes listed"), listed as u64, None));
        let line = ["report", "-q", &run.display().to_string()].map(str::to_string);
        let line = [vec![onbeat.display().to_string()], line.to_vec()].concat();
        rows.push(row(
            "report of it, peak KiB".to_string(),
            timed(&[], &line, Duration::from_secs(60))?.1,
            None,
        ));
    }
    Ok(rows)
}

/// Hunts; the largest document that a checkpoint wrote.
fn hunt(onbeat: &Path, run: &Path, hogs: usize, seconds: u64) -> Result<u64, String> {
    let busy = |_| {
        let line = ["-n", "-20", "timeout", "60", "taskset", "-c", "0", "sha256sum", "/dev/zero"];
        Tool::new("nice").args(line).start(None)
    };
    let hogs: Vec<Running> = (0..hogs).map(busy).collect::<Result<_, _>>()?;
    let flags = format!("hunt -q -a 1 --housekeeping 0 -i 200 --over 1us -D {seconds}s -o {}", run.display());
    let line = [vec![onbeat.display().to_string()], flags.split(' ').map(str::to_string).collect()].concat();
    let (mut running, _) = start(&line)?;
    let (began, mut largest) = (Instant::now(), 0);
    let document: PathBuf = run.join("run.json");
    let code = loop {
        if let Some(code) = running.poll()? {
            break code;
        }
        if began.elapsed() > Duration::from_secs(seconds + 90) {
            return Err("the hunt does not end".to_string());
        }
        // The last document lists the spikes: that of a run that is on is a checkpoint.
        let size = metadata(&document).map_or(0, |about| about.len());
        if metadata(run.join("tail")).is_ok() {
            largest = largest.max(size);
        }
        thread::sleep(Duration::from_millis(100));
    };
    hogs.into_iter().for_each(drop);
    if code == 0 { Ok(largest) } else { Err(format!("the hunt ended with exit code {code}")) }
}

fn row(what: String, ours: u64, limit: Option<u64>) -> Row {
    Row {
        what,
        ours: ours.to_string(),
        peer: String::new(),
        limit: limit.map_or_else(String::new, |limit| limit.to_string()),
        holds: limit.map(|limit| ours <= limit),
    }
}
