//! Sums over the CPUs of a run.

use std::collections::BTreeMap;

use model::histogram::Bucket;
use model::run::Run;
use model::units::Nanos;

/// Largest latency over all CPUs; unknown if that of a CPU with samples is.
pub fn largest(run: &Run) -> Option<Nanos> {
    let mut measured = run.primary().filter(|cpu| cpu.cycles != Some(0)).map(|cpu| cpu.max_ns);
    measured.try_fold(None, |max, cpu| cpu.map(|cpu| max.max(Some(cpu)))).flatten()
}

/// Sum of several histograms. The early rows, whose lower edges differ per CPU, become one.
pub fn sum_rows<'a>(histograms: impl Iterator<Item = &'a [Bucket]>) -> Vec<Bucket> {
    let mut sum: BTreeMap<(Nanos, Nanos), u64> = BTreeMap::new();
    let mut early: Option<Bucket> = None;
    for &Bucket { lower, upper, count } in histograms.flatten() {
        if upper.0 <= 0 {
            let seen = early.unwrap_or(Bucket { lower, upper, count: 0 });
            let count = seen.count.saturating_add(count);
            early = Some(Bucket { lower: seen.lower.min(lower), upper: Nanos(0), count });
        } else {
            let sum = sum.entry((upper, lower)).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    let rest = sum.into_iter().map(|((upper, lower), count)| Bucket { lower, upper, count });
    early.into_iter().chain(rest).collect()
}
