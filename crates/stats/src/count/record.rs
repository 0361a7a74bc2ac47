//! Chance that future blocks exceed the largest of those observed.
//!
//! Of n + m exchangeable blocks each is as likely as any other to be the largest (Wilks 1942,
//! "Statistical prediction with special reference to the problem of tolerance limits"). Ties make
//! every chance here smaller. Assumption: the blocks are exchangeable: same conditions, and hardly
//! any dependence between blocks. Numbers of blocks may be real: durations divided by the length of
//! a block.

use crate::law;

/// Number of factors that are multiplied one by one; more go through the gamma function.
const FACTORS: u32 = 4096;

/// P(the largest of m future blocks exceeds the largest of n observed ones).
pub fn new_record(n: f64, m: f64) -> f64 {
    if m <= 0.0 {
        return 0.0;
    }
    if n <= 0.0 {
        return 1.0;
    }
    let chance = 1.0 / (1.0 + n / m);
    if chance.is_nan() { 1.0 } else { chance }
}

/// P(some of m future blocks exceeds the k-th largest of n observed ones); k = 1 is the largest.
///
/// With fewer than k observed blocks nothing bounds the future, and it is 1; k = 0 is a level above
/// everything, and it is 0.
pub fn beyond_kth(n: f64, m: f64, k: u32) -> f64 {
    if k <= 1 || m <= 0.0 {
        return if k == 0 { 0.0 } else { new_record(n, m) };
    }
    if n < f64::from(k) {
        return 1.0;
    }
    // The logarithm of the product of (n - i) / (n + m - i).
    let stays = if k <= FACTORS {
        (0..k).map(|i| (-m / (n + m - f64::from(i))).ln_1p()).sum()
    } else {
        let rising = |top: f64| law::ln_gamma(top + 1.0) - law::ln_gamma(top - f64::from(k) + 1.0);
        rising(n) - rising(n + m)
    };
    let chance = -f64::exp_m1(stays);
    if chance.is_nan() { 1.0 } else { chance.clamp(0.0, 1.0) }
}

/// Number of blocks that must be observed for their maximum to hold for m future blocks with this
/// confidence.
pub fn blocks_needed(m: f64, confidence: f64) -> f64 {
    let confidence = confidence.clamp(0.0, 1.0);
    if m <= 0.0 { 0.0 } else { m * confidence / (1.0 - confidence) }
}

/// Number of future blocks for which the maximum of n observed ones holds with this confidence.
pub fn blocks_covered(n: f64, confidence: f64) -> f64 {
    let confidence = confidence.clamp(0.0, 1.0);
    if n <= 0.0 { 0.0 } else { n * (1.0 - confidence) / confidence }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    #[test]
    fn an_hour_supports_little_about_a_day_and_a_day_much_about_an_hour() {
        for (n, m, expected) in [(3600.0, 3600.0, 0.5), (3600.0, 86_400.0, 0.96), (86_400.0, 3600.0, 0.04)] {
            assert!((new_record(n, m) - expected).abs() < 1e-12);
            assert_eq!(beyond_kth(n, m, 1), new_record(n, m));
        }
        assert!((blocks_needed(3600.0, 0.95) - 19.0 * 3600.0).abs() < 1e-6);
        assert!((blocks_covered(19.0, 0.95) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_kth_largest_is_the_product_of_the_note() {
        // n = 10, m = 5, k = 3: 1 - (10 * 9 * 8) / (15 * 14 * 13).
        assert!((beyond_kth(10.0, 5.0, 3) - (1.0 - 720.0 / 2730.0)).abs() < 1e-14);
        // A small chance keeps its digits: k m / n.
        assert!((beyond_kth(1e12, 1.0, 4) / 4e-12 - 1.0).abs() < 1e-9);
    }

    #[test]
    fn many_factors_agree_with_the_gamma_function() {
        let (n, m) = (50_000.5, 7.25);
        let long =
            |k: u32| 1.0 - (0..k).map(|i| (n - f64::from(i)) / (n + m - f64::from(i))).product::<f64>();
        for k in [FACTORS, FACTORS + 1] {
            assert!((beyond_kth(n, m, k) - long(k)).abs() < 1e-9);
        }
    }

    #[test]
    fn drawn_blocks_agree() {
        let (mut rng, mut beaten) = (Rng::new(SEED), 0);
        for _ in 0..4000 {
            let mut seen: Vec<f64> = (0..12).map(|_| rng.uniform()).collect();
            seen.sort_by(f64::total_cmp);
            beaten += u32::from((0..4).any(|_| rng.uniform() > seen[10]));
        }
        // k = 2: 1 - (12 * 11) / (16 * 15) = 0.45, plus or minus three standard errors.
        assert!((f64::from(beaten) / 4000.0 - 0.45).abs() < 0.0236, "{beaten}");
    }

    #[test]
    fn edges_have_answers() {
        assert_eq!((new_record(0.0, 0.0), new_record(0.0, 1.0), new_record(1.0, 0.0)), (0.0, 1.0, 0.0));
        assert_eq!((new_record(1.0, f64::INFINITY), new_record(f64::INFINITY, 1.0)), (1.0, 0.0));
        assert_eq!((beyond_kth(2.0, 1.0, 3), beyond_kth(2.0, 1.0, 0)), (1.0, 0.0));
        assert_eq!((blocks_needed(1.0, 1.0), blocks_needed(0.0, 1.0)), (f64::INFINITY, 0.0));
        for x in [-1.0, 0.0, 1.0, 1e300, f64::INFINITY, f64::NAN] {
            for y in [-1.0, 0.0, 1.0, 1e300, f64::INFINITY, f64::NAN] {
                for k in [0, 1, 2, u32::MAX] {
                    assert!((0.0..=1.0).contains(&beyond_kth(x, y, k)), "{x} {y} {k}");
                }
                let _ = (blocks_needed(x, y), blocks_covered(x, y));
            }
        }
    }

    proptest! {
        #[test]
        fn lower_levels_are_passed_more_easily(n in 5.0..1e6, m in 0.1..1e6, k in 1u32..5) {
            prop_assert!(beyond_kth(n, m, k) <= beyond_kth(n, m, k + 1));
            prop_assert!(beyond_kth(n, m, k) <= beyond_kth(n, m * 1.5, k));
            prop_assert!(beyond_kth(n * 1.5, m, k) <= beyond_kth(n, m, k));
            let enough = blocks_needed(m, 0.95);
            prop_assert!((new_record(enough, m) - 0.05).abs() < 1e-12);
        }
    }
}
