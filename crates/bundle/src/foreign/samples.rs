//! Runs from single samples, for which the file states number and latency.

use std::collections::BTreeMap;

use super::error::ImportError;
use super::imported::ImportedThread;
use model::run::{Block, WORST, Worst};
use model::sort::CompactSort;
use model::units::Nanos;

/// Fills each thread from its samples, and returns a record per second of those whose CPU and
/// interval are known: the time of a wake-up is its number times the interval.
///
/// # Errors
/// Sample numbers with a gap that `--oscope` does not account for: lines are missing.
pub(super) fn fill(
    threads: &mut [ImportedThread],
    samples: &BTreeMap<usize, Vec<(u64, i64)>>,
    unit: Nanos,
) -> Result<Vec<Block>, ImportError> {
    let mut blocks = Vec::new();
    for (index, thread) in threads.iter_mut().enumerate() {
        let Some(samples) = samples.get(&index) else { continue };
        thread.worst = worst(thread.interval, samples, unit);
        match reduction(samples) {
            Some(1) => fill_all(thread, samples, unit),
            // Of the other samples only this upper bound is known.
            Some(_) => {
                let largest = samples.iter().map(|sample| i128::from(sample.1)).max();
                (thread.summary_only, thread.cycles, thread.max) = (true, None, largest);
                continue;
            }
            None => return Err(ImportError(format!("thread {index}: {}", gap(samples)))),
        }
        blocks.extend(seconds(thread, samples, unit));
    }
    blocks.compact_sort_by_key(|block| (block.mono_ns, block.cpu));
    Ok(blocks)
}

fn fill_all(thread: &mut ImportedThread, samples: &[(u64, i64)], unit: Nanos) {
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    let early = samples.iter().map(|sample| i128::from(sample.1)).filter(|&latency| latency < 0);
    thread.early = early.clone().min().map(|least| (early.count() as u64, least));
    for latency in samples.iter().filter_map(|&(_, latency)| u64::try_from(latency).ok()) {
        *counts.entry(latency).or_default() += 1;
    }
    thread.summary_only = false;
    thread.buckets = counts.into_iter().collect();
    thread.min = thread.buckets.first().map(|bucket| i128::from(bucket.0));
    thread.max = thread.buckets.last().map(|bucket| i128::from(bucket.0));
    let sum: i128 = samples.iter().map(|sample| i128::from(sample.1)).sum();
    let mean = sum.saturating_mul(unit.0.into()) / (samples.len() as i128).max(1);
    thread.mean_ns = i64::try_from(mean).ok().map(Nanos);
}

/// True for samples of which each is the largest of several, as `--oscope` prints them.
pub(super) fn is_reduced(samples: &[(u64, i64)]) -> bool {
    reduction(samples).is_some_and(|reduction| reduction > 1)
}

/// Number of wake-ups of which each sample is the largest: 1 if all are present, `None` if some are
/// lost. With `--oscope` the nth sample is one of the nth group.
fn reduction(samples: &[(u64, i64)]) -> Option<u64> {
    if gap_at(samples).is_none() {
        return Some(1);
    }
    let numbered = (0u64..).zip(samples.iter().map(|sample| sample.0));
    let least = numbered.clone().map(|(n, cycle)| cycle / (n + 1)).max()?.checked_add(1)?;
    let most = numbered.skip(1).map(|(n, cycle)| cycle / n).min()?;
    (least <= most).then_some(least)
}

/// The first two samples that are not consecutive.
fn gap_at(samples: &[(u64, i64)]) -> Option<(u64, u64)> {
    let pairs = samples.windows(2).map(|pair| (pair[0].0, pair[1].0));
    pairs.into_iter().find(|(before, after)| before.checked_add(1) != Some(*after))
}

fn gap(samples: &[(u64, i64)]) -> String {
    let (before, after) = gap_at(samples).unwrap_or_default();
    format!("sample {after} follows sample {before}, so lines are missing: give the whole output")
}

fn worst(interval: Option<Nanos>, samples: &[(u64, i64)], unit: Nanos) -> Vec<Worst> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by_key(|&(cycle, latency)| (std::cmp::Reverse(latency), cycle));
    sorted.truncate(WORST);
    let of = |(cycle, latency): (u64, i64)| Worst {
        latency_ns: latency.checked_mul(unit.0).map(Nanos),
        cycle: Some(cycle),
        mono_ns: interval.and_then(|interval| time_of(cycle, interval)),
        time: String::new(),
    };
    sorted.into_iter().map(of).collect()
}

fn time_of(cycle: u64, interval: Nanos) -> Option<Nanos> {
    i64::try_from(cycle).ok()?.checked_mul(interval.0).map(Nanos)
}

fn seconds(thread: &ImportedThread, samples: &[(u64, i64)], unit: Nanos) -> Vec<Block> {
    let (Some(cpu), Some(interval)) = (thread.cpu, thread.interval.filter(|interval| interval.0 > 0)) else {
        return Vec::new();
    };
    let mut open: BTreeMap<i64, Block> = BTreeMap::new();
    for &(cycle, latency) in samples {
        let (Some(time), Some(ns)) = (time_of(cycle, interval), latency.checked_mul(unit.0)) else {
            continue;
        };
        let second = time.0.div_euclid(Nanos::SECOND.0);
        let block = open.entry(second).or_insert_with(|| Block {
            cpu,
            mono_ns: Nanos(second * Nanos::SECOND.0),
            span_ns: Some(Nanos::SECOND),
            ..Block::default()
        });
        block.n += 1;
        if block.max_ns.is_none_or(|max| max.0 < ns) {
            (block.max_ns, block.max_mono_ns) = (Some(Nanos(ns)), Some(time));
        }
    }
    // The last second is cut short if the samples end.
    if let Some(mut last) = open.last_entry() {
        let covered = (last.get().n as i64).saturating_mul(interval.0).min(Nanos::SECOND.0);
        last.get_mut().span_ns = Some(Nanos(covered));
    }
    open.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::foreign::{ImportOptions, import};

    #[test]
    fn lost_samples_are_refused_and_reduced_ones_give_the_largest() {
        let all = |text: &str| import(text.as_bytes(), &ImportOptions::default());
        let text = include_str!("../../../../tests/fixtures/foreign/cyclictest/2.10-verbose.txt");
        let line = text.lines().rfind(|line| line.trim_start().starts_with("0:      71:")).unwrap();
        let error = all(&text.replacen(line, "       0:      [   12.345678] usb 1-1: new", 1)).unwrap_err();
        assert!(error.0.contains("thread 0: sample 72 follows sample 70"), "{error}");
        let reduced = include_str!("../../../../tests/fixtures/foreign/cyclictest/2.10-verbose-break.txt");
        let one = all(reduced).unwrap().remove(0);
        assert!(one.remarks.iter().any(|remark| remark.contains("--oscope")), "{:?}", one.remarks);
        for cpu in &one.run.cpus {
            assert_eq!((cpu.cycles, cpu.min_ns, cpu.mean_ns, cpu.histogram.len()), (None, None, None, 0));
            assert_eq!(cpu.max_ns, cpu.worst[0].latency_ns);
        }
    }

    #[test]
    fn the_nth_sample_is_one_of_the_nth_group() {
        let samples = |numbers: &[u64]| numbers.iter().map(|&number| (number, 9)).collect::<Vec<_>>();
        for (numbers, expected) in [
            (&[0, 1, 2][..], Some(1)),
            (&[7, 8, 9], Some(1)),
            (&[3, 13, 20, 38, 45], Some(10)),
            (&[0, 1, 3], None),
            (&[0, 1, 1], None),
            (&[3, 13, 38, 40, 41, 42], None),
            (&[5, 0], None),
            (&[u64::MAX, 0], None),
        ] {
            assert_eq!(reduction(&samples(numbers)), expected, "{numbers:?}");
        }
    }
}
