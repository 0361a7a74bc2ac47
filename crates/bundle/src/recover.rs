//! Adds the blocks of a killed run's `tail` to its last checkpoint, up to its last second with all
//! sums correct. Pure.

use super::tail::Tail;
use model::histogram::{BUCKETS, Bucket, EARLY_BUCKET, bucket_edges, merge};
use model::run::{CpuRun, Run, WORST, Worst};
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};
use model::wall_time::wall_time;

/// Outcome of a record of the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Added: it begins at the end of the known time of its CPU.
    Added,
    /// Added, with missing time before it.
    AfterGap,
    /// Added, though it begins before the end of the known time: it ends later, so the checkpoint,
    /// which holds whole blocks, cannot contain it.
    Overlapping,
    /// Not added: the checkpoint was written without emptying the tail, and contains it.
    Contained,
    /// Not added: it contradicts itself or the run.
    Damaged,
}

/// Number of records with each fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    gaps: u64,
    overlaps: u64,
    damaged: u64,
}

impl Replayed {
    fn count(&mut self, fate: Fate) {
        match fate {
            Fate::Added | Fate::Contained => {}
            Fate::AfterGap => self.gaps += 1,
            Fate::Overlapping => self.overlaps += 1,
            Fate::Damaged => self.damaged += 1,
        }
    }

    /// Remarks on it, as text.
    pub fn remarks(self) -> impl Iterator<Item = String> {
        let Replayed { gaps, overlaps, damaged } = self;
        let gaps = (gaps > 0).then(|| {
            format!("records are missing before {gaps} of those at its end: a disk was full, or the run continued during the copy")
        });
        let overlaps = (overlaps > 0).then(|| {
            format!("{overlaps} records at its end begin before the previous record ends: all of their wake-ups are counted")
        });
        let damaged = (damaged > 0).then(|| format!("{damaged} records at its end could not be read"));
        [gaps, overlaps, damaged].into_iter().flatten()
    }
}

/// Adds the records of a tail to the run.
pub fn replay(run: &mut Run, mut bytes: &[u8]) -> Replayed {
    let mut found = Replayed::default();
    while let Some(tail) = Tail::decode(&mut bytes) {
        found.count(absorb(run, &tail));
    }
    found.damaged += u64::from(!bytes.is_empty());
    found
}

/// Adds a block of the tail to the run.
fn absorb(run: &mut Run, tail: &Tail) -> Fate {
    let follows = run.follows();
    if follows && run.cpus.iter().all(|cpu| cpu.cpu != Some(tail.cpu)) {
        // A hunt of other programs' threads learns its CPUs during the run.
        run.cpus.push(CpuRun::without_schedule(tail.cpu));
        run.cpus.compact_sort_by_key(|cpu| cpu.cpu);
        run.plan.cpus = run.cpus.iter().filter_map(|cpu| cpu.cpu).collect();
    }
    // A thread that is not bound to a CPU has its number in place of that.
    let own = |cpu: &&mut CpuRun| cpu.cpu.unwrap_or(Cpu(cpu.thread)) == tail.cpu;
    let Some(cpu) = run.cpus.iter_mut().find(own) else { return Fate::Damaged };
    let fate = match cpu.until_mono_ns {
        Some(until) if tail.end <= until => return Fate::Contained,
        Some(until) if tail.start > until => Fate::AfterGap,
        Some(until) if tail.start < until => Fate::Overlapping,
        _ => Fate::Added,
    };
    let before = cpu.clone();
    let spins = run.plan.spins();
    if add(cpu, tail).is_none() || cpu.check().is_err() {
        *cpu = before;
        return Fate::Damaged;
    }
    if spins {
        cpu.fill_lost();
    }
    let start = run.cpus.iter().filter_map(|cpu| cpu.t0_mono_ns).max();
    let end = run.cpus.iter().filter_map(|cpu| cpu.until_mono_ns).max();
    if let (Some(start), Some(end)) = (start, end) {
        run.elapsed_ns = end.0.checked_sub(start.0).map(Nanos);
        run.checkpoint_mono_ns = Some(end);
    }
    fate
}

/// Adds the sums of a block to those of its CPU; `None` if a number is out of its range.
fn add(cpu: &mut CpuRun, tail: &Tail) -> Option<()> {
    let scheduled = cpu.scheduled.is_some();
    let count = |rows: &[Bucket]| rows.iter().try_fold(0u64, |sum, bucket| sum.checked_add(bucket.count));
    let (rows, missed_rows) = (buckets_of(&tail.rows, tail.min)?, buckets_of(&tail.missed_rows, tail.min)?);
    let cycles = count(&rows)?;
    if tail.end < tail.start || count(&missed_rows)? != tail.missed {
        return None;
    }
    let early = rows.iter().filter(|bucket| bucket.upper.0 <= 0).map(|bucket| bucket.count).sum::<u64>();
    let all = cpu.cycles?.checked_add(cycles)?;
    cpu.cycles = Some(all);
    // Without a schedule the missed slots stay unknown.
    if let Some(missed) = cpu.missed {
        cpu.missed = Some(missed.checked_add(tail.missed)?);
        cpu.scheduled = Some(all.checked_add(cpu.missed?)?);
    }
    cpu.early = Some(cpu.early?.checked_add(early)?);
    cpu.sum_ns = Some(cpu.sum_ns?.checked_add(tail.sum)?);
    cpu.mean_ns = (all > 0).then(|| model::histogram::mean(i128::from(cpu.sum_ns.unwrap_or(0)), all));
    cpu.min_ns = cpu.min_ns.into_iter().chain((cycles > 0).then_some(tail.min)).min();
    cpu.worst.extend(tail.worst.iter().map(|&(latency, cycle, time)| Worst {
        latency_ns: Some(latency),
        cycle: scheduled.then_some(cycle),
        mono_ns: Some(time),
        time: wall_time(Nanos(time.0.saturating_add(tail.wall_offset.0))),
    }));
    cpu.worst.compact_sort_by_key(|worst| std::cmp::Reverse(worst.latency_ns));
    cpu.worst.truncate(WORST);
    cpu.max_ns = cpu.worst.first().and_then(|worst| worst.latency_ns);
    if let Some(deadline) = &cpu.deadline_histogram {
        cpu.deadline_histogram = Some(merge(deadline, &merge(&rows, &missed_rows)?)?);
    }
    cpu.histogram = merge(&cpu.histogram, &rows)?;
    // The first checkpoint is older than the start; the first block begins with it.
    cpu.t0_mono_ns = cpu.t0_mono_ns.or(Some(tail.start));
    cpu.until_mono_ns = Some(tail.end);
    cpu.fill_quantiles();

    Some(())
}

/// Buckets from their numbers; `None` if a number has no bucket.
fn buckets_of(pairs: &[(usize, u64)], min: Nanos) -> Option<Vec<Bucket>> {
    let bucket = |&(index, count): &(usize, u64)| {
        let (lower, upper) = bucket_edges(Some(index).filter(|&index| index < BUCKETS)?);
        let lower = if index == EARLY_BUCKET { min } else { lower };
        Some(Bucket { lower, upper, count })
    };
    pairs.iter().map(bucket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::run::SCHEMA;

    fn run() -> Run {
        let rows = vec![Bucket::new(Nanos(10), Nanos(11), 3)];
        let cpu = CpuRun {
            t0_mono_ns: Some(Nanos(0)),
            until_mono_ns: Some(Nanos(1_000)),
            cpu: Some(Cpu(0)),
            cycles: Some(3),
            missed: Some(0),
            scheduled: Some(3),
            early: Some(0),
            sum_ns: Some(30),
            min_ns: Some(Nanos(10)),
            deadline_histogram: Some(rows.clone()),
            histogram: rows,
            ..CpuRun::default()
        };
        Run { schema: SCHEMA.into(), cpus: vec![cpu], elapsed_ns: Some(Nanos(1_000)), ..Run::default() }
    }

    fn tail(start: i64) -> Tail {
        Tail {
            cpu: Cpu(0),
            start: Nanos(start),
            end: Nanos(start + 1_000),
            wall_offset: Nanos(0),
            sum: 80,
            min: Nanos(-20),
            missed: 1,
            rows: vec![(0, 1), (101, 1)],
            missed_rows: vec![(51, 1)],
            worst: vec![(Nanos(100), 4, Nanos(start + 7))],
        }
    }

    #[test]
    fn a_tail_brings_the_run_to_its_last_second() {
        let mut run = run();
        assert_eq!(absorb(&mut run, &tail(1_000)), Fate::Added);
        let cpu = &run.cpus[0];
        assert_eq!((cpu.cycles, cpu.scheduled, cpu.early), (Some(5), Some(6), Some(1)));
        assert_eq!(
            (cpu.min_ns, cpu.mean_ns, cpu.max_ns),
            (Some(Nanos(-20)), Some(Nanos(22)), Some(Nanos(100)))
        );
        assert_eq!((cpu.worst[0].cycle, run.elapsed_ns), (Some(4), Some(Nanos(2_000))));
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn what_the_checkpoint_contains_is_not_added_again() {
        let mut run = run();
        assert_eq!(absorb(&mut run, &tail(0)), Fate::Contained);
        assert_eq!(run.cpus[0].cycles, Some(3));
    }

    #[test]
    fn tails_that_touch_overlap_or_leave_gaps_are_all_counted() {
        let mut run = run();
        let mut bytes = Vec::new();
        for start in [0, 1_000, 2_000, 2_900, 4_500, 5_500] {
            tail(start).encode(&mut bytes);
        }
        bytes.extend([1, 2, 3]);
        let found = replay(&mut run, &bytes);
        assert_eq!(found, Replayed { gaps: 1, overlaps: 1, damaged: 1 });
        assert_eq!((run.cpus[0].cycles, run.elapsed_ns), (Some(3 + 2 * 5), Some(Nanos(6_500))));
        assert_eq!((found.remarks().count(), Replayed::default().remarks().count()), (3, 0));
    }

    #[test]
    fn a_followed_thread_s_cpus_come_as_they_are_found_and_know_no_slots() {
        let mut run = Run { command: "hunt".into(), cpus: Vec::new(), ..run() };
        let of = |cpu, start| Tail { cpu: Cpu(cpu), missed: 0, missed_rows: Vec::new(), ..tail(start) };
        for (cpu, start) in [(3, 0), (3, 1_000), (1, 0), (1, 1_000)] {
            assert_eq!(absorb(&mut run, &of(cpu, start)), Fate::Added);
        }
        assert_eq!((&run.plan.cpus[..], run.elapsed_ns), (&[Cpu(1), Cpu(3)][..], Some(Nanos(2_000))));
        for cpu in &run.cpus {
            assert_eq!((cpu.cycles, cpu.missed, cpu.scheduled), (Some(4), None, None));
            assert_eq!((&cpu.deadline_histogram, cpu.worst[0].cycle), (&None, None));
        }
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn a_run_killed_before_its_first_checkpoint_begins_with_its_first_block() {
        let mut run = run();
        let cpu = &mut run.cpus[0];
        *cpu = CpuRun {
            cpu: Some(Cpu(0)),
            cycles: Some(0),
            missed: Some(0),
            scheduled: Some(0),
            early: Some(0),
            sum_ns: Some(0),
            deadline_histogram: Some(Vec::new()),
            ..CpuRun::default()
        };
        assert_eq!(absorb(&mut run, &tail(5_000)), Fate::Added);
        assert_eq!((run.cpus[0].t0_mono_ns, run.elapsed_ns), (Some(Nanos(5_000)), Some(Nanos(1_000))));
        assert_eq!(run.check(), Ok(()));
    }

    #[test]
    fn a_damaged_tail_leaves_the_run_as_it_was() {
        let mut run = run();
        let damaged = [
            Tail { missed: 7, ..tail(1_000) },
            Tail { rows: vec![(9_999, 1), (101, 1)], ..tail(1_000) },
            Tail { cpu: Cpu(9), ..tail(1_000) },
            Tail { sum: i64::MAX, ..tail(1_000) },
            Tail { start: Nanos(9_000), ..tail(1_000) },
        ];
        for tail in damaged {
            assert_eq!(absorb(&mut run, &tail), Fate::Damaged);
        }
        assert_eq!(run.cpus[0].cycles, Some(3));
        assert_eq!(run.check(), Ok(()));
    }
}
