//! Test of the means of unpaired runs of A and B: under the hypothesis the labels are exchangeable.
//!
//! The permutation test of Pitman (1937) with the interval by inversion for a shift. Assumes that
//! runs are exchangeable between A and B but for the shift, so each run is one number and one fresh
//! start.
//!
//! Exact while there are at most 200 000 splits, beyond by seeded draws as in `sign_flip`. A
//! two-sided p is twice the smaller one-sided p, also for groups of unequal size, so that it agrees
//! with the interval.

use std::cmp::Ordering;

use super::inversion::{Relabelled, draws_for};
use crate::rng::{Rng, SEED};

/// Largest number of splits that are all gone through.
const EXACT_SPLITS: u64 = 200_000;

/// Number of ways to choose k of n; `None` beyond 2^53.
fn splits(n: usize, k: usize) -> Option<u64> {
    let mut ways = 1u64;
    for i in 0..k.min(n - k.min(n)) {
        ways = ways.checked_mul((n - i) as u64)? / (i as u64 + 1);
        if ways > 1 << 53 {
            return None;
        }
    }
    Some(ways)
}

/// Smallest two-sided p that groups of these sizes can give: two over the number of splits.
pub fn smallest_p(runs_a: usize, runs_b: usize) -> f64 {
    splits(runs_a.saturating_add(runs_b), runs_a).map_or(0.0, |ways| (2.0 / ways as f64).min(1.0))
}

/// Size of two equal groups from which p can be as small as alpha: 4 for 0.05.
pub fn runs_needed(alpha: f64) -> usize {
    (1..28).find(|&runs| smallest_p(runs, runs) <= alpha).unwrap_or(28)
}

/// The permutation test of B's shift against A over the splits of these runs into two groups.
///
/// Exchanging r runs of A for r of B leaves the difference at least as large as it was exactly when
/// the shift is at or above the difference of their means: that is the split's typical value.
pub fn relabelled(a: &[f64], b: &[f64]) -> Relabelled {
    if !is_mirrored(a, b) {
        return of_first(a, b);
    }
    let negated = |side: &[f64]| side.iter().map(|value| -value).collect::<Vec<_>>();
    of_first(&negated(b), &negated(a))
}

/// True if B's runs replace A's, with the other sign. A split is identified by its smaller group,
/// which keeps the work small if the groups are lopsided; of equal groups the lesser in an order is
/// taken, so that the same splits are drawn if A and B are swapped.
fn is_mirrored(a: &[f64], b: &[f64]) -> bool {
    let values = || a.iter().zip(b).map(|(one, other)| one.total_cmp(other)).find(|order| order.is_ne());
    a.len().cmp(&b.len()).then_with(|| values().unwrap_or(Ordering::Equal)).is_gt()
}

/// Splits by the runs that are A's.
fn of_first(a: &[f64], b: &[f64]) -> Relabelled {
    let (Some(&origin), false) = (a.first(), b.is_empty()) else {
        return Relabelled::new(Vec::new(), 1, true);
    };
    // Near the origin, sums of large values keep the digits that differ.
    let pooled: Vec<f64> = a.iter().chain(b).map(|value| value - origin).collect();
    match splits(pooled.len(), a.len()) {
        Some(ways) if ways <= EXACT_SPLITS => all(&pooled, a.len()),
        _ => drawn(&pooled, a.len(), SEED),
    }
}

/// Typical value of a split that assigns these runs to A; `None` if they are A's.
fn typical(pooled: &[f64], runs_a: usize, sum_a: f64, chosen: &[usize]) -> Option<f64> {
    let (mut sum_from_a, mut sum_from_b, mut exchanged) = (0.0, 0.0, 0u32);
    for &run in chosen {
        if run < runs_a {
            sum_from_a += pooled[run];
        } else {
            sum_from_b += pooled[run];
            exchanged += 1;
        }
    }
    (exchanged > 0).then(|| (sum_from_b - (sum_a - sum_from_a)) / f64::from(exchanged))
}

fn all(pooled: &[f64], runs_a: usize) -> Relabelled {
    let sum_a = pooled[..runs_a].iter().sum();
    let spare = pooled.len() - runs_a;
    let mut chosen: Vec<usize> = (0..runs_a).collect();
    let mut values = Vec::new();
    // The last place that can advance does, and those after it follow closely.
    while let Some(place) = (0..runs_a).rev().find(|&place| chosen[place] < spare + place) {
        chosen[place] += 1;
        for next in place + 1..runs_a {
            chosen[next] = chosen[next - 1] + 1;
        }
        values.extend(typical(pooled, runs_a, sum_a, &chosen));
    }
    Relabelled::new(values, 1, true)
}

fn drawn(pooled: &[f64], runs_a: usize, seed: u64) -> Relabelled {
    let mut rng = Rng::new(seed);
    let sum_a = pooled[..runs_a].iter().sum();
    let mut order: Vec<usize> = (0..pooled.len()).collect();
    let draws = draws_for(pooled.len());
    let mut values = Vec::with_capacity(draws);
    for _ in 0..draws {
        for place in 0..runs_a {
            let other = place + rng.below(order.len() - place);
            order.swap(place, other);
        }
        values.extend(typical(pooled, runs_a, sum_a, &order[..runs_a]));
    }
    let same = 1 + draws - values.len();
    Relabelled::new(values, same, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    #[test]
    fn smallest_p_is_that_of_the_table() {
        let table =
            [(3, 0.1), (4, 0.028_571_429), (5, 0.007_936_507_9), (6, 0.002_164_502_2), (8, 0.000_155_400_16)];
        for (runs, p) in table {
            assert!((smallest_p(runs, runs) - p).abs() < 1e-9);
            let a: Vec<f64> = (0..runs).map(|n| n as f64).collect();
            let b: Vec<f64> = (0..runs).map(|n| 100.0 + n as f64).collect();
            let found = relabelled(&a, &b);
            assert!(found.exact && (found.p_two_sided(0.0) - p).abs() < 1e-9);
        }
        assert_eq!(
            (runs_needed(0.05), runs_needed(0.0), smallest_p(0, 3), smallest_p(90, 90)),
            (4, 28, 1.0, 0.0)
        );
    }

    #[test]
    fn p_is_that_of_scipy() {
        // scipy 1.17: permutation_test((a, b), difference of means, exact), one-sided 16/252.
        let a = [12.1, 9.8, 11.4, 10.2, 13.0];
        let b = [12.9, 11.9, 14.1, 12.4, 12.0];
        let found = relabelled(&a, &b);
        let by_hand = 16.0 / 252.0;
        assert!((found.p_greater(0.0) - by_hand).abs() < 1e-12, "{}", found.p_greater(0.0) * 252.0);
        assert!((found.p_two_sided(0.0) - 2.0 * by_hand).abs() < 1e-12);
    }

    #[test]
    fn interval_is_where_the_test_does_not_reject() {
        let a = [0.0, 1.0, 2.0, 4.0];
        let b = [10.0, 11.5, 12.0, 14.5];
        let interval = relabelled(&a, &b).interval(0.95).unwrap();
        assert!((interval.attained - (1.0 - 2.0 / 70.0)).abs() < 1e-12);
        // With one split allowed to fall outside, the ends are the closest and the farthest two
        // runs.
        assert_eq!((interval.lower, interval.upper), (6.0, 14.5));
        assert_eq!(relabelled(&a[..3], &b[..3]).interval(0.95), None);
    }

    #[test]
    fn edges_have_an_answer() {
        for (a, b) in [(&[][..], &[][..]), (&[1.0], &[]), (&[], &[1.0]), (&[1.0], &[1.0])] {
            assert_eq!(relabelled(a, b).p_two_sided(0.0), 1.0);
        }
        assert_eq!(relabelled(&[1.0; 9_999], &[2.0]).p_greater(0.0), 1.0 / 10_000.0);
        assert_eq!(relabelled(&[2.0], &[1.0; 9_999]).p_less(0.0), 1.0 / 10_000.0);
        let same = [7.0; 5];
        assert_eq!(relabelled(&same, &same).p_two_sided(0.0), 1.0);
    }

    #[test]
    fn drawn_splits_agree_with_all() {
        let mut rng = Rng::new(8);
        let pooled: Vec<f64> = (0..14).map(|run| rng.normal() + if run < 6 { 0.0 } else { 1.0 }).collect();
        let (every, some) = (all(&pooled, 6), drawn(&pooled, 6, 9));
        assert!((every.p_two_sided(0.0) - some.p_two_sided(0.0)).abs() < 0.015);
        let many: Vec<f64> = (0..60).map(|run| f64::from(run % 7)).collect();
        assert!(!relabelled(&many[..30], &many[30..]).exact);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(16))]
        #[test]
        fn swapped_sides_mirror_also_where_splits_are_drawn(
            a in proptest::collection::vec(0f64..9.0, 11..14),
            b in proptest::collection::vec(2f64..11.0, 11..14),
        ) {
            let (there, back) = (relabelled(&a, &b), relabelled(&b, &a));
            prop_assert!(!there.exact && !back.exact);
            for shift in [-1.0, 0.0, 1.5] {
                prop_assert_eq!(there.p_greater(shift), back.p_less(-shift));
                prop_assert_eq!(there.p_two_sided(shift), back.p_two_sided(-shift));
            }
            let (there, back) = (there.interval(0.95).unwrap(), back.interval(0.95).unwrap());
            prop_assert_eq!((there.lower, there.upper), (-back.upper, -back.lower));
        }
    }

    proptest! {
        #[test]
        fn test_and_interval_agree(
            a in proptest::collection::vec(0f64..9.0, 4..7), b in proptest::collection::vec(3f64..12.0, 4..7),
        ) {
            let found = relabelled(&a, &b);
            let interval = found.interval(0.95).unwrap();
            prop_assert_eq!(found.p_two_sided(0.0) <= 0.05, interval.lower > 0.0 || interval.upper < 0.0);
            let back = relabelled(&b, &a).interval(0.95).unwrap();
            prop_assert!((interval.lower + back.upper).abs() < 1e-9);
        }
    }
}
