//! Separate modes of a latency histogram: paths through the kernel of different length have
//! separate peaks.
//!
//! The buckets are put into cells of a sixteenth of an octave, at least 200 ns and at least a
//! bucket wide, so that the steps of a clock and whole microseconds make no peaks. Of each three
//! neighbouring cells the sum is taken. A peak is a mode if the least sum on the way to each higher
//! mode lies below it by more than [`SIGMAS`] standard deviations of the difference of two Poisson
//! counts and by more than a [`DIP`] of it. Assumes independent samples, so dependent neighbours
//! make it too sensitive; it names modes to look at and decides nothing.

use model::histogram::{Bucket, total_of};
use model::sort::CompactSort;
use model::units::Nanos;

/// Least depth of a valley, in standard deviations.
pub const SIGMAS: f64 = 4.0;
/// Least depth of a valley, as a part of the peak.
pub const DIP: f64 = 0.2;
/// Ratio of the edges of a cell: a sixteenth of an octave.
const RATIO: f64 = 1.044_273_782_427_413_8;
/// Least width of a cell, in ns.
const NARROWEST: f64 = 200.0;

/// A peak with the stretch between its valleys.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mode {
    /// Latency of the peak.
    pub at: Nanos,
    /// Number of samples between its valleys.
    pub n: u64,
    /// Share of all samples, 0 to 1.
    pub share: f64,
}

/// The modes, ascending; one if there are no separate modes, none without samples at or above zero.
pub fn modes(buckets: &[Bucket]) -> Vec<Mode> {
    let buckets: Vec<Bucket> = buckets
        .iter()
        .copied()
        .filter(|bucket| bucket.upper.0 > 0 && bucket.upper > bucket.lower && bucket.count > 0)
        .collect();
    let edges = edges(&buckets);
    let counts = counts(&buckets, &edges);
    let sums: Vec<f64> = (0..counts.len())
        .map(|i| counts[i.saturating_sub(1)..(i + 2).min(counts.len())].iter().sum())
        .collect();
    let peaks = peaks(&sums);
    let total = total_of(&buckets).max(1) as f64;
    let mode = |(i, &peak): (usize, &usize)| {
        let from = if i == 0 { 0 } else { valley(&sums, peaks[i - 1], peak) };
        let to = peaks.get(i + 1).map_or(counts.len(), |&next| valley(&sums, peak, next));
        let n = counts[from..to].iter().sum::<f64>();
        let (lower, upper) = (edges[peak.saturating_sub(1)], edges[(peak + 2).min(counts.len())]);
        Mode { at: top(&buckets, lower, upper), n: n.round() as u64, share: (n / total).min(1.0) }
    };
    peaks.iter().enumerate().map(mode).collect()
}

/// Edges of the cells, from the first bucket to the last; as many as fit into the range of a
/// latency.
fn edges(buckets: &[Bucket]) -> Vec<f64> {
    let (Some(first), Some(last)) = (buckets.first(), buckets.last()) else { return Vec::new() };
    let end = last.upper.0 as f64;
    let mut edges = vec![first.lower.0.max(0) as f64];
    let mut bucket = 0;
    while let Some(&edge) = edges.last().filter(|&&edge| edge < end) {
        while bucket + 1 < buckets.len() && buckets[bucket].upper.0 as f64 <= edge {
            bucket += 1;
        }
        let width = (buckets[bucket].upper.0 - buckets[bucket].lower.0.max(0)) as f64;
        edges.push((edge * RATIO).max(edge + width.max(NARROWEST)));
    }
    edges
}

/// Samples of the buckets, spread over the cells in proportion.
fn counts(buckets: &[Bucket], edges: &[f64]) -> Vec<f64> {
    let mut counts = vec![0.0; edges.len().saturating_sub(1)];
    for &Bucket { lower, upper, count: n } in buckets {
        let (lower, upper) = (lower.0.max(0) as f64, upper.0 as f64);
        let first = edges.partition_point(|&edge| edge <= lower).saturating_sub(1);
        for (cell, count) in counts.iter_mut().enumerate().skip(first) {
            let inside = upper.min(edges[cell + 1]) - lower.max(edges[cell]);
            if inside <= 0.0 {
                break;
            }
            *count += n as f64 * inside / (upper - lower);
        }
    }
    counts
}

/// Cells that are modes: from the highest peak down, each that is separated from the modes next to
/// it.
fn peaks(sums: &[f64]) -> Vec<usize> {
    let rises = |i: usize| i == 0 || sums[i] > sums[i - 1];
    let falls = |i: usize| i + 1 == sums.len() || sums[i] >= sums[i + 1];
    let mut order: Vec<usize> = (0..sums.len()).filter(|&i| rises(i) && falls(i)).collect();
    order.compact_sort_by(|&a, &b| sums[b].total_cmp(&sums[a]).then(a.cmp(&b)));
    let mut found: Vec<usize> = Vec::new();
    for peak in order {
        let place = found.partition_point(|&mode| mode < peak);
        let left = place.checked_sub(1).map(|i| found[i]);
        let beside = left.into_iter().chain(found.get(place).copied());
        let parted = |mode: usize| {
            let (low, high) = (sums[valley(sums, mode.min(peak), mode.max(peak))], sums[peak]);
            high - low > SIGMAS * (high + low).sqrt() && low < (1.0 - DIP) * high
        };
        if beside.into_iter().all(parted) {
            found.insert(place, peak);
        }
    }
    found
}

/// The lowest cell between two, the first of equal ones.
fn valley(sums: &[f64], from: usize, to: usize) -> usize {
    (from..=to).min_by(|&a, &b| sums[a].total_cmp(&sums[b])).unwrap_or(from)
}

/// Middle of the densest bucket within a peak.
fn top(buckets: &[Bucket], lower: f64, upper: f64) -> Nanos {
    let middle =
        |bucket: &Bucket| Nanos(bucket.lower.0.max(0) + (bucket.upper.0 - bucket.lower.0.max(0)) / 2);
    let density = |bucket: &Bucket| bucket.count as f64 / (bucket.upper.0 - bucket.lower.0.max(0)) as f64;
    let inside = buckets.iter().filter(|bucket| (lower..=upper).contains(&(middle(bucket).0 as f64)));
    let densest = inside.max_by(|a, b| density(a).total_cmp(&density(b)).then(b.lower.cmp(&a.lower)));
    densest.map_or(Nanos(((lower + upper) / 2.0).min(9e18) as i64), middle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::RPI2_HIST_US;
    use crate::rng::Rng;
    use model::histogram::{Counts, bucket_of, buckets_of};
    use proptest::prelude::*;

    fn buckets(samples: impl Iterator<Item = f64>) -> Vec<Bucket> {
        let mut counts = Counts::default();
        samples.for_each(|ns| counts.add(bucket_of(Nanos(ns as i64)), 1));
        buckets_of(&counts, Nanos(0))
    }

    #[test]
    fn the_raspberry_has_its_three_paths() {
        let buckets: Vec<Bucket> = RPI2_HIST_US
            .iter()
            .map(|&(us, n)| Bucket::new(Nanos(us as i64 * 1_000), Nanos(us as i64 * 1_000 + 1_000), n))
            .collect();
        let found = modes(&buckets);
        let at: Vec<i64> = found.iter().map(|mode| mode.at.0 / 1_000).collect();
        assert!(matches!(at[..], [16, 33..=35, 48]), "{found:?}");
        assert_eq!(found.iter().map(|mode| mode.n).sum::<u64>(), total_of(&buckets));
        assert!(found[0].share > 0.98);
    }

    #[test]
    fn one_smooth_law_has_one_mode() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            for n in [30, 3_000, 30_000] {
                let found = modes(&buckets(
                    (0..n).map(|_| 4_000.0 + 3_000.0 * rng.exponential() + 800.0 * rng.exponential()),
                ));
                assert_eq!(found.len(), 1, "{seed} {n} {found:?}");
            }
        }
    }

    #[test]
    fn steps_of_a_clock_are_no_modes() {
        let mut rng = Rng::new(1);
        let step = 1e9 / 19.2e6;
        let sample =
            |_| ((1_500.0 + 900.0 * rng.exponential() + 400.0 * rng.exponential()) / step).floor() * step;
        let found = modes(&buckets((0..100_000).map(sample)));
        assert_eq!(found.len(), 1, "{found:?}");
    }

    #[test]
    fn few_spikes_are_no_mode_and_many_similar_ones_are_one() {
        for (spikes, expected) in [(10, 1), (40, 2)] {
            let mut rng = Rng::new(5);
            let bulk: Vec<f64> = (0..5_000).map(|_| 4_000.0 + 1_000.0 * rng.exponential()).collect();
            let late = (0..spikes).map(|i| 50_000.0 + f64::from(i) * 10.0);
            let found = modes(&buckets(bulk.into_iter().chain(late)));
            assert_eq!(found.len(), expected, "{found:?}");
        }
        assert_eq!(modes(&[]), []);
        assert_eq!(modes(&[Bucket::new(Nanos(-5), Nanos(0), 9)]), []);
    }

    proptest! {
        #[test]
        fn any_rows_are_taken(list in proptest::collection::vec((any::<i64>(), any::<i64>(), any::<u32>()), 0..20)) {
            let mut buckets: Vec<Bucket> = list.into_iter().map(|(a, b, n)| Bucket::new(Nanos(a.min(b) / 2), Nanos(a.max(b) / 2), u64::from(n))).collect();
            buckets.sort();
            let found = modes(&buckets);
            prop_assert!(found.windows(2).all(|pair| pair[0].at <= pair[1].at));
            prop_assert!(found.iter().all(|mode| (0.0..=1.0).contains(&mode.share)));
        }
    }
}
