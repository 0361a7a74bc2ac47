//! A process stopped for 200 ms: its missed slots are those of the stop, and those taken by the
//! machine.

use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;

use super::program::{Onbeat, cycles_of, cyclictest_line, start};
use super::{Row, Rows};
use crate::live::judge;
use crate::tools::{Result, read};

const INTERVAL: i64 = 1_000_000;

pub fn measure(onbeat: &Onbeat) -> Rows {
    let (held, _) = hold(&onbeat.line("-i 1000 -D 3")?)?;
    let run = onbeat.stored()?;
    let (peer_held, output) = hold(&cyclictest_line("-i 1000 -D 3"))?;
    let peer: Vec<String> = cycles_of(&output)?.iter().map(u64::to_string).collect();
    let mut rows = Vec::new();
    for cpu in judge::cpus(&run, &[0, 1])? {
        let (missed, low, high) = accounted(cpu, held)?;
        rows.push(Row {
            what: format!("missed on CPU {}, held {held} ms of 3 s", cpu["cpu"]),
            ours: missed.to_string(),
            peer: format!("not said, held {peer_held} ms"),
            limit: format!("{low} to {high}"),
            holds: Some((low..=high).contains(&missed)),
        });
    }
    rows.push(Row {
        what: "cycles of the 3,000 slots".to_string(),
        ours: judge::cpus(&run, &[0, 1])?
            .iter()
            .map(|cpu| cpu["cycles"].to_string())
            .collect::<Vec<_>>()
            .join(" "),
        peer: peer.join(" "),
        limit: String::new(),
        holds: None,
    });
    Ok(rows)
}

/// Stops the program after a second and continues it; returns the length and the output.
fn hold(line: &[String]) -> Result<(i64, String)> {
    let (running, log) = start(line)?;
    thread::sleep(Duration::from_millis(1200));
    running.signal(Signal::STOP)?;
    let since = Instant::now();
    thread::sleep(Duration::from_millis(200));
    running.signal(Signal::CONT)?;
    let held = since.elapsed().as_millis() as i64;
    running.finish(Duration::from_secs(30))?;
    Ok((held, String::from_utf8_lossy(&read(&log)?).into_owned()))
}

/// Missed slots, and their bounds: the stop, two slots at its edges, and those skipped by the other
/// wake-ups (a wake-up L late skips L / interval slots).
fn accounted(cpu: &Value, held: i64) -> Result<(i64, i64, i64)> {
    let missed = judge::count(cpu, "missed")? as i64;
    let mut rows = judge::rows(cpu, "histogram")?;
    let longest = rows.last_mut().ok_or("the histogram is empty")?;
    // The longest wake-up is that of the stop; a longer stall elsewhere spoils the measurement.
    if (longest.1 / INTERVAL - held).abs() > held / 4 {
        return Err(format!(
            "the longest latency is {} ms, but the CPU was held for {held} ms",
            longest.1 / INTERVAL
        ));
    }
    longest.2 -= 1;
    let elsewhere = |edge: fn(&(i64, i64, u64)) -> i64| -> i64 {
        rows.iter().map(|row| edge(row).max(0) / INTERVAL * row.2 as i64).sum()
    };
    Ok((missed, held - 2 + elsewhere(|row| row.0), held + 2 + elsewhere(|row| row.1)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_bounds_are_the_hold_and_the_stalls_elsewhere() {
        let cpu = json!({ "missed": 207, "histogram": [[1000, 1010, 2700], [7_040_000, 7_100_000, 1], [199_000_000, 202_000_000, 1]] });
        assert_eq!(accounted(&cpu, 200), Ok((207, 205, 209)));
        let other = json!({ "missed": 7, "histogram": [[1000, 1010, 2700], [7_040_000, 7_100_000, 1]] });
        assert!(accounted(&other, 200).is_err());
    }
}
