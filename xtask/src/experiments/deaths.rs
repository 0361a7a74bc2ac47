//! Random deaths of `onbeat hunt -- PROGRAM`: it or the program is killed at a random time, and the
//! next hunt has to find and remove the leftovers; checkpointed data stay.
//!
//! This is not a statistic: it needs root, a C compiler and hours, and is run by its name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use host::tracefs::Tracing;
use model::rng::SplitMix64;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::line::ResultLine;
use super::{Experiment, Length};
use crate::tools::{Result, Tool, root, target};

/// Deaths, and those of a quick run.
const DEATHS: u32 = 500;
const FEW: u32 = 12;

/// Latest time of a death, in milliseconds: while events are armed, while the program starts, in
/// its cycles; for every eighth beyond the first checkpoint, which is after ten seconds.
const EARLY: u64 = 3_000;
const LATE: u64 = 14_000;
const LATE_EACH: u32 = 8;

/// Time limit for a hunt to end after its program has been killed.
const ENDS: Duration = Duration::from_secs(60);

/// Minimum share of the wake-ups counted up to a checkpoint that are in its cycles: the first
/// releases of a thread, and those with lost events, are in none.
const KEPT: f64 = 0.5;

pub const NAME: &str = "followed-deaths";

/// The experiments of this file.
pub fn all() -> Vec<Experiment> {
    vec![(NAME, Box::new(lines))]
}

fn lines(length: Length) -> Vec<ResultLine> {
    let times = length.of(DEATHS, FEW);
    let found = deaths(times).unwrap_or_else(|why| Found { failures: vec![why], ..Found::default() });
    for failure in found.failures.iter().take(20) {
        println!("{NAME}: {failure}");
    }
    let share = |count: u32| f64::from(count) / f64::from(times);
    let note = format!(
        "{} of onbeat, {} of the program; {} left an instance; {} came after a checkpoint with cycles",
        found.of_onbeat, found.of_program, found.left, found.with_cycles
    );
    vec![
        ResultLine::rate("deaths with a correct state afterwards", share(found.fine), times)
            .at_least(1.0)
            .note(note),
    ]
}

/// Results of the deaths.
#[derive(Default)]
struct Found {
    fine: u32,
    of_onbeat: u32,
    of_program: u32,
    /// Deaths that left an instance to the next hunt.
    left: u32,
    /// Deaths whose last checkpoint has cycles.
    with_cycles: u32,
    failures: Vec<String>,
}

/// The places of the experiment.
struct Stage {
    onbeat: PathBuf,
    program: PathBuf,
    folder: PathBuf,
}

fn deaths(times: u32) -> Result<Found> {
    Tracing::open().map_err(|why| format!("no tracing here: {why:?}"))?;
    let folder = target("deaths")?;
    let stage = Stage { onbeat: build()?, program: folder.join("periodic"), folder };
    let source = root().join("crates/onbeat/tests/it/answers/periodic.c");
    let made = ["-O1", "-pthread", "-o"].map(PathBuf::from);
    let args = made.into_iter().chain([stage.program.clone(), source]);
    Tool::new("cc").args(args.map(|path| path.display().to_string())).quiet().show()?;
    let mut rng = SplitMix64::new(17);
    let mut found = Found::default();
    for death in 0..times {
        let late = death % LATE_EACH == LATE_EACH - 1;
        let span = if late { LATE } else { EARLY };
        let after = Duration::from_millis(rng.next_u64() % span + if late { 11_000 } else { 0 });
        let onbeat = late || rng.next_u64() % 2 == 0;
        match one(&stage, death, after, onbeat, &mut found) {
            Ok(()) => found.fine += 1,
            Err(why) => found.failures.push(format!("death {death} after {after:?}: {why}")),
        }
        if (death + 1) % 10 == 0 {
            println!("{NAME}: {} of {} correct", found.fine, death + 1);
        }
    }
    Ok(found)
}

/// The debug build: its death is tested, not its speed.
fn build() -> Result<PathBuf> {
    crate::built::program("onbeat")
}

/// A hunt that is killed, or whose program is, and the next one.
fn one(stage: &Stage, death: u32, after: Duration, of_onbeat: bool, found: &mut Found) -> Result<()> {
    let bundle = stage.folder.join(format!("run-{death}"));
    let _ = fs::remove_dir_all(&bundle);
    let failed = |error: std::io::Error| error.to_string();
    let mut hunt = Command::new(&stage.onbeat)
        .args(["hunt", "-q", "--over", "1ms", "--deadline", "1ms", "-o"])
        .arg(&bundle)
        .arg("--")
        .arg(&stage.program)
        // A CPU, cycles of 2 ms for longer than anybody waits, an exit code.
        .args(["1", "60000", "0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(failed)?;
    sleep(after);
    let pid = hunt.id();
    let programs = children(pid);
    let ended = if of_onbeat || programs.is_empty() {
        kill_onbeat(&mut hunt, found)
    } else {
        kill_program(&mut hunt, &programs, found)
    };
    // Orphaned programs would continue; here they are killed.
    programs.iter().for_each(|&program| kill(program));
    ended?;
    found.left += u32::from(has_instance(pid));
    let next = stage.folder.join("next");
    let _ = fs::remove_dir_all(&next);
    let args =
        ["hunt", "-q", "-D", "1ms", "-o", &next.display().to_string(), "--", "true"].map(str::to_owned);
    let after = Tool::new(&stage.onbeat).args(args).quiet().within(ENDS).capture()?;
    if after.timed_out || ![0, 7].contains(&after.code) {
        return Err(format!("the next hunt ended with {}: {}", after.code, after.stderr.trim()));
    }
    if has_instance(pid) {
        return Err("the next hunt left the instance of the previous one".to_owned());
    }
    let kept = check_bundle(stage, &bundle, found);
    if kept.is_ok() {
        let _ = fs::remove_dir_all(&bundle);
    }
    kept
}

fn kill_onbeat(hunt: &mut Child, found: &mut Found) -> Result<()> {
    found.of_onbeat += 1;
    hunt.kill().and_then(|()| hunt.wait()).map_err(|error| error.to_string())?;
    Ok(())
}

/// Kills the program, and waits for the hunt to end with its results.
fn kill_program(hunt: &mut Child, programs: &BTreeSet<u32>, found: &mut Found) -> Result<()> {
    found.of_program += 1;
    let began = Instant::now();
    programs.iter().for_each(|&program| kill(program));
    loop {
        if let Some(status) = hunt.try_wait().map_err(|error| error.to_string())? {
            return match status.code() {
                Some(0 | 7) => Ok(()),
                code => Err(format!("the hunt ended with {code:?} after its program was killed")),
            };
        }
        if began.elapsed() > ENDS {
            let _ = hunt.kill().and_then(|()| hunt.wait());
            return Err("the hunt continued after its program was killed".to_owned());
        }
        sleep(Duration::from_millis(20));
    }
}

fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The processes that a process started; a thread of it may have.
fn children(pid: u32) -> BTreeSet<u32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_thread =
        |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children")).unwrap_or_default();
    let all: Vec<String> = threads.map(of_thread).collect();
    all.iter().flat_map(|text| text.split_whitespace()).filter_map(|word| word.parse().ok()).collect()
}

fn has_instance(pid: u32) -> bool {
    let prefix = format!("onbeat-{pid}-");
    Tracing::open()
        .is_ok_and(|tracing| tracing.others().instances.iter().any(|name| name.starts_with(&prefix)))
}

/// Checks that the bundle, if it exists by then, is readable by the commands for bundles, and has
/// the cycles of its last checkpoint.
fn check_bundle(stage: &Stage, bundle: &Path, found: &mut Found) -> Result<()> {
    let path = bundle.join("run.json");
    let Ok(text) = fs::read_to_string(&path) else { return Ok(()) };
    let run: Value = serde_json::from_str(&text).map_err(|error| format!("run.json: {error}"))?;
    let shown = bundle.display().to_string();
    for command in ["explain", "report"] {
        let page = stage.folder.join("page.html").display().to_string();
        let rest: &[&str] = if command == "report" { &["-o", &page] } else { &["-q"] };
        let args = [&[command, shown.as_str()], rest].concat();
        let output = Tool::new(&stage.onbeat).args(args).quiet().within(ENDS).capture()?;
        // A run without a wake-up has nothing to be explained.
        if ![0, 7].contains(&output.code) {
            return Err(format!("{command} ended with {}: {}", output.code, output.stderr.trim()));
        }
    }
    let Some(until) = run["checkpoint_mono_ns"].as_i64() else { return Ok(()) };
    let wakeups: i64 = wakeups_until(bundle, until)?;
    let threads = run["threads"].as_array().cloned().unwrap_or_default();
    let cycles: i64 = threads.iter().filter_map(|thread| thread["cycles"].as_i64()).sum();
    let untold: i64 = threads.iter().filter_map(|thread| thread["untold"].as_i64()).sum();
    for thread in &threads {
        let rows = thread["response"].as_array().cloned().unwrap_or_default();
        let counted: i64 = rows.iter().filter_map(|row| row[2].as_i64()).sum();
        if Some(counted) != thread["cycles"].as_i64() {
            return Err(format!("{} cycles and {counted} responses", thread["cycles"]));
        }
    }
    found.with_cycles += u32::from(cycles > 0);
    // The first cycles begin with the third release.
    if wakeups < 100 || (cycles + untold) as f64 >= KEPT * wakeups as f64 {
        Ok(())
    } else {
        Err(format!("{cycles} cycles are kept of {wakeups} wake-ups up to the checkpoint"))
    }
}

/// The wake-ups of all seconds that had ended by a time.
fn wakeups_until(bundle: &Path, until: i64) -> Result<i64> {
    let text = fs::read_to_string(bundle.join("blocks.jsonl")).unwrap_or_default();
    let mut sum = 0;
    for line in text.lines() {
        // The last line of a killed run may be cut.
        let Ok(block) = serde_json::from_str::<Value>(line) else { continue };
        let ended = block["mono_ns"].as_i64().unwrap_or(i64::MAX) <= until.saturating_sub(1_000_000_000);
        sum += if ended { block["n"].as_i64().unwrap_or(0) } else { 0 };
    }
    Ok(sum)
}
