//! Result of a thread in any of the formats, and the run of all threads.

use std::collections::BTreeMap;

use model::histogram::{self, Bucket, total_of};
use model::keyword::Word;
use model::run::{CpuRun, Integrity, Run, SCHEMA, Worst};
use model::sort::CompactSort;
use model::units::{Cpu, Nanos};
use model::vocabulary::{Command, Expiry, IntegrityKind, Preempt, Quantity};

/// Mean that is too large to be valid.
pub(super) const TOO_LARGE: Nanos = Nanos(i64::MAX);

/// Initial value of cyclictest's minimum: it stays if no sample was below.
const MIN_START: i128 = 1_000_000;

/// Result of one thread in the unit of the file.
#[derive(Clone, Debug, Default)]
pub(super) struct ImportedThread {
    /// CPU it ran on, if the file states it.
    pub cpu: Option<Cpu>,
    /// Number of the thread in the file, if that skips some.
    pub number: Option<u32>,
    pub measures: Word<Quantity>,
    /// Ascending buckets that are not empty.
    pub buckets: Vec<(u64, u64)>,
    /// Width of a bucket; 0 is 1.
    pub width: u64,
    /// True if the file has no histogram: only the count and the extremes of its samples are known.
    pub summary_only: bool,
    /// Number of samples, if the file states it without a histogram.
    pub cycles: Option<u64>,
    /// Samples beyond the last bucket.
    pub overflows: u64,
    /// First bucket that the histogram did not have; `None` if the file does not state their
    /// number.
    pub end: Option<u64>,
    /// Numbers of the first samples beyond it, counted from 0 over the wake-ups.
    pub overflow_cycles: Vec<u64>,
    /// Least latency as printed.
    pub min: Option<i128>,
    /// Largest latency as printed.
    pub max: Option<i128>,
    /// Earliest wake-up, if the tool printed it as the largest latency.
    pub early_max: Option<i128>,
    /// Number of wake-ups before their time, and the earliest, if the file states them.
    pub early: Option<(u64, i128)>,
    pub mean_ns: Option<Nanos>,
    pub interval: Option<Nanos>,
    /// Largest samples for which the file states more than the value.
    pub worst: Vec<Worst>,
}

/// Precision of the rows' values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowEdges {
    /// Each sample is in the row of its value.
    Exact,
    /// A value may be up to 5 % from its row, as in a histogram made from wider rows.
    Rounded,
}

impl ImportedThread {
    /// Contradiction of a largest latency that neither a row nor a sample beyond the rows holds.
    pub(super) fn largest_fault(&self, unit: Nanos) -> Option<String> {
        let max = self.max.filter(|&max| max > 0 && wrapped(max, unit).is_none())?;
        let last = self.buckets.last().map_or(-1, |bucket| i128::from(bucket.0));
        if self.summary_only || self.overflows > 0 || last >= max || self.early_max.is_some() {
            return None;
        }
        Some(format!(
            "the maximum, {max}, is beyond the rows, and no sample overflowed: give the output as it was"
        ))
    }

    /// Contradiction of rows that lack samples: the stated least latency, largest latency (with
    /// samples beyond the end) or mean differs from that of the rows.
    pub(super) fn rows_fault(&self, unit: Nanos, rows: RowEdges) -> Option<String> {
        let first = self.buckets.first()?;
        let (min, max) = self.min.zip(self.max).filter(|_| self.early.is_none())?;
        let fault = |what: String| Some(format!("{what}: give the output as it was"));
        // onbeat writes 0 for an unknown minimum, next to `# Total:`.
        let is_stated = rows == RowEdges::Exact || min != 0;
        if is_stated && (0..i128::from(first.0)).contains(&min) {
            return fault(format!("the minimum, {min}, is below the rows"));
        }
        if self.overflows > 0 && max < self.first_beyond() {
            let beyond = self.overflows;
            return fault(format!("{beyond} more than the rows hold, and the maximum, {max}, is in a row"));
        }
        let held = self.buckets.iter().map(|bucket| i128::from(bucket.1)).sum::<i128>();
        let count = held + i128::from(self.overflows);
        if let Some(&number) = self.overflow_cycles.iter().find(|&&number| i128::from(number) >= count) {
            return fault(format!("wake-up {number} was beyond the end, and the rows hold {count} in all"));
        }
        self.mean_fault(unit, rows)
    }

    /// Least value beyond the rows.
    fn first_beyond(&self) -> i128 {
        let last = self.buckets.last().map_or(0, |bucket| bucket.0.saturating_add(1));
        i128::from(self.end.unwrap_or(0).max(last))
    }

    /// Contradiction of a mean that the rows cannot have.
    ///
    /// A row of cyclictest holds one value, so that the mean of a whole histogram is exact; a wider
    /// one holds values up to its upper edge.
    pub(super) fn mean_fault(&self, unit: Nanos, rows: RowEdges) -> Option<String> {
        let max = self.max.filter(|_| self.early.is_none())?;
        let mean = self.mean_ns.filter(|mean| *mean != TOO_LARGE && !self.buckets.is_empty())?;
        let held = |(sum, count): (i128, i128), bucket: &(u64, u64)| {
            let more = i128::from(bucket.0).checked_mul(bucket.1.into())?.checked_add(sum)?;
            Some((more, count + i128::from(bucket.1)))
        };
        let (sum, count) = self.buckets.iter().try_fold((0, 0), held)?;
        let beyond = i128::from(self.overflows);
        let least = sum.checked_add(beyond.checked_mul(self.first_beyond())?)?;
        let least = least.checked_mul(unit.0.into())?;
        let within = count.checked_mul(i128::from(self.width.max(1)) - 1)?;
        let most = sum.checked_add(within)?.checked_add(beyond.checked_mul(max)?)?;
        let most = most.checked_mul(unit.0.into())?;
        let (mean, count) = (i128::from(mean.0), count + beyond);
        let (least, most) = match rows {
            RowEdges::Exact => (least, most),
            // Early wake-ups are in the first row, without their size.
            RowEdges::Rounded if mean < 0 || self.buckets.first().is_some_and(|row| row.0 == 0) => {
                return None;
            }
            RowEdges::Rounded => (least - least / 20, most + most / 20),
        };
        // Printed with two decimals, or without any, and then cut off or rounded.
        let rounding = i128::from((unit.0 / 100).max(1));
        let step = if mean % i128::from(unit.0) == 0 { i128::from(unit.0) } else { rounding };
        let is_possible =
            (mean + step).checked_mul(count)? >= least && (mean - step).checked_mul(count)? <= most;
        let value = mean / i128::from(unit.0);
        (!is_possible)
            .then(|| format!("the mean, {value}, does not match the rows: give the output as it was"))
    }

    /// The thread with the extremes that cyclictest's unsigned arithmetic hides.
    pub(super) fn of_cyclictest(mut self, unit: Nanos) -> ImportedThread {
        self.early_max = self.max.and_then(|max| wrapped(max, unit));
        self.max = self.max.filter(|_| self.early_max.is_none());
        self.min = self.min.filter(|&min| min != MIN_START);
        self
    }
}

/// An imported run without its CPUs: the fields that are the same for every file.
pub(super) fn empty_run(tool: &str) -> Run {
    let mut run = Run {
        schema: SCHEMA.into(),
        command: Command::Import.into(),
        complete: true,
        version: env!("CARGO_PKG_VERSION").into(),
        ..Run::default()
    };
    run.plan.tool = tool.into();
    run.plan.expiry = Expiry::Unknown.into();
    run.host.preempt = Preempt::Unknown.into();
    run
}

/// Preemption model that a kernel's build line names, as `uname -v`. PREEMPT_DYNAMIC names none.
pub(super) fn preempt_of(build: &str) -> Word<Preempt> {
    let is_rt = ["PREEMPT_RT", "PREEMPT RT"].iter().any(|word| build.contains(word));
    if is_rt { Preempt::Rt.into() } else { Preempt::Unknown.into() }
}

/// Adds the threads to the run, ordered by CPU, thread and quantity; a unit is 1000 ns or 1 ns.
///
/// Threads without a CPU in the file, or with the same one, are numbered in the order of the file.
pub(super) fn fill(run: &mut Run, threads: Vec<ImportedThread>, unit: Nanos) -> Result<(), String> {
    let mut numbers: BTreeMap<(Option<Cpu>, String), u32> = BTreeMap::new();
    for (index, thread) in threads.into_iter().enumerate() {
        let measures =
            if thread.measures.is_empty() { Quantity::default().into() } else { thread.measures.clone() };
        let next = numbers.entry((thread.cpu, measures.as_str().to_owned())).or_default();
        let number = thread.number.filter(|_| thread.cpu.is_none()).unwrap_or(*next);
        *next = number.saturating_add(1);
        let early = thread.early_max;
        let unknown = thread.overflows.saturating_sub(1);
        let mut cpu = cpu_run(thread, unit).map_err(|what| format!("thread {index}: {what}"))?;
        (cpu.thread, cpu.measures) = (number, measures);
        if let Some(early) = early {
            let others = if unknown == 0 {
                String::new()
            } else {
                format!(
                    "; for {unknown} more beyond the histogram it is not known whether they are early or \
                     late"
                )
            };
            run.integrity.push(Integrity {
                kind: IntegrityKind::Early.into(),
                cpu: cpu.cpu,
                detail: format!(
                    "{}: a wake-up was {} early, which the tool printed as its maximum{others}",
                    cpu.name(),
                    Nanos(i64::try_from(-early).unwrap_or(i64::MAX).saturating_mul(unit.0)),
                ),
                invalidates: false,
            });
        }
        run.cpus.push(cpu);
    }
    run.cpus.compact_sort_by(|a, b| a.key().cmp(&b.key()));
    let mut cpus: Vec<Cpu> = run.cpus.iter().filter_map(|cpu| cpu.cpu).collect();
    cpus.dedup();
    run.plan.cpus = cpus;
    Ok(())
}

/// Signed value of a latency that was printed without its sign: an early wake-up becomes a number
/// near 2^64, or a negative one; on a machine of 32 bits near 2^32, which as a latency in us would
/// be over half an hour.
fn wrapped(max: i128, unit: Nanos) -> Option<i128> {
    const WORD: i128 = 1 << 32;
    match max {
        ..0 => Some(max),
        _ if unit == Nanos::MICRO && (WORD / 2..WORD).contains(&max) => Some(max - WORD),
        _ if max > i128::from(i64::MAX) => Some(max - (1i128 << 64)).filter(|early| *early < 0),
        _ => None,
    }
}

fn cpu_run(thread: ImportedThread, unit: Nanos) -> Result<CpuRun, String> {
    let in_ns = |value: Option<i128>| match value {
        None => Ok(None),
        Some(n) => match n.checked_mul(unit.0.into()).and_then(|ns| i64::try_from(ns).ok()) {
            None => Err("a latency of more than 292 years".to_owned()),
            ns => Ok(ns.map(Nanos)),
        },
    };
    let mut histogram = buckets_of(&thread, unit)?;
    let (mut overflows, mut early) = (thread.overflows, thread.early);
    let wrap = thread.early_max;
    // The early wake-up that the maximum shows is one of the samples beyond the end.
    if let (Some(least), 1..) = (wrap, overflows) {
        (overflows, early) = (overflows - 1, Some((1, least)));
    }
    if let (Some((count @ 1.., _)), Some(lower)) = (early, in_ns(early.map(|early| early.1))?) {
        histogram.insert(0, Bucket { lower, upper: Nanos(0), count });
    }
    let counted = total_of(&histogram).checked_add(overflows).ok_or("more than 2^64 samples")?;
    let cycles = if thread.summary_only { thread.cycles } else { Some(counted) };
    let (min, max) = if cycles == Some(0) { (None, None) } else { extremes(&thread, unit)? };
    let interval = thread.interval.map_or(1, |interval| i128::from(interval.0));
    if cycles.is_some_and(|cycles| i128::from(cycles) * interval > i128::from(i64::MAX)) {
        return Err("more samples than 292 years have".to_owned());
    }
    // Without another one beyond the end the largest of the others is in the last bucket.
    let others = thread.buckets.last().filter(|_| wrap.is_some() && overflows == 0);
    let of_the_others = others.map(|bucket| i128::from(bucket.0) + i128::from(thread.width.max(1)) - 1);
    let cut = overflows > 0 && !thread.summary_only;
    // If the file omitted empty buckets, the last one with a sample is the only known part of the
    // end.
    let last = thread.buckets.last().and_then(|bucket| bucket.0.checked_add(thread.width.max(1)));
    let end = thread.end.max(last).filter(|_| cut).and_then(|end| i64::try_from(end).ok());
    let from = end.and_then(|end| end.checked_mul(unit.0)).map(Nanos);
    let mut run = CpuRun {
        cpu: thread.cpu,
        interval_ns: thread.interval,
        cycles,
        early: early.map(|early| early.0),
        min_ns: if early.is_some() { histogram.first().map(|row| row.lower) } else { in_ns(min)? },
        // An early wake-up spoils the average together with the maximum.
        mean_ns: thread.mean_ns.filter(|_| cycles != Some(0) && wrap.is_none()),
        max_ns: in_ns(max.or(of_the_others))?,
        overflows: Some(overflows).filter(|_| cut),
        // With an early wake-up none of the others is known to be late.
        overflows_from_ns: if wrap.is_some() && cut { Some(Nanos(i64::MIN)) } else { from },
        // If the only one beyond the end was early, none of those listed is late.
        overflow_cycles: if overflows > 0 { thread.overflow_cycles } else { Vec::new() },
        worst: thread.worst,
        ..CpuRun::default()
    };
    fill_quantiles(&mut run, &histogram, overflows);
    run.histogram = histogram;
    Ok(run)
}

/// A quantile whose rank lies among the overflows has no value.
fn fill_quantiles(run: &mut CpuRun, histogram: &[Bucket], overflows: u64) {
    let beyond = histogram.last().map_or(Nanos(0), |bucket| bucket.upper);
    if beyond == Nanos(i64::MAX) {
        return;
    }
    let mut buckets = histogram.to_vec();
    if overflows > 0 {
        buckets.push(Bucket { lower: beyond, upper: Nanos(i64::MAX), count: overflows });
    }
    let max = run.max_ns.unwrap_or(Nanos(i64::MAX));
    let of = |per_million| histogram::quantile(&buckets, None, per_million);
    let at = |per_million| of(per_million).filter(|&edge| edge < Nanos(i64::MAX)).map(|edge| edge.min(max));
    (run.p50_ns, run.p90_ns, run.p99_ns) = (at(500_000), at(900_000), at(990_000));
    (run.p999_ns, run.p9999_ns) = (at(999_000), at(999_900));
}

fn buckets_of(thread: &ImportedThread, unit: Nanos) -> Result<Vec<Bucket>, String> {
    let mut total = 0u64;
    let mut buckets = Vec::with_capacity(thread.buckets.len() + 1);
    for &(bucket, count) in &thread.buckets {
        let edge = |n: u64| i64::try_from(n).ok()?.checked_mul(unit.0).map(Nanos);
        let edges = edge(bucket).zip(bucket.checked_add(thread.width.max(1)).and_then(edge));
        let (lower, upper) = edges.ok_or_else(|| format!("bucket {bucket} is beyond 292 years"))?;
        total = total.checked_add(count).ok_or("more than 2^64 samples")?;
        buckets.push(Bucket { lower, upper, count });
    }
    Ok(buckets)
}

/// Least and largest latency if they are valid; an error if the histogram contradicts them.
fn extremes(thread: &ImportedThread, unit: Nanos) -> Result<(Option<i128>, Option<i128>), String> {
    let (min, max) = (thread.min, thread.max);
    let first =
        thread.buckets.first().map(|bucket| i128::from(bucket.0) + i128::from(thread.width.max(1)) - 1);
    let last = thread.buckets.last().map(|bucket| i128::from(bucket.0));
    if let Some((min, first)) = min.zip(first).filter(|(min, first)| first < min) {
        return Err(format!("bucket {first} holds samples below the minimum, {min}"));
    }
    if let Some((max, last)) = max.zip(last).filter(|(max, last)| last > max) {
        return Err(format!("bucket {last} holds samples above the maximum, {max}"));
    }
    if let Some((min, max)) = min.zip(max).filter(|(min, max)| min > max) {
        return Err(format!("the minimum, {min}, is above the maximum, {max}"));
    }
    // An early wake-up spoils the average.
    let Some(mean) = thread.mean_ns.filter(|_| thread.early_max.is_none()) else { return Ok((min, max)) };
    if mean == TOO_LARGE {
        return Err("a mean of more than a hundred days".to_owned());
    }
    // Printed values are rounded to the unit, and some tools use a row's upper edge as its values.
    let edge = |value: i128| value.saturating_mul(unit.0.into());
    let value = mean.0 / unit.0.max(1);
    if let Some(max) = max.filter(|&max| i128::from(mean.0) > edge(max + i128::from(thread.width.max(1)))) {
        return Err(format!("the mean, {value}, is above the maximum, {max}"));
    }
    if let Some(min) = min.filter(|&min| i128::from(mean.0) < edge(min - 1)) {
        return Err(format!("the mean, {value}, is below the minimum, {min}"));
    }
    Ok((min, max))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_of(thread: ImportedThread, unit: Nanos) -> Result<Run, String> {
        let mut run = empty_run("cyclictest");
        fill(&mut run, vec![thread], unit)?;
        run.check()?;
        Ok(run)
    }

    #[test]
    fn quantiles_among_the_overflows_are_null() {
        let buckets = vec![(10, 98), (12, 1)];
        let thread =
            ImportedThread { buckets, overflows: 1, overflow_cycles: vec![7], ..ImportedThread::default() };
        let cpu = &run_of(thread, Nanos::MICRO).unwrap().cpus[0];
        assert_eq!((cpu.cycles, cpu.overflows), (Some(100), Some(1)));
        assert_eq!((cpu.p50_ns, cpu.p99_ns, cpu.p999_ns), (Some(Nanos(11_000)), Some(Nanos(13_000)), None));
        assert_eq!((&cpu.overflow_cycles[..], cpu.worst.len()), (&[7][..], 0), "the first are not the worst");
        assert_eq!(cpu.overflows_from_ns, Some(Nanos(13_000)));
    }

    #[test]
    fn cyclictests_false_extremes_are_unknown() {
        let early = ImportedThread {
            buckets: vec![(5, 1)],
            overflows: 1,
            min: Some(5),
            max: Some(u64::MAX as i128),
            mean_ns: Some(Nanos(1)),
            ..ImportedThread::default()
        };
        let run = run_of(early.of_cyclictest(Nanos(1)), Nanos(1)).unwrap();
        assert_eq!(
            (run.cpus[0].min_ns, run.cpus[0].max_ns, run.cpus[0].mean_ns),
            (Some(Nanos(-1)), Some(Nanos(5)), None)
        );
        assert_eq!(run.integrity[0].kind, IntegrityKind::Early);
        let unset = ImportedThread { min: Some(MIN_START), max: Some(0), ..ImportedThread::default() };
        assert_eq!(run_of(unset.clone().of_cyclictest(Nanos(1)), Nanos(1)).unwrap().cpus[0].min_ns, None);
        // Other tools print signs, and no such minimum without a sample.
        let signed = ImportedThread { summary_only: true, min: Some(-9), max: Some(-2), ..unset.clone() };
        let cpu = &run_of(signed, Nanos(1)).unwrap().cpus[0];
        assert_eq!((cpu.min_ns, cpu.max_ns), (Some(Nanos(-9)), Some(Nanos(-2))));
        let even = ImportedThread { summary_only: true, max: Some(MIN_START + 5), ..unset };
        assert_eq!(run_of(even, Nanos(1)).unwrap().cpus[0].min_ns, Some(Nanos::MILLI));
    }

    #[test]
    fn contradictions_are_refused() {
        let base = ImportedThread {
            buckets: vec![(5, 1), (9, 1)],
            min: Some(5),
            max: Some(9),
            ..ImportedThread::default()
        };
        assert!(run_of(base.clone(), Nanos::MICRO).is_ok());
        for thread in [
            ImportedThread { min: Some(6), ..base.clone() },
            ImportedThread { max: Some(8), ..base.clone() },
            ImportedThread { max: Some(i64::MAX.into()), ..base.clone() },
            ImportedThread { buckets: vec![(5, u64::MAX), (9, 1)], ..base.clone() },
            ImportedThread { buckets: vec![(u64::MAX, 1)], max: None, ..base.clone() },
            ImportedThread { overflows: u64::MAX, ..base.clone() },
        ] {
            assert!(run_of(thread, Nanos::MICRO).is_err());
        }
    }
}
