//! Cost of `bounds` and `compare` for runs of a day and more: seconds, and peak memory.
//!
//! One file of 48 h on 8 CPUs is written; shorter runs are its beginnings. The forty runs of a
//! comparison share four files of block records by hard links: 1 GB on the disk and in its cache,
//! where forty such runs take 10 GB.

use std::path::Path;
use std::time::Duration;

use super::block_records::{BlockRecords, enough_room};
use super::in_turns::CommandInTurns;
use super::program::timed;
use super::{Folder, Row, Rows, ratio};
use crate::tools::{Result, target};

const CPUS: u32 = 8;
const HOURS: i64 = 48;
const REPEATS: usize = 3;

const DAY_SECONDS: f64 = 2.0;
const DAY_KIB: u64 = 100_000_000 / 1024;
const COMPARE_SECONDS: f64 = 4.0;
const COMPARE_KIB: u64 = 64 << 10;
const COMPARE_REPEATS: usize = 6;
/// Limit of the cost of a further hour relative to an hour of a shorter run: linear, with room for
/// noise.
const GROWTH: f64 = 1.5;
/// Twice the size of the files.
const NEEDED_BYTES: u64 = 4_000_000_000;

pub fn measure(onbeat: &Path, before: Option<&Path>, quick: bool) -> Rows {
    let folder = Folder(target("lab/bench")?.join("statistics"));
    std::fs::create_dir_all(&folder.0).map_err(|error| error.to_string())?;
    enough_room(&folder.0, NEEDED_BYTES)?;
    let records = BlockRecords::write(&folder.0.join("all"), CPUS, if quick { 24 } else { HOURS })?;
    let mut rows = Vec::new();
    let mut taken = Vec::new();
    for hours in [6, 12, 24, 48].into_iter().filter(|hours| *hours <= records.hours()) {
        let run = folder.0.join(format!("{hours}h"));
        records.run(&run, 0..hours as usize, None)?;
        let line = ["bounds", "-q", &run.display().to_string()].map(str::to_string).to_vec();
        let (seconds, peak) = repeated(onbeat, &line, 60)?;
        let (median, spread) = of_repeats(&seconds)?;
        taken.push((hours as f64, median));
        let limited = hours == 24;
        rows.push(row(
            format!("bounds, {hours} h on {CPUS} CPUs, s"),
            spread,
            limited.then_some(DAY_SECONDS),
            median,
        ));
        let kib = format!("{peak}");
        rows.push(row(
            format!("bounds, {hours} h, peak KiB"),
            kib,
            limited.then_some(DAY_KIB as f64),
            peak as f64,
        ));
    }
    rows.extend(growth(&taken));
    if !quick {
        rows.extend(compared(onbeat, before, &folder.0, &records)?);
    }
    Ok(rows)
}

/// Cost of an hour in the last doubling, relative to one before it: 1 if time is linear.
fn growth(taken: &[(f64, f64)]) -> Option<Row> {
    let per_hour = |from: (f64, f64), to: (f64, f64)| (to.1 - from.1) / (to.0 - from.0);
    let [first, .., half, whole] = *taken else { return None };
    let growth = per_hour(half, whole) / per_hour(first, half);
    let what = format!("time of a further hour, {} to {} h", half.0, whole.0);
    Some(row(what, format!("{growth:.2} of one before"), Some(GROWTH), growth))
}

/// Compares two sides of twenty runs of a day, whose four files of block records are windows of 24
/// h, 8 h apart.
fn compared(onbeat: &Path, before: Option<&Path>, folder: &Path, records: &BlockRecords) -> Rows {
    let mut args = vec!["compare".to_string(), "-q".to_string()];
    for n in 0..40usize {
        let run = folder.join(format!("run-{n:02}"));
        let window = n % 4;
        let same = (n >= 4).then(|| folder.join(format!("run-{window:02}/blocks.jsonl")));
        records.run(&run, 8 * window..8 * window + 24, same.as_deref())?;
        if n == 20 {
            args.push("--".to_string());
        }
        args.push(run.display().to_string());
    }
    let comparison = CommandInTurns {
        what: "compare, 2 x 20 runs of 24 h".to_string(),
        onbeat,
        before,
        args,
        repeats: COMPARE_REPEATS,
        limits: (COMPARE_SECONDS, COMPARE_KIB),
        within: Duration::from_secs(180),
    };
    comparison.measure()
}

fn row(what: String, ours: String, limit: Option<f64>, value: f64) -> Row {
    Row {
        what,
        ours,
        peer: String::new(),
        limit: limit.map_or(String::new(), |limit| format!("{limit}")),
        holds: limit.map(|limit| value <= limit),
    }
}

/// Seconds of each repetition, after one that warms the disk's cache, and the largest peak.
fn repeated(onbeat: &Path, args: &[String], limit: u64) -> Result<(Vec<f64>, u64)> {
    let mut line = vec![onbeat.display().to_string()];
    line.extend_from_slice(args);
    let all: Vec<(f64, u64)> =
        (0..=REPEATS).map(|_| timed(&[], &line, Duration::from_secs(limit))).collect::<Result<_>>()?;
    let peak = all.iter().map(|one| one.1).max().unwrap_or(0);
    Ok((all.into_iter().skip(1).map(|one| one.0).collect(), peak))
}

/// Their median, and it with the least and the most.
fn of_repeats(seconds: &[f64]) -> Result<(f64, String)> {
    let median = ratio::median(seconds.to_vec()).ok_or("nothing was measured")?;
    let ends = [f64::min, f64::max].map(|end| seconds.iter().copied().fold(median, end));
    Ok((median, format!("{median:.2} [{:.2}, {:.2}]", ends[0], ends[1])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_that_of_the_slope() {
        let linear = growth(&[(6.0, 1.3), (12.0, 1.6), (24.0, 2.2), (48.0, 3.4)]).unwrap();
        assert_eq!((linear.ours.as_str(), linear.holds), ("1.00 of one before", Some(true)));
        let square = growth(&[(6.0, 0.36), (12.0, 1.44), (24.0, 5.76)]).unwrap();
        assert_eq!(square.holds, Some(false));
    }

    #[test]
    fn repeats_have_a_median_and_their_ends() {
        assert_eq!(of_repeats(&[3.0, 1.0, 2.0]), Ok((2.0, "2.00 [1.00, 3.00]".to_string())));
        assert!(of_repeats(&[]).is_err());
    }
}
