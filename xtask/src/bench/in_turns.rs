//! A command of this build and of an earlier one, alternating: seconds, processor time, peak
//! memory, and the speed-up.

use std::path::Path;
use std::time::Duration;

use super::program::tool;
use super::{Row, Rows, ratio};
use crate::tools::{Result, read, target};

/// Exit codes of a command that completed: 3 and 7 are verdicts.
const ENDS: [i32; 3] = [0, 3, 7];

/// The cost of a command.
#[derive(Clone, Copy, Debug)]
pub struct CommandCost {
    pub seconds: f64,
    pub cpu_seconds: f64,
    pub peak_kib: u64,
}

/// One value of a cost.
type Figure = fn(&CommandCost) -> f64;

/// A command with its limits.
pub struct CommandInTurns<'a> {
    pub what: String,
    pub onbeat: &'a Path,
    pub before: Option<&'a Path>,
    pub args: Vec<String>,
    pub repeats: usize,
    /// Seconds and peak KiB.
    pub limits: (f64, u64),
    pub within: Duration,
}

impl CommandInTurns<'_> {
    /// Runs both equally often, after one run that warms the disk's cache.
    pub fn measure(&self) -> Rows {
        let run = |binary: &Path| {
            let mut line = vec![binary.display().to_string()];
            line.extend_from_slice(&self.args);
            cost(&line, self.within)
        };
        run(self.onbeat)?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..self.repeats {
            ours.push(run(self.onbeat)?);
            theirs.extend(self.before.map(run).transpose()?);
        }
        let median = |costs: &[CommandCost], of: Figure| ratio::median(costs.iter().map(of));
        let row = |unit: &str, of: Figure, limit: Option<f64>| -> Result<Row> {
            let value = median(&ours, of).ok_or("nothing was measured")?;
            let ends = [f64::min, f64::max].map(|end| ours.iter().map(of).fold(value, end));
            Ok(Row {
                what: format!("{}, {unit}", self.what),
                ours: format!("{value:.2} [{:.2}, {:.2}]", ends[0], ends[1]),
                peer: median(&theirs, of).map_or(String::new(), |before| format!("before {before:.2}")),
                limit: limit.map_or(String::new(), |limit| format!("{limit}")),
                holds: limit.map(|limit| value <= limit),
            })
        };
        let mut rows = vec![
            row("s", |cost| cost.seconds, Some(self.limits.0))?,
            row("CPU s", |cost| cost.cpu_seconds, None)?,
            row("peak MiB", |cost| cost.peak_kib as f64 / 1024.0, Some(self.limits.1 as f64 / 1024.0))?,
        ];
        let units: [(&str, Figure); 2] = [("s", |cost| cost.seconds), ("CPU s", |cost| cost.cpu_seconds)];
        for (unit, of) in units {
            let pairs: Vec<(f64, f64)> = theirs.iter().zip(&ours).map(|(a, b)| (of(a), of(b))).collect();
            rows.extend(ratio::of_pairs(&pairs).map(|ratio| {
                let ends =
                    ratio.interval.map_or(String::new(), |(low, high)| format!(" [{low:.1}, {high:.1}]"));
                Row {
                    what: format!("{}, {unit} before : now", self.what),
                    ours: format!("{:.1}{ends}", ratio.median),
                    peer: String::new(),
                    limit: String::new(),
                    holds: None,
                }
            }));
        }
        Ok(rows)
    }
}

/// Runs a command to its end, by `time`, which is small: a child's peak begins with the memory of
/// the process it was forked from.
fn cost(line: &[String], within: Duration) -> Result<CommandCost> {
    let report = target("lab/bench")?.join("cost");
    let mut timed: Vec<String> = ["time", "-q", "-f", "%e %U %S %M", "-o"].map(str::to_string).to_vec();
    timed.push(report.display().to_string());
    timed.extend_from_slice(line);
    let output = tool(&timed).within(within).capture()?;
    if output.timed_out || !ENDS.contains(&output.code) {
        let last = output.stderr.lines().last().unwrap_or_default();
        return Err(format!("{}: exit {}: {last}", line.join(" "), output.code));
    }
    let text = String::from_utf8_lossy(&read(&report)?).into_owned();
    let numbers: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [seconds, user, system, peak] = numbers[..] else { return Err(format!("time reported {text:?}")) };
    Ok(CommandCost { seconds, cpu_seconds: (user + system).max(0.01), peak_kib: peak as u64 })
}
