//! Conversion of onbeat's buckets to the microsecond buckets of cyclictest: bucket b counts the
//! latencies in [b, b + 1) us.

use std::collections::BTreeMap;

use super::quoted;
use model::error::{Failure, Result};
use model::histogram::Bucket;
use model::run::{CpuRun, Run};
use model::units::Nanos;
use model::vocabulary::Quantity;

/// Samples by bucket, numbered in whole microseconds.
pub(super) type Buckets = BTreeMap<u64, u64>;

/// Refuses a run that cyclictest's formats cannot state: another quantity than wake-up latency, an
/// unknown maximum, rows much wider than a microsecond.
///
/// # Errors
/// Wrong usage.
pub(super) fn require_cyclictest(run: &Run) -> Result<()> {
    let refused = |cpu: &CpuRun, what: &str| {
        let name = cpu.name();
        Err(Failure::usage(format!("{name}: cyclictest's formats cannot hold {what}: use --csv or --json")))
    };
    for cpu in &run.cpus {
        if !cpu.measures.is_empty() && cpu.measures != Quantity::default() {
            return refused(cpu, &format!("the quantity {}", quoted(cpu.measures.as_str())));
        }
        if cpu.max_ns.is_none() && cpu.cycles != Some(0) {
            return refused(cpu, "an unknown maximum");
        }
        // Rows of onbeat are up to 1.6 % wide.
        let is_wide = |row: &Bucket| {
            row.lower.0 >= 0 && row.upper.0 - row.lower.0 > Nanos::MICRO.0.max(row.lower.0 / 32)
        };
        if cpu.histogram.iter().any(is_wide) {
            return refused(cpu, "rows wider than 1 us");
        }
    }
    Ok(())
}

/// Whole microseconds of a latency, rounded down, as cyclictest does; 0 if it is unknown.
pub(super) fn whole(latency: Option<Nanos>) -> i64 {
    latency.unwrap_or_default().0.div_euclid(Nanos::MICRO.0)
}

/// Buckets of a CPU's histogram; their counts sum to the histogram's, for any buckets.
///
/// A bucket is placed by its lower edge, but never outside the exact extremes: below 64 us that is
/// within 1 us of cyclictest's count, above within the bucket's 1.6 %. One sample is the maximum
/// and is placed in its exact bucket, so that a parser that uses the last bucket as the maximum is
/// right. Early wake-ups, for which cyclictest has no bucket, are in bucket 0.
pub(super) fn microsecond_buckets(cpu: &CpuRun) -> Buckets {
    let least = whole(cpu.min_ns).max(0) as u64;
    let most = cpu.max_ns.map_or(u64::MAX, |max| whole(Some(max)).max(0) as u64).max(least);
    let mut buckets = Buckets::new();
    for &Bucket { lower, count, .. } in &cpu.histogram {
        let bucket = if lower.0 < 0 { 0 } else { (whole(Some(lower)) as u64).clamp(least, most) };
        // The counts of a checked run sum to a 64-bit number, so this never saturates.
        let held: &mut u64 = buckets.entry(bucket).or_default();
        *held = held.saturating_add(count);
    }
    // An overflow that an import counted lies beyond the histogram, and the maximum with it.
    let maximum_is_in_rows = cpu.max_ns.is_some() && cpu.overflows.unwrap_or(0) == 0;
    match buckets.last_entry() {
        Some(mut last) if maximum_is_in_rows && *last.key() != most && *last.get() > 0 => {
            *last.get_mut() -= 1;
            if *last.get() == 0 {
                last.remove();
            }
            buckets.insert(most, 1);
        }
        _ => {}
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::histogram::{Counts, bucket_of, buckets_of};
    use proptest::prelude::*;

    fn cpu_of(samples: &[i64]) -> CpuRun {
        let mut counts = Counts::default();
        samples.iter().for_each(|&ns| counts.add(bucket_of(Nanos(ns)), 1));
        let min = samples.iter().min().copied().map(Nanos);
        CpuRun {
            cycles: Some(samples.len() as u64),
            min_ns: min,
            max_ns: samples.iter().max().copied().map(Nanos),
            histogram: buckets_of(&counts, min.unwrap_or_default()),
            ..CpuRun::default()
        }
    }

    #[test]
    fn extremes_have_their_own_bucket() {
        // 7 300 000 ns lies in the row [7 274 496, 7 405 568), 7 299 999 as well.
        let buckets = microsecond_buckets(&cpu_of(&[2_010, 7_299_999, 7_300_000]));
        assert_eq!(buckets, Buckets::from([(2, 1), (7_274, 1), (7_300, 1)]));
    }

    #[test]
    fn early_wake_ups_are_in_bucket_0() {
        assert_eq!(microsecond_buckets(&cpu_of(&[-5_000, -1, 1_500])), Buckets::from([(0, 2), (1, 1)]));
        assert_eq!(microsecond_buckets(&cpu_of(&[-5_000, -3_000])), Buckets::from([(0, 2)]));
        assert_eq!(microsecond_buckets(&cpu_of(&[])), Buckets::new());
    }

    proptest! {
        #[test]
        fn counts_and_extremes_survive(samples in proptest::collection::vec(0i64..40_000_000_000, 1..200)) {
            let buckets = microsecond_buckets(&cpu_of(&samples));
            prop_assert_eq!(buckets.values().sum::<u64>(), samples.len() as u64);
            let exact: Vec<u64> = samples.iter().map(|&ns| ns as u64 / 1000).collect();
            prop_assert_eq!(buckets.keys().next(), exact.iter().min());
            prop_assert_eq!(buckets.keys().last(), exact.iter().max());
        }
    }
}
