//! Power of a comparison: the difference that its size detects, and the units that a relevant
//! difference needs.
//!
//! The difference found with 80 % probability by a two-sided t test of the units: t(1 - alpha / 2)
//! and t(0.8) standard errors, the half width of the interval and a term for the power (Cohen 1988,
//! chapter 2). The exact tests of `flip` and `permutation` lose little against it. Assumes that the
//! spread seen is the spread there is.

use super::{permutation, sign_flip};
use crate::law;

/// Probability with which a difference is to be found.
const POWER: f64 = 0.8;
/// Largest number of units that is reported.
const MAX_UNITS: f64 = 100_000.0;

/// The difference that is found with 80 % probability, in the standard error's unit.
pub fn detectable(standard_error: f64, freedom: f64, alpha: f64) -> f64 {
    standard_error
        * (law::student_quantile(1.0 - 0.5 * alpha, freedom) + law::student_quantile(POWER, freedom))
}

/// Number of pairs that find a mean difference of `target` if differences spread by `deviation`;
/// `None` beyond 100 000.
pub fn pairs_needed(deviation: f64, target: f64, alpha: f64) -> Option<usize> {
    let seen = |pairs: f64| detectable(deviation / pairs.sqrt(), pairs - 1.0, alpha);
    smallest(sign_flip::pairs_needed(alpha), (deviation / target).powi(2), target, alpha, seen)
}

/// Number of runs in each of A and B that find a shift of `target` if runs spread by `deviation`;
/// `None` beyond 100 000.
pub fn runs_needed(deviation: f64, target: f64, alpha: f64) -> Option<usize> {
    let seen = |runs: f64| detectable(deviation * (2.0 / runs).sqrt(), 2.0 * runs - 2.0, alpha);
    smallest(permutation::runs_needed(alpha), 2.0 * (deviation / target).powi(2), target, alpha, seen)
}

/// Smallest number from `least` on that finds the target, searched upwards from the normal law's
/// result.
fn smallest(least: usize, squares: f64, target: f64, alpha: f64, seen: impl Fn(f64) -> f64) -> Option<usize> {
    let normal = law::normal_quantile(1.0 - 0.5 * alpha) + law::normal_quantile(POWER);
    let start = squares * normal * normal;
    if !(target > 0.0 && start < MAX_UNITS) {
        return None;
    }
    let start = (start as usize).max(least);
    (start..start + 50).find(|&units| seen(units as f64) <= target * (1.0 + 1e-12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_a_t_test() {
        // By the noncentral t law (scipy 1.17) 34 pairs, or 64 runs each, are the first with 80 %
        // at half a deviation.
        assert_eq!((pairs_needed(1.0, 0.5, 0.05), runs_needed(1.0, 0.5, 0.05)), (Some(34), Some(64)));
    }

    #[test]
    fn never_fewer_than_can_be_significant_nor_absurdly_many() {
        assert_eq!((pairs_needed(0.0, 1.0, 0.05), runs_needed(0.0, 1.0, 0.05)), (Some(6), Some(4)));
        assert_eq!((pairs_needed(1.0, 0.0, 0.05), runs_needed(1.0, 1e-6, 0.05)), (None, None));
        assert_eq!(
            (pairs_needed(f64::NAN, 1.0, 0.05), pairs_needed(1.0, f64::INFINITY, 0.05)),
            (None, Some(6))
        );
    }

    #[test]
    fn what_is_needed_is_what_sees_it() {
        for target in [0.3, 0.7, 2.0] {
            let pairs = pairs_needed(1.0, target, 0.05).unwrap() as f64;
            assert!(detectable(1.0 / pairs.sqrt(), pairs - 1.0, 0.05) <= target);
            let fewer = pairs - 1.0;
            assert!(pairs == 6.0 || detectable(1.0 / fewer.sqrt(), fewer - 1.0, 0.05) > target);
        }
    }
}
