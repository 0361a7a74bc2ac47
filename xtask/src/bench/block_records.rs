//! Synthetic block records of runs of days and months, as input of benchmarks.

use std::fs::File;
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use model::histogram::Bucket;
use model::run::{Block, CpuRun, Plan, Run, SCHEMA, Worst};
use model::units::{Cpu, Nanos};
use model::vocabulary::{Command, Ended};
use stats::rng::{Rng, SEED};

use crate::tools::{Result, read, write};

const HOUR: i64 = 3600;
const SECOND: i64 = 1_000_000_000;
const INTERVAL: Nanos = Nanos(1_000_000);
/// CLOCK_MONOTONIC of the first block.
const START: i64 = 655 * SECOND;

/// Levels whose exceedances a block counts, as in a run of 1 ms: their number gives a line its
/// usual length.
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

/// Block records, with the offset of each hour and the largest latency of each CPU in it.
pub struct BlockRecords {
    path: PathBuf,
    cpus: u32,
    begins: Vec<u64>,
    largest: Vec<Vec<i64>>,
}

/// Refuses a disk with less room.
pub fn enough_room(folder: &Path, needed: u64) -> Result<()> {
    let stat = rustix::fs::statvfs(folder).map_err(|error| error.to_string())?;
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    if free >= needed {
        return Ok(());
    }
    let (shown, free, needed) = (folder.display(), free / 1_000_000, needed / 1_000_000);
    Err(format!("{shown} has {free} MB free, {needed} are needed"))
}

impl BlockRecords {
    /// Writes the records of that many hours.
    pub fn write(path: &Path, cpus: u32, hours: i64) -> Result<BlockRecords> {
        println!("  making block records of {hours} h on {cpus} CPUs");
        let fault = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = BufWriter::with_capacity(1 << 20, File::create(path).map_err(fault)?);
        let mut rng = Rng::new(SEED);
        let (mut begins, mut largest, mut at) = (vec![0], Vec::new(), 0u64);
        let mut line = Vec::new();
        for hour in 0..hours {
            let mut most = vec![0; cpus as usize];
            for second in hour * HOUR..(hour + 1) * HOUR {
                for (cpu, most) in (0..cpus).zip(&mut most) {
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
        Ok(BlockRecords { path: path.to_owned(), cpus, begins, largest })
    }

    pub fn hours(&self) -> i64 {
        self.largest.len() as i64
    }

    /// Writes a bundle of these hours, with its own records or links to those of another.
    pub fn run(&self, folder: &Path, hours: Range<usize>, same: Option<&Path>) -> Result<()> {
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
        let largest: Vec<i64> = (0..self.cpus as usize).map(most).collect();
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let run = run(&name, &hours, &largest);
        run.check()?;
        let path = folder.join("run.json");
        write(&path, serde_json::to_vec(&run).map_err(|error| error.to_string())?)?;
        bundle::read::parse_run(&read(&path)?).map(drop)
    }
}

/// A second of a CPU with Gumbel-distributed maxima of about 20 us.
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

/// A consistent run: its histogram has its largest latency, and the rest in one row.
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
        plan: Plan {
            cpus: (0..largest.len() as u32).map(Cpu).collect(),
            interval_ns: Some(INTERVAL),
            ..Plan::default()
        },
        elapsed_ns: Some(Nanos(seconds * SECOND)),
        cpus: (0u32..).zip(largest).map(cpu).collect(),
        ..Run::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_a_run() {
        let run = run("a", &(8..32), &[60_000; 8]);
        assert_eq!(run.check(), Ok(()));
        assert_eq!(run.elapsed_ns, Some(Nanos(24 * HOUR * SECOND)));
        let text = serde_json::to_vec(&block(Cpu(7), START, &mut Rng::new(1))).unwrap();
        let back: Block = serde_json::from_slice(&text).unwrap();
        assert!(back.max_ns > back.top_ns.first().copied() && text.len() > 300, "{back:?}");
    }
}
