//! The log-linear histogram: 64 buckets per octave of nanoseconds, no overflow, no lost value.
//!
//! A bucket's index follows from the leading zeros and a shift, the same on every architecture.
//! Below 128 ns a bucket is 1 ns wide, above at most 1/64 (1.57 %) of its lower edge. Bucket 0
//! holds the early wake-ups, whatever their size.

use serde::{Deserialize, Serialize};

use crate::sort::CompactSort;
use crate::units::Nanos;

const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;

/// The bucket of early wake-ups (negative latencies).
pub const EARLY_BUCKET: usize = 0;

/// The number of buckets: every non-negative `i64` has one.
pub const BUCKETS: usize = 1 + bucket_of_unsigned(i64::MAX as u64) + 1;

/// The bucket of a latency.
#[inline(always)]
pub const fn bucket_of(latency: Nanos) -> usize {
    if latency.0 < 0 { EARLY_BUCKET } else { 1 + bucket_of_unsigned(latency.0 as u64) }
}

#[inline(always)]
const fn bucket_of_unsigned(ns: u64) -> usize {
    // Or-ing SUB makes the small values, which are their own bucket, take the same path: no branch.
    let shift = (63 - (ns | SUB).leading_zeros()) - SUB_BITS;
    ((ns >> shift) + ((shift as u64) << SUB_BITS)) as usize
}

/// The half-open edges `[lower, upper)` of a bucket.
///
/// The early bucket's lower edge is not fixed: [`fill_buckets`] puts the minimum there.
pub const fn bucket_edges(bucket: usize) -> (Nanos, Nanos) {
    if bucket == EARLY_BUCKET {
        return (Nanos(i64::MIN), Nanos(0));
    }
    (Nanos(lower_edge(bucket - 1)), Nanos(lower_edge(bucket)))
}

const fn lower_edge(bucket: usize) -> i64 {
    let bucket = bucket as u64;
    if bucket < 2 * SUB {
        return bucket as i64;
    }
    let shift = bucket / SUB - 1;
    let edge = ((bucket % SUB + SUB) as u128) << shift;
    if edge > i64::MAX as u128 { i64::MAX } else { edge as i64 }
}

/// One non-empty bucket as stored and shown: `[lower, upper)` and its number of samples.
///
/// In JSON it is the array `[lower, upper, count]`: a run has hundreds of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "(Nanos, Nanos, u64)", into = "(Nanos, Nanos, u64)")]
pub struct Bucket {
    /// Lowest latency in the bucket.
    pub lower: Nanos,
    /// Lowest latency above the bucket.
    pub upper: Nanos,
    pub count: u64,
}

impl Bucket {
    /// A bucket from its edges.
    pub const fn new(lower: Nanos, upper: Nanos, count: u64) -> Bucket {
        Bucket { lower, upper, count }
    }
}

impl From<(Nanos, Nanos, u64)> for Bucket {
    fn from((lower, upper, count): (Nanos, Nanos, u64)) -> Bucket {
        Bucket { lower, upper, count }
    }
}

impl From<Bucket> for (Nanos, Nanos, u64) {
    fn from(Bucket { lower, upper, count }: Bucket) -> (Nanos, Nanos, u64) {
        (lower, upper, count)
    }
}

/// A dense histogram: a count per bucket up to the highest that was needed.
#[derive(Clone, Default)]
pub struct Counts {
    buckets: Vec<u64>,
    /// Lowest bucket that was ever used.
    first: usize,
}

impl Counts {
    /// Adds samples to a bucket.
    pub fn add(&mut self, bucket: usize, count: u64) {
        if self.buckets.is_empty() {
            self.first = bucket;
        }
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.first = self.first.min(bucket);
        self.buckets[bucket] += count;
    }

    /// The count of a bucket.
    pub fn get(&self, bucket: usize) -> u64 {
        self.buckets.get(bucket).copied().unwrap_or(0)
    }

    /// Number of samples in the level's bucket and above; exact if the level is the edge of a
    /// bucket.
    pub fn at_or_above(&self, level: Nanos) -> u64 {
        self.buckets.iter().skip(bucket_of(level)).sum()
    }
}

/// Fills a reused list with the non-empty buckets of the sum of histograms, in ascending order;
/// `min` becomes the lower edge of the early bucket.
pub fn fill_buckets(into: &mut Vec<Bucket>, histograms: &[&Counts], min: Nanos) {
    into.clear();
    let buckets = histograms.iter().map(|counts| counts.buckets.len()).max().unwrap_or(0);
    let first =
        histograms.iter().filter(|counts| !counts.buckets.is_empty()).map(|counts| counts.first).min();
    for bucket in first.unwrap_or(0)..buckets {
        let count: u64 = histograms.iter().map(|counts| counts.get(bucket)).sum();
        if count > 0 {
            let (lower, upper) = bucket_edges(bucket);
            let lower = if bucket == EARLY_BUCKET { min } else { lower };
            into.push(Bucket { lower, upper, count });
        }
    }
}

/// The non-empty buckets of one histogram, see [`fill_buckets`].
pub fn buckets_of(counts: &Counts, min: Nanos) -> Vec<Bucket> {
    let mut buckets = Vec::new();
    fill_buckets(&mut buckets, &[counts], min);
    buckets
}

/// Lowest edge of a bucket at or above the span: levels on edges can be counted exactly from
/// buckets.
pub fn edge_at_or_above(span: Nanos) -> Nanos {
    let (lower, upper) = bucket_edges(bucket_of(span));
    if lower == span { lower } else { upper }
}

/// Number of samples in the buckets.
pub fn total_of(buckets: &[Bucket]) -> u64 {
    buckets.iter().map(|bucket| bucket.count).sum()
}

/// Nearest-rank quantile, given as the upper edge of its bucket, or as the largest sample if that
/// is known and less; `None` without samples.
///
/// `per_million` is the quantile: 999 900 for p99.99. The rank is the smallest whole number that is
/// at least n * q, and at least one (Hyndman and Fan 1996, definition 1).
pub fn quantile(buckets: &[Bucket], max: Option<Nanos>, per_million: u64) -> Option<Nanos> {
    let total = u128::from(total_of(buckets));
    let rank = (total * u128::from(per_million)).div_ceil(1_000_000).max(1);
    let mut seen = 0u128;
    buckets.iter().find_map(|&Bucket { upper, count, .. }| {
        seen += u128::from(count);
        (seen >= rank).then_some(max.map_or(upper, |max| upper.min(max)))
    })
}

/// Like [`quantile`], with `beyond` more samples above the buckets; `None` if the rank is among
/// them.
pub fn quantile_below(buckets: &[Bucket], beyond: u64, per_million: u64) -> Option<Nanos> {
    let mut all = buckets.to_vec();
    let end = buckets.last().map_or(Nanos(0), |bucket| bucket.upper);
    all.push(Bucket { lower: end, upper: Nanos(i64::MAX), count: beyond });
    quantile(&all, None, per_million).filter(|&edge| edge < Nanos(i64::MAX))
}

/// Adds two histograms bucket by bucket; buckets with the same upper edge are the same bucket (the
/// lower edge of the early bucket is its minimum). `None` if a count overflows.
pub fn merge(a: &[Bucket], b: &[Bucket]) -> Option<Vec<Bucket>> {
    let mut buckets: Vec<Bucket> = a.iter().chain(b).copied().collect();
    buckets.compact_sort_by_key(|bucket| bucket.upper);
    let mut merged: Vec<Bucket> = Vec::with_capacity(buckets.len());
    for bucket in buckets {
        match merged.last_mut() {
            Some(last) if last.upper == bucket.upper => {
                last.lower = last.lower.min(bucket.lower);
                last.count = last.count.checked_add(bucket.count)?;
            }
            _ => merged.push(bucket),
        }
    }
    Some(merged)
}

/// The mean, rounded half away from zero. `count` must not be 0.
pub fn mean(sum: i128, count: u64) -> Nanos {
    let (count, half) = (i128::from(count), i128::from(count / 2));
    Nanos(((sum + if sum < 0 { -half } else { half }) / count) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_row_begins_where_the_last_one_ended() {
        for bucket in 1..BUCKETS - 1 {
            assert_eq!(bucket_edges(bucket).1, bucket_edges(bucket + 1).0);
            assert_eq!(bucket_of(bucket_edges(bucket).0), bucket);
            assert_eq!(bucket_of(Nanos(bucket_edges(bucket).1.0 - 1)), bucket);
        }
        assert_eq!(bucket_of(Nanos(i64::MAX)), BUCKETS - 1);
        assert_eq!(bucket_of(Nanos(-1)), EARLY_BUCKET);
    }

    #[test]
    fn rows_are_at_most_one_nanosecond_or_16_permille_wide() {
        for bucket in 1..BUCKETS {
            let (lower, upper) = bucket_edges(bucket);
            let width = upper.0 - lower.0;
            assert!(width <= 1 || (width as f64) <= 0.016 * lower.0 as f64, "{lower:?} {upper:?}");
        }
    }

    #[test]
    fn means_round_to_the_nearest() {
        assert_eq!((mean(5, 2), mean(-5, 2), mean(4, 3)), (Nanos(3), Nanos(-3), Nanos(1)));
    }

    proptest! {
        #[test]
        fn merging_is_counting_together(
            a in proptest::collection::vec(-9i64..9_000, 1..50), b in proptest::collection::vec(-9i64..9_000, 1..50),
        ) {
            let buckets = |samples: &[i64]| {
                let mut counts = Counts::default();
                samples.iter().for_each(|&ns| counts.add(bucket_of(Nanos(ns)), 1));
                buckets_of(&counts, Nanos(*samples.iter().min().expect("not empty")))
            };
            let both: Vec<i64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(merge(&buckets(&a), &buckets(&b)), Some(buckets(&both)));
        }

        #[test]
        fn quantiles_agree_with_sorting(
            samples in proptest::collection::vec(-50i64..20_000_000, 1..300),
            per_million in 0u64..=1_000_000,
        ) {
            let mut counts = Counts::default();
            for &ns in &samples {
                counts.add(bucket_of(Nanos(ns)), 1);
            }
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            let buckets = buckets_of(&counts, Nanos(sorted[0]));
            prop_assert_eq!(total_of(&buckets), samples.len() as u64);
            let rank = ((samples.len() as u128 * per_million as u128).div_ceil(1_000_000) as usize).max(1);
            let exact = Nanos(sorted[rank - 1]);
            let edge = bucket_edges(bucket_of(exact)).1;
            prop_assert_eq!(quantile(&buckets, None, per_million), Some(edge));
            let max = Nanos(sorted[sorted.len() - 1]);
            prop_assert_eq!(quantile(&buckets, Some(max), per_million), Some(edge.min(max)));
            prop_assert!(quantile(&buckets, Some(max), per_million) >= Some(Nanos(sorted[0])));
        }

        #[test]
        fn quantiles_of_a_cut_histogram_are_those_of_the_whole_or_none(
            samples in proptest::collection::vec(0i64..200, 2..100), per_million in 0u64..=1_000_000, end in 1i64..200,
        ) {
            let buckets_of = |samples: &[i64]| {
                let mut buckets: Vec<Bucket> = Vec::new();
                for &ns in samples {
                    match buckets.last_mut() {
                        Some(bucket) if bucket.lower.0 == ns => bucket.count += 1,
                        _ => buckets.push(Bucket::new(Nanos(ns), Nanos(ns + 1), 1)),
                    }
                }
                buckets
            };
            let mut sorted = samples;
            sorted.sort_unstable();
            let held = sorted.partition_point(|&ns| ns < end);
            let beyond = (sorted.len() - held) as u64;
            let whole = quantile(&buckets_of(&sorted), None, per_million);
            let cut = quantile_below(&buckets_of(&sorted[..held]), beyond, per_million);
            prop_assert_eq!(cut, whole.filter(|&edge| edge.0 <= end));
        }

        #[test]
        fn levels_on_edges_count_exactly(samples in proptest::collection::vec(0i64..2_000_000, 0..200), span in 0i64..2_000_000) {
            let level = edge_at_or_above(Nanos(span));
            prop_assert!(level >= Nanos(span));
            let mut counts = Counts::default();
            for &ns in &samples {
                counts.add(bucket_of(Nanos(ns)), 1);
            }
            prop_assert_eq!(counts.at_or_above(level), samples.iter().filter(|&&ns| ns >= level.0).count() as u64);
        }
    }
}
