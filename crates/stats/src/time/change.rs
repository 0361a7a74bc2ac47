//! Change points of the rate of events, from counts in equal windows.
//!
//! PELT (Killick, Fearnhead and Eckley 2012) with the Poisson cost `S - S ln(S / n)` of a segment
//! of n windows with S events and the penalty `3 ln n` per change. Assumes that the counts of a
//! segment are independent and Poisson: decluster first. The result is the exact optimum, up to
//! [`MAX_WINDOWS`] windows; more are merged by equal numbers for the search, and each change is
//! then moved to the best window nearby.

/// Maximum number of windows in the search: if nothing changes, nothing can be pruned.
pub const MAX_WINDOWS: usize = 3000;

/// Windows of one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    pub from: usize,
    /// The window after its last one.
    pub to: usize,
    pub events: u64,
}

/// The segments of constant rate, none shorter than `shortest` windows; none at all without counts.
pub fn segments(counts: &[u64], shortest: usize) -> Vec<Segment> {
    if counts.is_empty() {
        return Vec::new();
    }
    let mut sums = vec![0u64];
    for &count in counts {
        sums.push(sums[sums.len() - 1].saturating_add(count));
    }
    let merged = counts.len().div_ceil(MAX_WINDOWS);
    let mut edges: Vec<usize> = (0..counts.len()).step_by(merged).collect();
    edges.push(counts.len());
    let shortest = shortest.max(1);
    let penalty = 3.0 * (counts.len() as f64).ln();
    let mut cuts = pelt(&sums, &edges, shortest, penalty);
    if merged > 1 {
        sharpen(&mut cuts, &sums, merged, shortest);
    }
    let segment =
        |pair: &[usize]| Segment { from: pair[0], to: pair[1], events: sums[pair[1]] - sums[pair[0]] };
    cuts.windows(2).map(segment).collect()
}

/// Cost of a segment: minus its largest log likelihood, without the terms that no cut changes.
fn cost(sums: &[u64], from: usize, to: usize) -> f64 {
    let (events, windows) = ((sums[to] - sums[from]) as f64, (to - from) as f64);
    if events == 0.0 { 0.0 } else { events - events * (events / windows).ln() }
}

/// Edges between segments, with the first and the last window's.
fn pelt(sums: &[u64], edges: &[usize], shortest: usize, penalty: f64) -> Vec<usize> {
    let mut best = vec![f64::INFINITY; edges.len()];
    let mut previous = vec![0; edges.len()];
    best[0] = -penalty;
    // An edge, and the edge from which on it cannot be the last change any more.
    let mut candidates: Vec<(usize, usize)> = vec![(0, usize::MAX)];
    for (k, &to) in edges.iter().enumerate().skip(1) {
        for &(j, _) in &candidates {
            let total = best[j] + cost(sums, edges[j], to) + penalty;
            if to - edges[j] >= shortest && total < best[k] {
                (best[k], previous[k]) = (total, j);
            }
        }
        // A change is allowed here only if the next segment can be long enough: nothing is pruned
        // until then.
        let expires = to.saturating_add(shortest);
        for (j, until) in &mut candidates {
            if best[*j] + cost(sums, edges[*j], to) >= best[k] {
                *until = (*until).min(expires);
            }
        }
        candidates.retain(|&(_, until)| until > to);
        if best[k].is_finite() {
            candidates.push((k, usize::MAX));
        }
    }
    let mut cuts = vec![edges[edges.len() - 1]];
    let mut at = edges.len() - 1;
    while at > 0 {
        at = previous[at];
        cuts.push(edges[at]);
    }
    cuts.reverse();
    cuts
}

/// Moves each cut between merged windows to the cheapest one within a merged window's length.
fn sharpen(cuts: &mut [usize], sums: &[u64], merged: usize, shortest: usize) {
    for i in 1..cuts.len().saturating_sub(1) {
        let (before, after) = (cuts[i - 1], cuts[i + 1]);
        let from = (cuts[i].saturating_sub(merged)).max(before + shortest);
        let to = (cuts[i] + merged).min(after.saturating_sub(shortest));
        let price = |cut: usize| cost(sums, before, cut) + cost(sums, cut, after);
        if let Some(cut) = (from..=to).min_by(|&a, &b| price(a).total_cmp(&price(b))) {
            cuts[i] = cut;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::poisson_counts;
    use super::*;
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    /// The optimum without pruning.
    fn exhaustive(counts: &[u64], shortest: usize) -> f64 {
        let mut sums = vec![0];
        counts.iter().for_each(|count| sums.push(sums[sums.len() - 1] + count));
        let penalty = 3.0 * (counts.len() as f64).ln();
        let mut best = vec![-penalty];
        for to in 1..=counts.len() {
            let total = (0..to).filter(|from| to - from >= shortest);
            best.push(
                total.map(|from| best[from] + cost(&sums, from, to) + penalty).fold(f64::INFINITY, f64::min),
            );
        }
        best[counts.len()]
    }

    fn price(counts: &[u64], found: &[Segment]) -> f64 {
        let penalty = 3.0 * (counts.len() as f64).ln();
        let mut sums = vec![0];
        counts.iter().for_each(|count| sums.push(sums[sums.len() - 1] + count));
        found.iter().map(|s| cost(&sums, s.from, s.to) + penalty).sum::<f64>() - penalty
    }

    #[test]
    fn a_change_of_rate_is_found_where_it_is() {
        let mut rng = Rng::new(SEED);
        let mut counts = poisson_counts(0.2, 300, &mut rng);
        counts.extend(poisson_counts(3.0, 40, &mut rng));
        counts.extend(poisson_counts(0.2, 260, &mut rng));
        let found = segments(&counts, 3);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[1].from.abs_diff(300) <= 2 && found[1].to.abs_diff(340) <= 2, "{found:?}");
        assert!(found[1].to - found[1].from < 45 && found[1].events.abs_diff(120) < 40);
    }

    #[test]
    fn one_rate_is_one_segment() {
        let mut rng = Rng::new(SEED);
        let none = (0..60).filter(|_| segments(&poisson_counts(0.3, 360, &mut rng), 1).len() == 1).count();
        assert!(none >= 58, "{none} of 60");
        assert_eq!(segments(&[0; 500], 1), [Segment { from: 0, to: 500, events: 0 }]);
        assert_eq!(segments(&[], 1), []);
        assert_eq!(segments(&[u64::MAX; 3], usize::MAX).len(), 1);
    }

    #[test]
    fn many_windows_are_merged_and_the_change_is_still_exact() {
        let counts: Vec<u64> = (0..100_000).map(|i| u64::from(i >= 61_803) * (i % 2)).collect();
        let found = segments(&counts, 1);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].to.abs_diff(61_803) <= 1, "{found:?}");
    }

    proptest! {
        #[test]
        fn pruning_loses_nothing(counts in proptest::collection::vec(prop_oneof![4 => 0u64..2, 1 => 0u64..30], 1..40), shortest in 1usize..6) {
            let found = segments(&counts, shortest);
            prop_assert_eq!(found.iter().map(|s| s.events).sum::<u64>(), counts.iter().sum::<u64>());
            prop_assert!(found.len() == 1 || found.iter().all(|s| s.to - s.from >= shortest));
            if counts.len() >= shortest {
                prop_assert!((price(&counts, &found) - exhaustive(&counts, shortest)).abs() < 1e-9);
            }
        }
    }
}
