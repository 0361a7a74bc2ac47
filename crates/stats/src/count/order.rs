//! Ranks of the ordered observations that bound a quantile, free of any distribution.
//!
//! Wilks (1941), "Determination of sample sizes for setting tolerance limits"; David and Nagaraja
//! (2003), Order Statistics. The number of observations below the q-quantile is binomial (n, q).
//! Assumption: independent observations of one law. Dependent samples must be counted as blocks.

use crate::law;

/// Ranks of a two-sided interval for a quantile, counted from 1 in ascending order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranks {
    /// The rank of the lower end.
    pub lower: u64,
    /// The rank of the upper end.
    pub upper: u64,
    /// Probability that the interval holds the quantile: at least the requested confidence.
    pub coverage: f64,
}

/// Least number of observations whose maximum is above the q-quantile with this confidence; `None`
/// if no number is enough.
pub fn observations_needed(q: f64, confidence: f64) -> Option<u64> {
    if !(q > 0.0 && q < 1.0 && confidence < 1.0) {
        return None;
    }
    let exact = (-confidence.max(0.0)).ln_1p() / q.ln();
    // A last bit of the logarithms must not require one more where the bound is reached exactly.
    Some(((exact * (1.0 - 1e-12)).ceil() as u64).max(1))
}

/// Lowest rank that is at or above the q-quantile with this confidence; `None` if even the maximum
/// is not.
pub fn upper_rank(n: u64, q: f64, confidence: f64) -> Option<u64> {
    if !sensible(n, q, confidence) {
        return None;
    }
    let below = first(n, |k| law::binomial_at_most(k, n, q) >= confidence);
    (below < n).then_some(below + 1)
}

/// Highest rank that is at or below the q-quantile with this confidence; `None` if even the minimum
/// is not.
pub fn lower_rank(n: u64, q: f64, confidence: f64) -> Option<u64> {
    if !sensible(n, q, confidence) {
        return None;
    }
    let rank = first(n, |k| law::binomial_at_most(k, n, q) > 1.0 - confidence);
    (rank > 0).then_some(rank)
}

/// Ranks that enclose the q-quantile, each side missing with at most half of what the confidence
/// leaves; `None` if n is too small for it.
pub fn interval(n: u64, q: f64, confidence: f64) -> Option<Ranks> {
    let side = 0.5 + confidence / 2.0;
    let (lower, upper) = (lower_rank(n, q, side)?, upper_rank(n, q, side)?);
    let missed = law::binomial_at_most(lower - 1, n, q) + law::binomial_at_least(upper, n, q);
    Some(Ranks { lower, upper, coverage: 1.0 - missed })
}

fn sensible(n: u64, q: f64, confidence: f64) -> bool {
    n > 0 && q > 0.0 && q < 1.0 && confidence > 0.0 && confidence < 1.0
}

/// The first of 0 to n that holds, where all after it do; n if none.
fn first(n: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    #[test]
    fn numbers_are_those_of_wilks() {
        for (q, n) in [
            (0.9, 29),
            (0.95, 59),
            (0.99, 299),
            (0.999, 2995),
            (0.9999, 29_956),
            (0.99999, 299_572),
            (0.999_999, 2_995_731),
        ] {
            let needed = observations_needed(q, 0.95);
            assert_eq!(needed, Some(n));
            assert_eq!((upper_rank(n, q, 0.95), upper_rank(n - 1, q, 0.95)), (Some(n), None), "{q}");
        }
        assert_eq!(observations_needed(0.9, 0.19), Some(2));
    }

    #[test]
    fn ranks_are_those_of_the_binomial_law() {
        let ranks = interval(100, 0.5, 0.95).unwrap();
        assert_eq!((ranks.lower, ranks.upper), (40, 61));
        assert!((ranks.coverage - 0.964_799_8).abs() < 1e-6);
        for (n, q, lower, upper) in [(86_400, 0.99, 85_478, 85_594), (10_000_000, 0.5, 4_996_901, 5_003_100)]
        {
            let ranks = interval(n, q, 0.95).unwrap();
            assert_eq!((ranks.lower, ranks.upper), (lower, upper));
        }
        assert_eq!(upper_rank(10_000_000, 0.999, 0.95), Some(9_990_165));
        assert_eq!(interval(5, 0.5, 0.95), None);
        assert_eq!((upper_rank(0, 0.5, 0.9), lower_rank(0, 0.5, 0.9)), (None, None));
        assert_eq!((upper_rank(1, 0.5, 0.4), lower_rank(1, 0.5, 0.4)), (Some(1), Some(1)));
    }

    #[test]
    fn the_interval_has_its_nominal_coverage() {
        let ranks = interval(60, 0.9, 0.9).unwrap();
        let (mut rng, mut held) = (Rng::new(SEED), 0);
        for _ in 0..2000 {
            let mut x: Vec<f64> = (0..60).map(|_| rng.uniform()).collect();
            x.sort_by(f64::total_cmp);
            let holds = x[ranks.lower as usize - 1] <= 0.9 && 0.9 <= x[ranks.upper as usize - 1];
            held += u32::from(holds);
        }
        let error = 3.0 * (ranks.coverage * (1.0 - ranks.coverage) / 2000.0).sqrt();
        assert!((f64::from(held) / 2000.0 - ranks.coverage).abs() < error, "{held} {ranks:?}");
    }

    #[test]
    fn edges_have_answers() {
        for x in [f64::NEG_INFINITY, -1.0, 0.0, 0.5, 1.0, 2.0, f64::NAN] {
            for y in [-1.0, 0.0, 0.95, 1.0, f64::NAN] {
                let _ = (observations_needed(x, y), interval(7, x, y));
                let _ = (upper_rank(1 << 40, x, y), lower_rank(3, x, y));
            }
        }
        assert_eq!((observations_needed(1.0, 0.95), observations_needed(0.5, 1.0)), (None, None));
    }

    proptest! {
        #[test]
        fn coverage_is_what_was_asked_for(n in 1u64..20_000, q in 0.001f64..0.999, confidence in 0.5f64..0.999) {
            if let Some(ranks) = interval(n, q, confidence) {
                prop_assert!(ranks.coverage >= confidence - 1e-9);
                prop_assert!(1 <= ranks.lower && ranks.lower < ranks.upper && ranks.upper <= n);
                // One rank further in would miss too often on that side.
                let side = (1.0 - confidence) / 2.0;
                prop_assert!(law::binomial_at_most(ranks.lower, n, q) > side - 1e-12);
                prop_assert!(law::binomial_at_least(ranks.upper - 1, n, q) > side - 1e-9);
            }
        }

        #[test]
        fn the_smallest_number_is_the_smallest(q in 0.01f64..0.999, confidence in 0.1f64..0.999) {
            let n = observations_needed(q, confidence).unwrap();
            let reached = |n: u64| 1.0 - q.powf(n as f64);
            prop_assert!(reached(n) >= confidence - 1e-9);
            prop_assert!(n == 1 || reached(n - 1) <= confidence + 1e-9);
        }
    }
}
