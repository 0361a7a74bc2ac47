//! Sums of one CPU over its blocks, and their form in a bundle. Pure.

use super::block::{DrainedBlock, LatencySample, WORST_PER_BLOCK};
use super::cost;
use super::cycle::LoopEnd;
use crate::plan::{CpuPlan, MeasurePlan};
use model::histogram::{Counts, EARLY_BUCKET, bucket_of, edge_at_or_above, fill_buckets, mean};
use model::run::{Block, CpuRun, Worst};
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};
use model::wall_time::wall_time;

/// Latency levels of block records, each moved up to the edge of a bucket, where a count is exact.
pub fn levels() -> Vec<Nanos> {
    const WANTED_US: [i64; 12] = [5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 100_000];
    WANTED_US.iter().map(|us| edge_at_or_above(Nanos(us * 1_000))).collect()
}

/// Sums of one CPU's samples.
#[derive(Default)]
pub struct Total {
    /// The CPU; the number of the thread if that is not bound to a CPU.
    pub cpu: Cpu,
    /// Number of a thread that is not bound to a CPU; else 0.
    pub thread: u32,
    /// Type of core, `""` on a machine with one type.
    pub core_type: String,
    /// Period; 0 for threads without a schedule of onbeat.
    pub interval: Nanos,
    /// Time of slot 0.
    pub start: Nanos,
    /// Wake-ups before slot 0, which do not count.
    pub warmup: u64,
    pub cycles: u64,
    /// Number of slots skipped because their time had passed.
    pub missed: u64,
    /// Exact minimum latency.
    pub min: Nanos,
    /// Largest latencies, descending, each with the offset of its wall time.
    pub worst: Vec<(LatencySample, Nanos)>,
    /// Voluntary and involuntary context switches of the thread, once it has ended.
    pub switches: Option<(u64, u64)>,
    /// CPU time of the thread, up to the last block.
    pub used: Nanos,
    /// End of that block.
    pub until: Nanos,
    rows: Counts,
    missed_rows: Counts,
    sum: i128,
}

impl Total {
    pub fn new(cpu: Cpu, interval: Nanos, start: Nanos) -> Total {
        let worst = Vec::with_capacity(2 * WORST_PER_BLOCK);
        Total { cpu, interval, start, until: start, min: Nanos(i64::MAX), worst, ..Total::default() }
    }

    /// The CPU of a bound thread.
    pub fn bound_cpu(&self) -> Option<Cpu> {
        (self.thread == 0).then_some(self.cpu)
    }

    /// End of its loop; a thread that is not bound has no CPU that it could leave.
    pub fn without_moves(&self, end: &LoopEnd) -> LoopEnd {
        LoopEnd { migrations: if self.thread == 0 { end.migrations } else { 0 }, ..*end }
    }

    /// Sums of a planned thread.
    pub fn of_plan(plan: &MeasurePlan, own: &CpuPlan) -> Total {
        Total { thread: own.thread, ..Total::new(own.key(), plan.schedule_of(own), Nanos(0)) }
    }

    /// Adds a block; `wall_offset` is CLOCK_REALTIME minus CLOCK_MONOTONIC at its time.
    ///
    /// A block has as many worst samples as the run, so that those of the run are exact.
    pub fn add_block(&mut self, block: &DrainedBlock, wall_offset: Nanos) {
        block.rows.iter().for_each(|&(row, count)| self.rows.add(row, count));
        block.missed_rows.iter().for_each(|&(row, count)| self.missed_rows.add(row, count));
        self.sum += i128::from(block.sum);
        (self.used, self.until) = (block.used, block.end);
        self.cycles += block.cycles;
        self.missed += block.missed;
        if block.cycles > 0 {
            self.min = self.min.min(block.min);
        }
        self.worst.extend(block.top.iter().map(|&sample| (sample, wall_offset)));
        self.worst.compact_sort_by_key(|(sample, _)| (-sample.latency.0, sample.cycle));
        self.worst.truncate(WORST_PER_BLOCK);
    }

    /// Number of wake-ups at or above a latency, to within its bucket; for 0 all of them, including
    /// early ones.
    pub fn at_or_above(&self, latency: Nanos) -> u64 {
        self.rows.at_or_above(if latency.0 == 0 { Nanos(i64::MIN) } else { latency })
    }

    /// Number of missed slots; unknown without a schedule.
    pub fn slots_missed(&self) -> Option<u64> {
        (self.interval.0 > 0).then_some(self.missed)
    }

    /// Entry of the CPU in `run.json`.
    pub fn document(&self) -> CpuRun {
        let mut cpu = CpuRun::default();
        self.fill(&mut cpu);
        cpu
    }

    /// Fills an entry that is reused: memory freed while samples count may be unmapped.
    pub fn fill(&self, cpu: &mut CpuRun) {
        let any = self.cycles > 0;
        (cpu.cpu, cpu.thread) = (self.bound_cpu(), self.thread);
        cpu.core_type.clone_from(&self.core_type);
        let planned = self.interval.0 > 0;
        (cpu.t0_mono_ns, cpu.interval_ns) = (Some(self.start), planned.then_some(self.interval));
        cpu.cycles = Some(self.cycles);
        cpu.missed = self.slots_missed();
        cpu.scheduled = cpu.missed.map(|missed| self.cycles + missed);
        (cpu.early, cpu.warmup) = (Some(self.rows.get(EARLY_BUCKET)), Some(self.warmup));
        cpu.min_ns = any.then_some(self.min);
        cpu.mean_ns = any.then(|| mean(self.sum, self.cycles));
        cpu.max_ns = self.worst.first().map(|(sample, _)| sample.latency);
        cpu.sum_ns = i64::try_from(self.sum).ok();
        fill_buckets(&mut cpu.histogram, &[&self.rows], self.min);
        if planned {
            let deadline = cpu.deadline_histogram.get_or_insert_default();
            fill_buckets(deadline, &[&self.rows, &self.missed_rows], self.min);
        }
        cpu.worst.clear();
        cpu.worst.extend(self.worst.iter().map(|(sample, offset)| worst(sample, *offset, planned)));
        // The CPU clock of another process's thread is not read.
        cpu.cpu_share = if self.used.0 > 0 { cost::share(self.used, self.until - self.start) } else { None };
        cpu.voluntary_switches = self.switches.map(|s| s.0);
        cpu.involuntary_switches = self.switches.map(|s| s.1);
        cpu.fill_quantiles();
    }
}

fn worst(sample: &LatencySample, wall_offset: Nanos, planned: bool) -> Worst {
    Worst {
        latency_ns: Some(sample.latency),
        cycle: planned.then_some(sample.cycle),
        mono_ns: Some(sample.time),
        time: wall_time(sample.time + wall_offset),
    }
}

/// Line of `blocks.jsonl` for a block.
pub fn block_line(cpu: Cpu, block: &DrainedBlock, levels: &[Nanos]) -> Block {
    Block {
        cpu,
        mono_ns: block.start,
        span_ns: Some(block.end - block.start),
        n: block.cycles,
        max_ns: block.top.first().map(|sample| sample.latency),
        max_mono_ns: block.top.first().map(|sample| sample.time),
        top_ns: block.top.iter().skip(1).map(|sample| sample.latency).collect(),
        over: count_over(&block.rows, levels),
        missed: Some(block.missed),
        ..Block::default()
    }
}

/// Number of samples at or above each level; exact, because each is the edge of a bucket.
fn count_over(rows: &[(usize, u64)], levels: &[Nanos]) -> Vec<(Nanos, u64)> {
    let mut over: Vec<(Nanos, u64)> = levels.iter().map(|&level| (level, 0)).collect();
    let (mut left, mut sum) = (rows.len(), 0);
    for level in over.iter_mut().rev() {
        let first = bucket_of(level.0);
        while left > 0 && rows[left - 1].0 >= first {
            left -= 1;
            sum += rows[left].1;
        }
        level.1 = sum;
    }
    over
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::histogram::{Bucket, total_of};

    fn taken(latencies: &[i64], missed: &[i64]) -> DrainedBlock {
        let buffers = super::super::block::CpuBuffers::new(0);
        buffers.begin(Nanos(0));
        for (cycle, &ns) in latencies.iter().enumerate() {
            buffers.current().count(Nanos(ns));
            buffers.current().keep(LatencySample {
                latency: Nanos(ns),
                cycle: cycle as u64,
                time: Nanos(ns),
            });
        }
        missed.iter().for_each(|&ns| buffers.current().count_missed(Nanos(ns), Nanos(1_000_000), 1));
        let mut taken = DrainedBlock::default();
        buffers.take_last(Nanos(1_000_000_000), &mut taken);
        taken
    }

    #[test]
    fn two_blocks_add_up() {
        let mut total = Total::new(Cpu(3), Nanos(1_000), Nanos(0));
        total.add_block(&taken(&[-5, 10, 2_000], &[1_000]), Nanos(0));
        total.add_block(&taken(&[-7, 90_000], &[50, 60]), Nanos(0));
        let cpu = total.document();
        assert_eq!((cpu.cycles, cpu.missed, cpu.scheduled, cpu.early), (Some(5), Some(3), Some(8), Some(2)));
        assert_eq!((cpu.min_ns, cpu.max_ns), (Some(Nanos(-7)), Some(Nanos(90_000))));
        assert_eq!(cpu.mean_ns, Some(Nanos(18_400)));
        assert_eq!(cpu.histogram[0], Bucket::new(Nanos(-7), Nanos(0), 2));
        assert_eq!(total_of(&cpu.histogram), 5);
        assert_eq!(total_of(cpu.deadline_histogram.as_ref().expect("measured")), 8);
        assert_eq!(cpu.worst[0].latency_ns, Some(Nanos(90_000)));
        let run = model::run::Run { cpus: vec![cpu], ..Default::default() };
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn no_samples_give_nulls_and_sums_of_zero() {
        let cpu = Total::new(Cpu(0), Nanos(1), Nanos(0)).document();
        assert_eq!((cpu.min_ns, cpu.mean_ns, cpu.max_ns, cpu.p50_ns), (None, None, None, None));
        assert_eq!((cpu.cycles, cpu.scheduled), (Some(0), Some(0)));
    }

    #[test]
    fn without_a_schedule_nothing_is_missed_and_no_slot_has_a_number() {
        let mut total = Total::new(Cpu(0), Nanos(0), Nanos(0));
        total.add_block(&taken(&[10, 20], &[]), Nanos(0));
        let cpu = total.document();
        assert_eq!((cpu.cycles, cpu.missed, cpu.scheduled, cpu.interval_ns), (Some(2), None, None, None));
        assert_eq!((cpu.deadline_histogram, cpu.worst[0].cycle), (None, None));
    }

    #[test]
    fn levels_count_exactly() {
        let line = block_line(Cpu(0), &taken(&[100, 5_120, 60_000, 3_000_000], &[]), &levels());
        let counts: Vec<u64> = line.over.iter().map(|level| level.1).collect();
        assert_eq!(counts, [3, 2, 2, 2, 1, 1, 1, 1, 1, 0, 0, 0]);
        assert!(line.over.iter().all(|level| level.0.0 % 64 == 0));
    }
}
