//! Nothing is lost: every wake-up is counted, and every slot of the schedule is accounted for.

use std::thread;
use std::time::{Duration, Instant};

use super::program::{Onbeat, cycles_of, cyclictest, start};
use super::wakeups::switches;
use super::{Row, Rows};
use crate::live::judge;
use crate::tools::Result;

const INTERVAL_NS: i64 = 100_000;

pub fn measure(onbeat: &Onbeat, quick: bool) -> Rows {
    let seconds = if quick { 10 } else { 60 };
    let flags = format!("-i 100 -D {seconds}");
    let seen = voluntary(&onbeat.line(&flags)?, seconds)?;
    let run = onbeat.stored()?;
    let peer = cycles_of(&cyclictest(&flags)?)?;
    let slots = judge::whole(&run, "elapsed_ns")? / INTERVAL_NS;
    let mut rows = Vec::new();
    let cpus = judge::cpus(&run, &[0, 1])?;
    for ((cpu, seen), peer) in cpus.iter().zip(seen).zip(peer) {
        let (cycles, scheduled) = (judge::count(cpu, "cycles")?, judge::count(cpu, "scheduled")?);
        rows.push(Row {
            what: format!("CPU {}: wake-ups in {seconds} s of 100 us", cpu["cpu"]),
            ours: cycles.to_string(),
            peer: peer.to_string(),
            limit: format!("{seen} +- 1 %"),
            holds: Some(cycles.abs_diff(seen) * 100 <= seen),
        });
        rows.push(Row {
            what: format!("CPU {}: slots of the schedule", cpu["cpu"]),
            ours: scheduled.to_string(),
            peer: "not said".to_string(),
            limit: format!("{slots} +- 1"),
            holds: Some((scheduled as i64 - slots).abs() <= 1),
        });
    }
    Ok(rows)
}

/// Voluntary context switches of the measuring threads, in the order of their ids, which is the
/// order of their CPUs. Read until the program ends: the last reading is at most 50 ms old.
fn voluntary(line: &[String], seconds: u64) -> Result<Vec<u64>> {
    let (mut running, log) = start(line)?;
    let limit = Instant::now() + Duration::from_secs(seconds + 60);
    let mut last = Vec::new();
    loop {
        let now: Vec<u64> = match switches(running.pid()) {
            Ok(threads) => {
                threads.into_values().filter(|thread| thread.measuring).map(|t| t.voluntary).collect()
            }
            Err(_) => Vec::new(),
        };
        if now.len() == 2 {
            last = now;
        }
        match running.poll()? {
            Some(0) if last.len() == 2 => return Ok(last),
            Some(code) => {
                let said = String::from_utf8_lossy(&crate::tools::read(&log)?).into_owned();
                return Err(format!("exit {code}: {}", said.lines().last().unwrap_or("nothing said")));
            }
            None if Instant::now() > limit => return Err("not done in time".to_string()),
            None => thread::sleep(Duration::from_millis(50)),
        }
    }
}
