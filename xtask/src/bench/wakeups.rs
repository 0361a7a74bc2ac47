//! Own wake-ups: context switches of every thread that does not measure, from outside.

use std::collections::BTreeMap;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::program::{Onbeat, cyclictest_line, start};
use super::{Row, Rows};
use crate::tools::Result;

const LIMIT_PER_S: f64 = 4.0;

/// Additional wake-ups permitted for a load during the measurement.
const ADDED_PER_S: f64 = 2.0;

pub fn measure(onbeat: &Onbeat, quick: bool) -> Rows {
    let seconds = if quick { 5 } else { 24 };
    let plain = format!("-i 1000 -D {}", seconds + 4);
    let all: fn(&MeasuredThread) -> u64 = |thread| thread.switches;
    let ours = rate(&onbeat.line(&plain)?, seconds, all)?;
    let peer = rate(&cyclictest_line(&plain), seconds, all)?;
    // A load takes the CPU from the current thread: only threads that slept have woken up.
    let woken: fn(&MeasuredThread) -> u64 = |thread| thread.voluntary;
    let alone = rate(&onbeat.line(&plain)?, seconds, woken)?;
    let loads = "--load full,messaging:1,net:1 --load-cpus 0-1";
    let loaded = rate(&onbeat.line(&format!("{plain} {loads}"))?, seconds, woken)?;
    Ok(vec![
        Row {
            what: format!("own wake-ups per second, over {seconds} s"),
            ours: format!("{ours:.2}"),
            peer: format!("{peer:.2}"),
            limit: format!("{LIMIT_PER_S}"),
            holds: Some(ours <= LIMIT_PER_S),
        },
        Row {
            what: "own wake-ups per second that loading adds".to_string(),
            ours: format!("{:.2} ({loaded:.2} - {alone:.2})", loaded - alone),
            peer: String::new(),
            limit: format!("{ADDED_PER_S}"),
            holds: Some(loaded - alone <= ADDED_PER_S),
        },
    ])
}

/// Starts the program, lets it settle, and counts for some seconds: for its threads, and for the
/// process that would clean up after it.
fn rate(line: &[String], seconds: u64, count: fn(&MeasuredThread) -> u64) -> Result<f64> {
    let (running, _) = start(line)?;
    thread::sleep(Duration::from_secs(2));
    let own = || -> Result<BTreeMap<u32, MeasuredThread>> {
        let mut threads = switches(running.pid())?;
        for keeper in keepers(running.pid()) {
            threads.extend(switches(keeper)?);
        }
        Ok(threads)
    };
    let (before, since) = (own()?, Instant::now());
    thread::sleep(Duration::from_secs(seconds));
    let (after, elapsed) = (own()?, since.elapsed());
    running.finish(Duration::from_secs(60))?;
    let measuring = after.values().filter(|thread| thread.measuring).count();
    if measuring != 2 {
        return Err(format!("{measuring} measuring threads were found instead of 2"));
    }
    let own = after.iter().filter(|(_, thread)| !thread.measuring);
    let grown: u64 = own.map(|(id, thread)| count(thread) - before.get(id).map_or(0, count)).sum();
    Ok(grown as f64 / elapsed.as_secs_f64())
}

/// The processes that clean up after this one.
fn keepers(pid: u32) -> Vec<u32> {
    let own = format!("--keep\0{pid}/");
    let keeps = |pid: &u32| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&own)
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(keeps).collect()
}

/// One thread of a program.
pub struct MeasuredThread {
    /// True if it measures: it has a real-time policy.
    pub measuring: bool,
    /// Context switches, voluntary and not.
    pub switches: u64,
    /// The voluntary ones.
    pub voluntary: u64,
}

/// A program's threads by their id.
pub fn switches(pid: u32) -> Result<BTreeMap<u32, MeasuredThread>> {
    let tasks = format!("/proc/{pid}/task");
    let entries = std::fs::read_dir(&tasks).map_err(|error| format!("{tasks}: {error}"))?;
    let mut threads = BTreeMap::new();
    for entry in entries.filter_map(|entry| entry.ok()) {
        let Ok(id) = entry.file_name().to_string_lossy().parse() else { continue };
        // A thread may end while we look; then it has no files any more.
        if let Some(thread) = thread_at(&entry.path()) {
            threads.insert(id, thread);
        }
    }
    Ok(threads)
}

fn thread_at(dir: &Path) -> Option<MeasuredThread> {
    let status = std::fs::read_to_string(dir.join("status")).ok()?;
    let stat = std::fs::read_to_string(dir.join("stat")).ok()?;
    let voluntary = field(&status, "voluntary_ctxt_switches:")?;
    let switches = voluntary + field(&status, "nonvoluntary_ctxt_switches:")?;
    Some(MeasuredThread { measuring: matches!(policy_of(&stat)?, 1 | 2), switches, voluntary })
}

fn field(status: &str, name: &str) -> Option<u64> {
    status.lines().find_map(|line| line.strip_prefix(name)).and_then(|value| value.trim().parse().ok())
}

/// The scheduling policy, field 41 of `stat`; the name in field 2 may hold spaces and parentheses.
fn policy_of(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(38)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_is_read_behind_any_name() {
        let after: Vec<String> =
            (3..=52).map(|n| if n == 41 { "1".into() } else { (n * 100).to_string() }).collect();
        assert_eq!(policy_of(&format!("7 (a) b (c) {}", after.join(" "))), Some(1));
        assert_eq!(policy_of("7 (short) S 1"), None);
    }

    #[test]
    fn own_threads_do_not_measure() {
        let own = switches(std::process::id()).unwrap();
        assert!(!own.is_empty() && own.values().all(|thread| !thread.measuring));
    }
}
