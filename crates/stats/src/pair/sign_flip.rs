//! Test whether paired differences are centred on zero: each sign is as likely as the opposite.
//!
//! Fisher's randomisation test (1935, The Design of Experiments, section 21); the interval is its
//! inversion by subset means (Hartigan 1969). Assumes that under no effect each difference is as
//! likely as its negative, which the random order inside a pair brings about.
//!
//! Exact up to 20 pairs; beyond, p = (b + 1) / (B + 1) from B seeded draws (Phipson and Smyth
//! 2010). A two-sided p is twice the one-sided one, which for all flips equals counting sums at
//! least as far from 0.

use super::inversion::{Relabelled, draws_for};
use crate::rng::{Rng, SEED};

/// Largest number of pairs for which all flips are gone through.
const EXACT_PAIRS: usize = 20;

/// Smallest two-sided p that this many pairs can give: 2^(1 - pairs).
pub fn smallest_p(pairs: usize) -> f64 {
    2f64.powi(1 - pairs.clamp(1, 1_000) as i32)
}

/// Number of pairs from which p can be as small as alpha: 6 for 0.05.
pub fn pairs_needed(alpha: f64) -> usize {
    (1..1_000).find(|&pairs| smallest_p(pairs) <= alpha).unwrap_or(1_000)
}

/// The sign-flip test of the centre of these differences.
///
/// Flipping a subset of the signs leaves the sum at least as large as it was exactly when the
/// centre is at or above the subset's mean: the typical values are the means of the subsets.
pub fn relabelled(differences: &[f64]) -> Relabelled {
    if differences.len() > EXACT_PAIRS {
        drawn(differences, SEED)
    } else {
        Relabelled::of_subsets(differences)
    }
}

fn drawn(differences: &[f64], seed: u64) -> Relabelled {
    let mut rng = Rng::new(seed);
    let draws = draws_for(differences.len());
    let mut means = Vec::with_capacity(draws);
    for _ in 0..draws {
        let (mut sum, mut members) = (0.0, 0u32);
        for some in differences.chunks(64) {
            let flips = rng.next_u64();
            for (at, difference) in some.iter().enumerate() {
                if flips >> at & 1 == 1 {
                    sum += difference;
                    members += 1;
                }
            }
        }
        if members > 0 {
            means.push(sum / f64::from(members));
        }
    }
    let same = 1 + draws - means.len();
    Relabelled::new(means, same, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    /// P-value by Gray code: one sign changes at a time, and the sums are counted.
    fn p_by_signs(differences: &[f64]) -> f64 {
        let mut signed = differences.to_vec();
        let observed: f64 = signed.iter().sum();
        let (mut sum, mut as_far) = (observed, 1u32);
        for step in 1u32..1 << signed.len() {
            let at = step.trailing_zeros() as usize;
            sum -= 2.0 * signed[at];
            signed[at] = -signed[at];
            as_far += u32::from(sum.abs() >= observed.abs() - 1e-9);
        }
        f64::from(as_far) / f64::from(1u32 << signed.len())
    }

    #[test]
    fn smallest_p_is_that_of_the_table() {
        for (pairs, p) in [(4, 0.125), (5, 0.0625), (6, 0.03125), (7, 0.015625), (8, 0.007_812_5)] {
            assert_eq!(smallest_p(pairs), p);
            let clear: Vec<f64> = (1..=pairs).map(|n| n as f64).collect();
            assert_eq!(relabelled(&clear).p_two_sided(0.0), p);
        }
        assert_eq!(
            (smallest_p(0), smallest_p(10), pairs_needed(0.05), pairs_needed(0.0)),
            (1.0, 0.001_953_125, 6, 1_000)
        );
        assert_eq!(pairs_needed(0.03125), 6);
    }

    #[test]
    fn five_pairs_have_no_95_percent_interval() {
        assert_eq!(relabelled(&[1.0, 2.0, 3.0, 4.0, 5.0]).interval(0.95), None);
        let six = relabelled(&[1.0, 2.0, 3.0, 4.0, 5.0, 7.0]).interval(0.95).unwrap();
        assert_eq!((six.lower, six.upper, six.attained), (1.0, 7.0, 1.0 - 2.0 / 64.0));
    }

    #[test]
    fn eight_pairs_of_nothing_are_called_different_in_twelve_of_256_cases() {
        let mut rng = Rng::new(6);
        let alarms = (0..3_000).filter(|_| {
            let differences: Vec<f64> = (0..8).map(|_| rng.normal()).collect();
            relabelled(&differences).p_two_sided(0.0) <= 0.05
        });
        let rate = alarms.count() as f64 / 3_000.0;
        assert!((rate - 12.0 / 256.0).abs() <= 3.0 * (0.0469f64 * 0.9531 / 3_000.0).sqrt(), "{rate}");
    }

    #[test]
    fn edges_have_an_answer() {
        assert_eq!(relabelled(&[]).p_two_sided(0.0), 1.0);
        assert_eq!(relabelled(&[3.0]).p_two_sided(0.0), 1.0);
        let nothing = relabelled(&[0.0; 8]);
        assert_eq!((nothing.p_two_sided(0.0), nothing.p_greater(0.0)), (1.0, 1.0));
        let twenty: Vec<f64> = (1..=20).map(f64::from).collect();
        let found = relabelled(&twenty);
        assert!(found.exact && !relabelled(&[1.0; 21]).exact);
        assert_eq!(found.p_two_sided(0.0), smallest_p(20));
    }

    #[test]
    fn drawn_flips_agree_with_all() {
        let mut rng = Rng::new(3);
        let differences: Vec<f64> = (0..12).map(|_| rng.normal() + 0.5).collect();
        let (every, some) = (Relabelled::of_subsets(&differences), drawn(&differences, 4));
        assert!((every.p_two_sided(0.0) - some.p_two_sided(0.0)).abs() < 0.01);
        let (every, some) = (every.interval(0.9).unwrap(), some.interval(0.9).unwrap());
        assert!((every.lower - some.lower).abs() < 0.03 && (every.upper - some.upper).abs() < 0.03);
    }

    #[test]
    fn many_pairs_take_bounded_work() {
        let mut rng = Rng::new(5);
        let differences: Vec<f64> = (0..300).map(|_| rng.normal() + 1.0).collect();
        let found = relabelled(&differences);
        assert_eq!(found.p_two_sided(0.0), 2.0 / 20_000.0);
        let interval = found.interval(0.95).unwrap();
        assert!((interval.upper - interval.lower - 2.0 * 1.96 / 300f64.sqrt()).abs() < 0.03);
    }

    proptest! {
        #[test]
        fn sums_counted_one_by_one_give_the_same_p(differences in proptest::collection::vec(-9i32..9, 1..10)) {
            let differences: Vec<f64> = differences.iter().map(|&d| f64::from(d) * 0.1).collect();
            let found = relabelled(&differences).p_two_sided(0.0);
            prop_assert!((found - p_by_signs(&differences)).abs() < 1e-12);
        }

        #[test]
        fn test_and_interval_agree(differences in proptest::collection::vec(-9f64..12.0, 6..11)) {
            let found = relabelled(&differences);
            let interval = found.interval(0.95).unwrap();
            prop_assert!(interval.attained >= 0.95);
            prop_assert_eq!(found.p_two_sided(0.0) <= 0.05, interval.lower > 0.0 || interval.upper < 0.0);
            let mean = differences.iter().sum::<f64>() / differences.len() as f64;
            prop_assert!(interval.lower <= mean + 1e-9 && mean - 1e-9 <= interval.upper);
        }
    }
}
