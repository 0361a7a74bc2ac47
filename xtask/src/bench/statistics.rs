//! What `bounds` and `compare` take for runs of a day and more: seconds, and peak memory.
//!
//! One file of 48 h on 8 CPUs is made; shorter runs are its beginnings. The forty runs of a
//! comparison share four files of block records by hard links: 1 GB on the disk and in its cache,
//! where forty such runs are 10 GB.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use model::histogram::Bucket;
use model::run::{Block, CpuRun, Plan, Run, SCHEMA, Worst};
use model::units::{Cpu, Nanos};
use model::vocabulary::{Command, Ended};
use stats::rng::{Rng, SEED};

use super::program::timed;
use super::{Folder, Row, Rows, ratio};
use crate::tools::{Result, read, target, write};

const CPUS: u32 = 8;
const HOUR: i64 = 3600;
const HOURS: i64 = 48;
const SECOND: i64 = 1_000_000_000;
const INTERVAL: Nanos = Nanos(1_000_000);
/// CLOCK_MONOTONIC of the first block.
const START: i64 = 655 * SECOND;
const REPEATS: usize = 3;

/// Levels whose exceedances a block counts, as of a run of 1 ms: their number makes the line as
/// long as it is.
const LEVELS: [i64; 12] = [
    5_056,
    10_112,
    20_224,
    50_176,
    100_352,
    200_704,
    503_808,
    1_007_616,
    2_015_232,
    5_046_272,
    10_092_544,
    100_663_296,
];

const DAY_SECONDS: f64 = 2.0;
const DAY_KIB: u64 = 100_000_000 / 1024;
const COMPARE_SECONDS: f64 = 20.0;
/// A further hour may cost so many times what an hour costs in a shorter run: linear, with room for
/// noise.
const GROWTH: f64 = 1.5;
/// Twice what is written.
const NEEDED_BYTES: u64 = 4_000_000_000;

/// Block records, where each hour of them begins, and the largest latency of each CPU in it.
struct Records {
    path: PathBuf,
    begins: Vec<u64>,
    largest: Vec<Vec<i64>>,
}

pub fn measure(onbeat: &Path, quick: bool) -> Rows {
    let folder = Folder(target("lab/bench")?.join("statistics"));
    std::fs::create_dir_all(&folder.0).map_err(|error| error.to_string())?;
    enough_room(&folder.0)?;
    let records = Records::write(&folder.0.join("all"), if quick { 24 } else { HOURS })?;
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
        rows.push(compared(onbeat, &folder.0, &records)?);
    }
    Ok(rows)
}

/// What the last doubling costs an hour, over what an hour costs before it: 1 where time is linear.
fn growth(taken: &[(f64, f64)]) -> Option<Row> {
    let per_hour = |from: (f64, f64), to: (f64, f64)| (to.1 - from.1) / (to.0 - from.0);
    let [first, .., half, whole] = *taken else { return None };
    let growth = per_hour(half, whole) / per_hour(first, half);
    let what = format!("time of a further hour, {} to {} h", half.0, whole.0);
    Some(row(what, format!("{growth:.2} of one before"), Some(GROWTH), growth))
}

/// Two sides of twenty runs of a day, whose four files of block records are windows of 24 h, 8 h
/// apart.
fn compared(onbeat: &Path, folder: &Path, records: &Records) -> Result<Row> {
    let mut line = vec!["compare".to_string(), "-q".to_string()];
    for n in 0..40usize {
        let run = folder.join(format!("run-{n:02}"));
        let window = n % 4;
        let same = (n >= 4).then(|| folder.join(format!("run-{window:02}/blocks.jsonl")));
        records.run(&run, 8 * window..8 * window + 24, same.as_deref())?;
        if n == 20 {
            line.push("--".to_string());
        }
        line.push(run.display().to_string());
    }
    let (seconds, peak) = repeated(onbeat, &line, 180)?;
    let (median, spread) = of_repeats(&seconds)?;
    Ok(row(format!("compare, 2 x 20 runs of 24 h, s ({peak} KiB)"), spread, Some(COMPARE_SECONDS), median))
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

/// Seconds of each repeat, after one that warms the disk's cache, and the largest peak.
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

fn enough_room(folder: &Path) -> Result<()> {
    let stat = rustix::fs::statvfs(folder).map_err(|error| error.to_string())?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free >= NEEDED_BYTES {
        return Ok(());
    }
    Err(format!(
        "{} has {} MB free, {} are needed",
        folder.display(),
        free / 1_000_000,
        NEEDED_BYTES / 1_000_000
    ))
}

impl Records {
    /// Makes the records of so many hours.
    fn write(path: &Path, hours: i64) -> Result<Records> {
        println!("  making block records of {hours} h on {CPUS} CPUs");
        let fault = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path).map_err(fault)?);
        let mut rng = Rng::new(SEED);
        let (mut begins, mut largest, mut at) = (vec![0], Vec::new(), 0u64);
        let mut line = Vec::new();
        for hour in 0..hours {
            let mut most = vec![0; CPUS as usize];
            for second in hour * HOUR..(hour + 1) * HOUR {
                for (cpu, most) in (0..CPUS).zip(&mut most) {
                    let block = block(Cpu(cpu), START + second * SECOND, &mut rng);
                    *most = block.max_ns.map_or(*most, |max| max.0.max(*most));
                    line.clear();
                    serde_json::to_writer(&mut line, &block).map_err(|error| error.to_string())?;
                    line.push(b'\n');
                    file.write_all(&line).map_err(fault)?;
                    at += line.len() as u64;
                }
            }
            begins.push(at);
            largest.push(most);
        }
        file.flush().map_err(fault)?;
        Ok(Records { path: path.to_owned(), begins, largest })
    }

    fn hours(&self) -> i64 {
        self.largest.len() as i64
    }

    /// A bundle of these hours, with records of its own or those of another.
    fn run(&self, folder: &Path, hours: Range<usize>, same: Option<&Path>) -> Result<()> {
        let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
        std::fs::create_dir_all(folder).map_err(fault)?;
        let blocks = folder.join("blocks.jsonl");
        match same {
            Some(same) => std::fs::hard_link(same, &blocks).map_err(fault)?,
            None => {
                let (from, to) = (self.begins[hours.start], self.begins[hours.end]);
                let mut all = File::open(&self.path).map_err(fault)?;
                all.seek(SeekFrom::Start(from)).map_err(fault)?;
                let mut own = File::create(&blocks).map_err(fault)?;
                std::io::copy(&mut all.take(to - from), &mut own).map_err(fault)?;
            }
        }
        let most = |cpu: usize| self.largest[hours.clone()].iter().map(|most| most[cpu]).max().unwrap_or(0);
        let largest: Vec<i64> = (0..CPUS as usize).map(most).collect();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let run = run(&name, &hours, &largest);
        run.check()?;
        let path = folder.join("run.json");
        write(&path, serde_json::to_vec(&run).map_err(|error| error.to_string())?)?;
        bundle::read::parse_run(&read(&path)?).map(drop)
    }
}

/// A second of a CPU whose maxima are Gumbel's about 20 us.
fn block(cpu: Cpu, start: i64, rng: &mut Rng) -> Block {
    let max = (1e3 * (20.0 - 2.0 * rng.exponential().ln())).max(6_000.0);
    let mut top: Vec<i64> = (0..7).map(|_| (max * (0.5 + 0.4 * rng.uniform())) as i64).collect();
    top.sort_unstable_by(|a, b| b.cmp(a));
    let max = max as i64;
    let over = |level: i64| top.iter().chain([&max]).filter(|ns| **ns >= level).count() as u64;
    Block {
        cpu,
        mono_ns: Nanos(start),
        span_ns: Some(Nanos(SECOND)),
        n: (SECOND / INTERVAL.0) as u64,
        max_ns: Some(Nanos(max)),
        max_mono_ns: Some(Nanos(start + rng.below(1000) as i64 * INTERVAL.0 + max)),
        over: LEVELS.map(|level| (Nanos(level), over(level))).to_vec(),
        top_ns: top.into_iter().map(Nanos).collect(),
        steal_ns: Some(Nanos(0)),
        ..Block::default()
    }
}

/// A run that agrees with itself: its histogram has its largest latency, and the rest in one row.
fn run(id: &str, hours: &Range<usize>, largest: &[i64]) -> Run {
    let (from, seconds) = (START + hours.start as i64 * HOUR * SECOND, hours.len() as i64 * HOUR);
    let until = Some(Nanos(from + seconds * SECOND));
    let cycles = (seconds * SECOND / INTERVAL.0) as u64;
    let cpu = |(cpu, &max): (u32, &i64)| {
        let rows = vec![
            Bucket::new(Nanos(5_000), Nanos(5_056), cycles - 1),
            Bucket::new(Nanos(max), Nanos(max + 1), 1),
        ];
        let worst = Worst {
            latency_ns: Some(Nanos(max)),
            cycle: Some(5),
            mono_ns: Some(Nanos(from + 5 * INTERVAL.0 + max)),
            time: String::new(),
        };
        let mut cpu = CpuRun {
            cpu: Some(Cpu(cpu)),
            t0_mono_ns: Some(Nanos(from)),
            interval_ns: Some(INTERVAL),
            scheduled: Some(cycles),
            cycles: Some(cycles),
            missed: Some(0),
            early: Some(0),
            min_ns: Some(Nanos(5_000)),
            mean_ns: Some(Nanos(5_001)),
            max_ns: Some(Nanos(max)),
            deadline_histogram: Some(rows.clone()),
            histogram: rows,
            worst: vec![worst],
            until_mono_ns: until,
            ..CpuRun::default()
        };
        cpu.fill_quantiles();
        cpu
    };
    Run {
        schema: SCHEMA.to_string(),
        id: id.to_string(),
        command: Command::Measure.into(),
        complete: true,
        ended: Ended::Duration.into(),
        checkpoint_mono_ns: until,
        plan: Plan { cpus: (0..CPUS).map(Cpu).collect(), interval_ns: Some(INTERVAL), ..Plan::default() },
        elapsed_ns: Some(Nanos(seconds * SECOND)),
        cpus: (0..CPUS).zip(largest).map(cpu).collect(),
        ..Run::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_a_run() {
        let run = run("a", &(8..32), &[60_000; CPUS as usize]);
        assert_eq!(run.check(), Ok(()));
        assert_eq!(run.elapsed_ns, Some(Nanos(24 * HOUR * SECOND)));
        let text = serde_json::to_vec(&block(Cpu(7), START, &mut Rng::new(1))).unwrap();
        let back: Block = serde_json::from_slice(&text).unwrap();
        assert!(back.max_ns > back.top_ns.first().copied() && text.len() > 300, "{back:?}");
    }

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
