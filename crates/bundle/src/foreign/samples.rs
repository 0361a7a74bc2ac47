//! Runs made of single samples, of which the file states number and latency.

use std::collections::BTreeMap;

use super::imported::ImportedThread;
use model::run::{Block, WORST, Worst};
use model::units::Nanos;

/// Fills each thread from its samples, and returns a record per second of those whose CPU and
/// interval are known: a wake-up's time is its number times the interval.
pub(super) fn fill(
    threads: &mut [ImportedThread],
    samples: &BTreeMap<usize, Vec<(u64, i64)>>,
    unit: Nanos,
) -> Vec<Block> {
    let mut blocks = Vec::new();
    for (index, thread) in threads.iter_mut().enumerate() {
        let Some(samples) = samples.get(&index) else { continue };
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
        thread.worst = worst(thread.interval, samples, unit);
        blocks.extend(seconds(thread, samples, unit));
    }
    blocks.sort_by_key(|block| (block.mono_ns, block.cpu));
    blocks
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
    // The last second is cut short where the samples end.
    if let Some(mut last) = open.last_entry() {
        let covered = (last.get().n as i64).saturating_mul(interval.0).min(Nanos::SECOND.0);
        last.get_mut().span_ns = Some(Nanos(covered));
    }
    open.into_values().collect()
}
