//! `rows.jsonl`: histograms of each five minutes, which show the course of a run of weeks. Lines as
//! those of a record (`record::lines`), after one header.
//!
//! A block counts where it began, as in all sums of blocks. The edges are five minutes of UTC by
//! the clock at the first block, and stay on CLOCK_MONOTONIC if the clock is set later. Lines of
//! the same five minutes are added up: a CPU that is late by more than five minutes has a separate
//! line.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use serde::{Deserialize, Serialize};

use super::environment::{digest, environment_of};
use super::record::lines::{HeaderLine, LineSpan, ROWS_SCHEMA, RowsLine};
use crate::tail::Tail;
use model::rows::{EARLY_ROW, RowCounts, RowSums, row_of_bucket};
use model::run::{Block, Plan, Run};
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};
use model::vocabulary::IntegrityKind;
use model::wall_time::wall_time;
use model::watch::{RowLayout, TOP, WatchRow, WatchRun};

/// Name of the file.
pub const FIVE_MINUTES: &str = "rows.jsonl";

/// Span of a line.
pub const SPAN: Nanos = Nanos(300 * Nanos::SECOND.0);

/// Maximum size of a line: less than its readers accept.
const MOST_BYTES: usize = 800 << 10;
/// Size of a CPU's entry without its histogram.
const CPU_BYTES: usize = 700;

/// Contents of a line that are read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FiveMinuteLine {
    /// Set in the header alone.
    pub schema: String,
    /// CLOCK_MONOTONIC of the start.
    pub mono_ns: Nanos,
    pub span_ns: Nanos,
    pub cpus: Vec<CpuFiveMinuteLine>,
}

/// Histogram of a CPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CpuFiveMinuteLine {
    pub cpu: Cpu,
    /// Number of wake-ups.
    pub n: u64,
    /// Numbering of the histogram's rows.
    pub layout: RowLayout,
    pub hist: RowCounts,
}

/// Kind of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiveMinuteLineKind {
    Rows,
    Header,
    /// A header of another version.
    Foreign,
}

impl FiveMinuteLine {
    pub fn kind(&self) -> FiveMinuteLineKind {
        match self.schema.as_str() {
            "" => FiveMinuteLineKind::Rows,
            ROWS_SCHEMA => FiveMinuteLineKind::Header,
            _ => FiveMinuteLineKind::Foreign,
        }
    }
}

/// Sums of the current five minutes.
#[derive(Debug, Default)]
pub struct FiveMinuteSums {
    /// Header, until it is written before the first line.
    header: Option<HeaderLine>,
    env: String,
    /// Number of written lines.
    seq: u64,
    /// Edge of the five minutes of the first block.
    edge: Option<Nanos>,
    /// Open spans by their number from the first edge on.
    open: BTreeMap<i64, OpenSpan>,
    /// Number of the span of each CPU's last block.
    latest: BTreeMap<Cpu, i64>,
}

#[derive(Debug, Default)]
struct OpenSpan {
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC at its first block.
    wall_offset: Nanos,
    /// True if a hypervisor took time.
    is_stolen: bool,
    cpus: BTreeMap<Cpu, OpenSums>,
}

#[derive(Debug, Default)]
struct OpenSums {
    rows: RowSums,
    missed: u64,
    min: Option<Nanos>,
    sum: i64,
    /// Largest latencies with their times, the largest first.
    top: Vec<(Nanos, Nanos)>,
}

impl OpenSums {
    fn add(&mut self, block: &Tail) {
        block.rows.iter().for_each(|&(bucket, count)| self.rows.add(row_of_bucket(bucket), count));
        self.missed = self.missed.saturating_add(block.missed);
        self.sum = self.sum.saturating_add(block.sum);
        // The minimum of a block without wake-ups is meaningless.
        if !block.rows.is_empty() {
            self.min = Some(self.min.map_or(block.min, |min| min.min(block.min)));
        }
        self.top.extend(block.worst.iter().map(|&(latency, _, at)| (latency, at)));
        self.top.compact_sort_by_key(|&(latency, at)| (std::cmp::Reverse(latency), at));
        self.top.truncate(1 + TOP);
    }

    fn row(&self, cpu: Cpu) -> WatchRow {
        let hist = self.rows.counts();
        WatchRow {
            cpu: Some(cpu),
            n: hist.total(),
            missed: self.missed,
            early: self.rows.iter().find(|(row, _)| *row == EARLY_ROW).map_or(0, |(_, count)| count),
            min_ns: self.min,
            sum_ns: Nanos(self.sum),
            max_ns: self.top.first().map(|&(latency, _)| latency),
            max_mono_ns: self.top.first().map(|&(_, at)| at),
            top_ns: self.top.iter().skip(1).map(|&(latency, _)| latency).collect(),
            hist,
            ..WatchRow::default()
        }
    }
}

impl FiveMinuteSums {
    /// Sums for a run.
    pub fn of(run: &Run) -> FiveMinuteSums {
        let env = environment_of(&run.host).env;
        let plan = format!("{:016x}", digest(&conditions(run)));
        let of = WatchRun {
            boot: run.boot.clone(),
            recording: run.id.clone(),
            plan,
            interval_ns: run.plan.interval_ns.unwrap_or_default(),
            utc_offset_s: run.utc_offset_s,
            labels: run.labels.clone(),
        };
        let header = HeaderLine {
            schema: ROWS_SCHEMA.to_owned(),
            run: of,
            span_ns: SPAN,
            series: run.command.as_str().into(),
            env: env.clone(),
        };
        FiveMinuteSums { header: Some(header), env, ..FiveMinuteSums::default() }
    }

    /// Adds blocks, those of a CPU in the order of time, and writes the spans that they end.
    pub fn add(&mut self, blocks: &[Block], tails: &[Tail], into: &mut Vec<u8>) -> io::Result<()> {
        for tail in tails {
            let edge = *self.edge.get_or_insert_with(|| begin_of(tail));
            let number = number_of(edge, tail.start);
            let fresh = || OpenSpan { wall_offset: tail.wall_offset, ..OpenSpan::default() };
            let span = self.open.entry(number).or_insert_with(fresh);
            span.cpus.entry(tail.cpu).or_default().add(tail);
            let latest = self.latest.entry(tail.cpu).or_insert(number);
            *latest = number.max(*latest);
        }
        for block in blocks.iter().filter(|block| block.steal_ns.is_some_and(|ns| ns > Nanos(0))) {
            let number = self.edge.map(|edge| number_of(edge, block.mono_ns));
            if let Some(span) = number.and_then(|number| self.open.get_mut(&number)) {
                span.is_stolen = true;
            }
        }
        // A CPU without blocks delays the others' lines by at most five minutes.
        let slowest = self.latest.values().min().copied().unwrap_or(i64::MIN);
        let newest = self.latest.values().max().copied().unwrap_or(i64::MIN);
        let open = self.open.split_off(&slowest.max(newest.saturating_sub(1)));
        let ended = std::mem::replace(&mut self.open, open);
        self.write(ended, into)
    }

    /// Writes the last spans.
    pub fn finish(&mut self, into: &mut Vec<u8>) -> io::Result<()> {
        let ended = std::mem::take(&mut self.open);
        self.write(ended, into)
    }

    fn write(&mut self, ended: BTreeMap<i64, OpenSpan>, into: &mut Vec<u8>) -> io::Result<()> {
        let edge = self.edge.unwrap_or_default().0;
        for (number, span) in ended {
            let mono_ns = Nanos(edge.saturating_add(number.saturating_mul(SPAN.0)));
            let mut rows: Vec<WatchRow> = span.cpus.iter().map(|(cpu, sums)| sums.row(*cpu)).collect();
            while !rows.is_empty() {
                let rest = rows.split_off(fitting(&rows));
                let wall_ns = Nanos(mono_ns.0.saturating_add(span.wall_offset.0));
                let at = LineSpan {
                    seq: self.seq,
                    mono_ns,
                    span_ns: SPAN,
                    time: wall_time(wall_ns),
                    wall_ns,
                    env: self.env.clone(),
                    integrity: span
                        .is_stolen
                        .then(|| IntegrityKind::Steal.name().to_owned())
                        .into_iter()
                        .collect(),
                    ..LineSpan::default()
                };
                if let Some(header) = self.header.take() {
                    put_line(into, &header)?;
                }
                put_line(into, &RowsLine { at, cpus: rows, threads: Vec::new() })?;
                (self.seq, rows) = (self.seq + 1, rest);
            }
        }
        Ok(())
    }
}

/// Number of these that fit in a line: all, except on a machine with hundreds of noisy CPUs.
fn fitting(rows: &[WatchRow]) -> usize {
    let mut bytes = 0;
    let fits = |row: &&WatchRow| {
        bytes += CPU_BYTES + row.hist.bytes().len() * 4 / 3;
        bytes <= MOST_BYTES
    };
    rows.iter().take_while(fits).count().max(1)
}

fn put_line(into: &mut Vec<u8>, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *into, line)?;
    into.push(b'\n');
    Ok(())
}

/// Conditions, besides the machine, on which the latencies of a run depend: histograms are added up
/// only if they are equal.
fn conditions(run: &Run) -> Vec<u8> {
    let plan = Plan {
        cpus: Vec::new(),
        duration_ns: None,
        loops: None,
        limit_ns: None,
        seed: None,
        housekeeping: Vec::new(),
        notes: Vec::new(),
        ..run.plan.clone()
    };
    let loads: BTreeSet<&str> = run.loads.iter().map(|load| load.spec.as_str()).collect();
    // This is only the input of a digest: a value that cannot be written has the digest of nothing.
    serde_json::to_vec(&(&run.command, plan, loads)).unwrap_or_default()
}

fn number_of(edge: Nanos, start: Nanos) -> i64 {
    start.0.saturating_sub(edge.0).div_euclid(SPAN.0)
}

/// Start of the five minutes of UTC in which a block began.
fn begin_of(block: &Tail) -> Nanos {
    let wall = block.start.0.saturating_add(block.wall_offset.0);
    Nanos(block.start.0.saturating_sub(wall.rem_euclid(SPAN.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::histogram::bucket_of;
    use model::rows::row_of;
    use proptest::prelude::*;

    fn block(cpu: u32, second: i64, latencies: &[i64]) -> Tail {
        let start = Nanos(second * Nanos::SECOND.0);
        let mut worst: Vec<(Nanos, u64, Nanos)> =
            (0..).zip(latencies).map(|(at, &one)| (Nanos(one), 0, start + Nanos(at))).collect();
        worst.sort_by_key(|&(latency, _, at)| (std::cmp::Reverse(latency), at));
        worst.truncate(model::run::WORST);
        Tail {
            cpu: Cpu(cpu),
            start,
            // 2 s past an edge if the monotonic clock is at 0.
            wall_offset: SPAN + Nanos(2 * Nanos::SECOND.0),
            rows: latencies.iter().map(|&latency| (bucket_of(Nanos(latency)), 1)).collect(),
            sum: latencies.iter().sum(),
            min: Nanos(latencies.iter().copied().min().unwrap_or_default()),
            missed: 1,
            worst,
            ..Tail::default()
        }
    }

    fn lines(text: &[u8]) -> Vec<RowsLine> {
        text.split(|&byte| byte == b'\n')
            .filter(|line| !line.is_empty())
            .map(|line| serde_json::from_slice(line).unwrap())
            .collect()
    }

    #[test]
    fn a_line_is_of_five_minutes_of_the_wall_clock() {
        let (mut sums, mut text) = (FiveMinuteSums::default(), Vec::new());
        for second in 0..700 {
            sums.add(&[], &[block(0, second, &[7, -1]), block(3, second, &[90])], &mut text).unwrap();
        }
        sums.finish(&mut text).unwrap();
        let found = lines(&text);
        let edges: Vec<i64> = found.iter().map(|line| line.at.mono_ns.0 / Nanos::SECOND.0).collect();
        assert_eq!(edges, [-2, 298, 598]);
        assert_eq!(found.iter().map(|line| line.at.seq).collect::<Vec<_>>(), [0, 1, 2]);
        let walls: Vec<i64> = found.iter().map(|line| line.at.wall_ns.0 / SPAN.0).collect();
        assert_eq!(walls, [1, 2, 3]);
        assert_eq!(found[0].at.time, wall_time(SPAN));
        let counted: Vec<u64> = found.iter().map(|line| line.cpus[0].n).collect();
        assert_eq!(counted, [596, 600, 204]);
        assert!(found.iter().all(|line| line.at.span_ns == SPAN && line.cpus.len() == 2));
        let first = &found[0].cpus[0];
        assert_eq!((first.early, first.missed, first.min_ns), (298, 298, Some(Nanos(-1))));
        assert_eq!((first.sum_ns, first.max_ns), (Nanos(298 * 6), Some(Nanos(7))));
        assert_eq!(
            (first.max_mono_ns, first.top_ns.as_slice()),
            (Some(Nanos(0)), [Nanos(7); TOP].as_slice())
        );
        let wanted = RowCounts::of_rows([(row_of(Nanos(90)), 102)]);
        assert_eq!(
            (found[2].cpus[1].cpu, found[2].cpus[1].n, &found[2].cpus[1].hist),
            (Some(Cpu(3)), 102, &wanted)
        );
        let mut more = Vec::new();
        sums.finish(&mut more).unwrap();
        assert!(more.is_empty());
    }

    #[test]
    fn the_header_says_whose_rows_they_are() {
        let mut run = Run { id: "r".into(), boot: "b".into(), command: "measure".into(), ..Run::default() };
        run.host.release = "6.12-rt".into();
        let text_of = |run: &Run| {
            let (mut sums, mut text) = (FiveMinuteSums::of(run), Vec::new());
            sums.add(&[], &[block(0, 0, &[5])], &mut text).unwrap();
            sums.finish(&mut text).unwrap();
            text
        };
        let header_of = |run: &Run| -> HeaderLine {
            serde_json::from_slice(text_of(run).split(|&byte| byte == b'\n').next().unwrap()).unwrap()
        };
        let header = header_of(&run);
        assert_eq!((header.schema.as_str(), header.series.as_str()), (ROWS_SCHEMA, "measure"));
        assert_eq!((header.run.boot.as_str(), header.run.recording.as_str()), ("b", "r"));
        assert_eq!((header.span_ns, header.env.len()), (SPAN, 16));
        // The planned length does not change a latency.
        run.plan.duration_ns = Some(SPAN);
        assert_eq!(header_of(&run), header);
        run.plan.priority = Some(70);
        assert_ne!(header_of(&run).run.plan, header.run.plan);
        run.host.cmdline = "isolcpus=3".into();
        assert_ne!(header_of(&run).env, header.env);
        let read: Vec<FiveMinuteLine> = text_of(&run)
            .split(|&byte| byte == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect();
        let kinds: Vec<FiveMinuteLineKind> = read.iter().map(FiveMinuteLine::kind).collect();
        assert_eq!(kinds, [FiveMinuteLineKind::Header, FiveMinuteLineKind::Rows]);
        let newer = FiveMinuteLine { schema: "onbeat.rows/2".into(), ..FiveMinuteLine::default() };
        assert_eq!(newer.kind(), FiveMinuteLineKind::Foreign);
    }

    #[test]
    fn a_cpu_that_stands_still_has_a_line_of_its_own_and_stolen_time_is_told() {
        let (mut sums, mut text) = (FiveMinuteSums::default(), Vec::new());
        sums.add(&[], &[block(0, 0, &[5]), block(1, 0, &[5])], &mut text).unwrap();
        let stolen = Block { mono_ns: Nanos::SECOND, steal_ns: Some(Nanos(1)), ..Block::default() };
        let none =
            Block { mono_ns: Nanos(400 * Nanos::SECOND.0), steal_ns: Some(Nanos(0)), ..Block::default() };
        sums.add(&[stolen, none], &[block(0, 400, &[5])], &mut text).unwrap();
        assert!(text.is_empty());
        sums.add(&[], &[block(0, 700, &[5])], &mut text).unwrap();
        sums.add(&[], &[block(1, 2, &[6]), block(1, 800, &[6])], &mut text).unwrap();
        sums.finish(&mut text).unwrap();
        let found: Vec<(i64, usize, u64)> = lines(&text)
            .iter()
            .map(|line| {
                (line.at.mono_ns.0 / Nanos::SECOND.0, line.cpus.len(), line.at.integrity.len() as u64)
            })
            .collect();
        assert_eq!(found, [(-2, 2, 1), (-2, 1, 0), (298, 1, 0), (598, 2, 0)]);
        assert_eq!(lines(&text)[0].at.integrity, ["steal"]);
    }

    #[test]
    fn a_line_of_hundreds_of_noisy_cpus_is_several() {
        let noisy: Vec<i64> = (0..1_500).map(|n| n * n * 40).collect();
        let (mut sums, mut text) = (FiveMinuteSums::default(), Vec::new());
        let blocks: Vec<Tail> = (0..1_024).map(|cpu| block(cpu, 0, &noisy)).collect();
        sums.add(&[], &blocks, &mut text).unwrap();
        sums.finish(&mut text).unwrap();
        assert!(text.split(|&byte| byte == b'\n').all(|line| line.len() <= 1 << 20));
        let found = lines(&text);
        assert!(found.len() > 1 && found.iter().map(|line| line.cpus.len()).sum::<usize>() == 1_024);
        assert!(found.iter().all(|line| line.at.mono_ns == found[0].at.mono_ns));
        let few: Vec<Tail> = (0..256).map(|cpu| block(cpu, 0, &[5, 900, 70_000])).collect();
        let (mut sums, mut text) = (FiveMinuteSums::default(), Vec::new());
        sums.add(&[], &few, &mut text).unwrap();
        sums.finish(&mut text).unwrap();
        assert_eq!(lines(&text).len(), 1);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_counted_twice(
            blocks in proptest::collection::vec(
                (0u32..3, 1i64..400, proptest::collection::vec(-9i64..1 << 40, 0..4)), 0..60,
            ),
            offset in -(1i64 << 60)..1 << 60, at_once in 1usize..9,
        ) {
            let (mut now, mut all) = ([0; 3], Vec::new());
            for (cpu, later, latencies) in blocks {
                now[cpu as usize] += later;
                let wall_offset = Nanos(offset);
                all.push(Tail { wall_offset, ..block(cpu, now[cpu as usize], &latencies) });
            }
            let (mut sums, mut text) = (FiveMinuteSums::default(), Vec::new());
            all.chunks(at_once).for_each(|some| sums.add(&[], some, &mut text).unwrap());
            sums.finish(&mut text).unwrap();
            type Sums = (RowSums, u64, i64, Option<Nanos>);
            let mut found: BTreeMap<(Cpu, i64), Sums> = BTreeMap::new();
            for (at, line) in (0..).zip(lines(&text)) {
                prop_assert_eq!((line.at.mono_ns.0 as i128 + offset as i128).rem_euclid(SPAN.0 as i128), 0);
                prop_assert_eq!(line.at.seq, at);
                for row in &line.cpus {
                    prop_assert_eq!(row.n, row.hist.total());
                    prop_assert!(row.top_ns.is_sorted_by(|a, b| a >= b));
                    let sums = found.entry((row.cpu.unwrap(), line.at.mono_ns.0)).or_default();
                    sums.0.add_all(&row.hist);
                    (sums.1, sums.2) = (sums.1 + row.missed, sums.2 + row.sum_ns.0);
                    sums.3 = sums.3.max(row.max_ns);
                }
            }
            let mut wanted: BTreeMap<(Cpu, i64), Sums> = BTreeMap::new();
            for block in &all {
                let wall = block.start.0 as i128 + offset as i128;
                let begin = block.start.0 as i128 - wall.rem_euclid(SPAN.0 as i128);
                let sums = wanted.entry((block.cpu, begin as i64)).or_default();
                block.rows.iter().for_each(|&(bucket, n)| sums.0.add(row_of_bucket(bucket), n));
                let max = block.worst.first().map(|&(latency, ..)| latency);
                (sums.1, sums.2, sums.3) = (sums.1 + 1, sums.2 + block.sum, sums.3.max(max));
            }
            let counts = |of: &BTreeMap<(Cpu, i64), Sums>| {
                let one = |(key, of): (&(Cpu, i64), &Sums)| (*key, of.0.counts(), of.1, of.2, of.3);
                of.iter().map(one).collect::<Vec<_>>()
            };
            prop_assert_eq!(counts(&found), counts(&wanted));
        }
    }
}
