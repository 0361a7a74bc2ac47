//! Exact bounds on the mean of a Poisson count, from k counted events.
//!
//! Garwood (1936), "Fiducial limits for the Poisson distribution": the bounds are quantiles of
//! chi-squared divided by two. With no event the upper one is -ln(1 - confidence), the rule of
//! three at 95 %. Assumption: events come independently at a constant rate: bursts are counted once
//! (declustered). Counts divided by the observed duration are rates; every time here has the unit
//! that the caller uses.

use crate::law;

/// Count from which the chi-squared quantile is that of Wilson and Hilferty (1931), whose relative
/// error is then below 1e-9; the work of the exact one grows with the count.
const LARGE: u64 = 1_000_000;

/// Half the chi-squared quantile of 2 `shape` degrees of freedom.
fn half_chi2(p: f64, shape: u64) -> f64 {
    if shape < LARGE {
        return law::chi2_quantile(p, 2.0 * shape as f64) / 2.0;
    }
    let spread = 1.0 / (9.0 * shape as f64);
    shape as f64 * (1.0 - spread + law::normal_quantile(p) * spread.sqrt()).powi(3)
}

/// One-sided upper bound on the mean count if k events were counted.
pub fn upper(k: u64, confidence: f64) -> f64 {
    if k == 0 {
        // The rule of three, exactly; it is used after each run, and the gamma function would cost
        // memory.
        return -(-confidence.clamp(0.0, 1.0)).ln_1p();
    }
    half_chi2(confidence, k.saturating_add(1))
}

/// One-sided lower bound on the mean count if k events were counted; 0 without events.
pub fn lower(k: u64, confidence: f64) -> f64 {
    if k == 0 { 0.0 } else { half_chi2(1.0 - confidence, k) }
}

/// The two-sided interval of the mean count, each side missing with half of what the confidence
/// leaves.
pub fn interval(k: u64, confidence: f64) -> (f64, f64) {
    let side = 0.5 + confidence / 2.0;
    (lower(k, side), upper(k, side))
}

/// Time that must be observed, with k events, to claim at most one per `per_time`.
pub fn time_needed(k: u64, per_time: f64, confidence: f64) -> f64 {
    upper(k, confidence) * per_time
}

/// The time within which at most one event may be claimed, after k events in `observed`.
pub fn time_between(k: u64, observed: f64, confidence: f64) -> f64 {
    observed.max(0.0) / upper(k, confidence)
}

/// True if k events in `observed` show that they come more often than once per `per_time`.
pub fn comes_too_often(k: u64, observed: f64, per_time: f64, confidence: f64) -> bool {
    lower(k, confidence) * per_time > observed
}

/// Rate below which a mechanism may not have fired once in `observed`: no test of that length
/// excludes it.
pub fn hidden_rate(observed: f64, confidence: f64) -> f64 {
    if observed > 0.0 { -(-confidence.clamp(0.0, 1.0)).ln_1p() / observed } else { f64::INFINITY }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn near(value: f64, expected: f64, relative: f64) {
        assert!((value - expected).abs() <= relative * expected.abs(), "{value} is not {expected}");
    }

    #[test]
    fn upper_bounds_are_those_of_the_reference() {
        for (k, expected) in [
            (0, 2.995_732_3),
            (1, 4.743_864_5),
            (2, 6.295_793_6),
            (3, 7.753_656_5),
            (5, 10.513_035),
            (10, 16.962_219),
        ] {
            near(upper(k, 0.95), expected, 1e-7);
        }
    }

    #[test]
    fn intervals_are_those_of_garwood() {
        assert_eq!(interval(0, 0.95).0, 0.0);
        near(interval(0, 0.95).1, 3.688_879_5, 1e-7);
        for (k, low, high) in [
            (1, 0.025_317_808, 5.571_643_4),
            (2, 0.242_209_28, 7.224_687_7),
            (3, 0.618_672_12, 8.767_273_1),
            (5, 1.623_486_4, 11.668_332),
            (10, 4.795_388_7, 18.390_356),
            (20, 12.216_52, 30.888_378),
        ] {
            near(interval(k, 0.95).0, low, 1e-7);
            near(interval(k, 0.95).1, high, 1e-7);
        }
    }

    #[test]
    fn times_follow() {
        near(time_needed(0, 1.0, 0.95), 2.995_732_3, 1e-7);
        near(time_needed(2, 10.0, 0.95), 62.957_936, 1e-7);
        // A clean day supports at most one per eight hours, OSADL's 5 h 33 min one per 1.85 h.
        near(time_between(0, 24.0, 0.95), 8.01, 1e-3);
        near(time_between(0, 5.55, 0.95), 1.85, 2e-3);
        near(hidden_rate(2.0, 0.95), 2.995_732_3 / 2.0, 1e-7);
        // 10 events have a mean of at least 5.43 (95 %): too many for one per hour in 5 h, not in 6
        // h.
        near(lower(10, 0.95), 5.425_405_7, 1e-7);
        assert!(comes_too_often(10, 5.0, 1.0, 0.95) && !comes_too_often(10, 6.0, 1.0, 0.95));
        assert!(!comes_too_often(0, 0.0, 1.0, 0.95));
    }

    #[test]
    fn large_counts_go_on_where_the_exact_ones_end() {
        for p in [0.005, 0.05, 0.5, 0.95, 0.995] {
            near(half_chi2(p, LARGE), law::chi2_quantile(p, 2.0 * LARGE as f64) / 2.0, 1e-9);
        }
        assert!(upper(u64::MAX, 0.95) > 1.8e19 && lower(u64::MAX, 0.95) < 1.9e19);
    }

    #[test]
    fn edges_have_answers() {
        for x in [-1.0, 0.0, 0.5, 1.0, 2.0, f64::INFINITY, f64::NAN] {
            for k in [0, 1, LARGE, u64::MAX] {
                let _ = (upper(k, x), lower(k, x), interval(k, x), time_needed(k, x, 0.95));
                let _ = (time_between(k, x, 0.95), hidden_rate(x, x), comes_too_often(k, x, x, x));
            }
        }
        assert_eq!(hidden_rate(0.0, 0.95), f64::INFINITY);
        assert_eq!(upper(0, 1.0), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn bounds_enclose_the_count_and_invert_the_poisson_tail(k in 1u64..500, confidence in 0.6f64..0.999) {
            let (low, high) = interval(k, confidence);
            prop_assert!(low < k as f64 && (k as f64) < high);
            prop_assert!(upper(k, confidence) < upper(k + 1, confidence));
            prop_assert!((law::poisson_at_least(k, lower(k, confidence)) - (1.0 - confidence)).abs() < 1e-8);
            prop_assert!((law::poisson_at_least(k + 1, upper(k, confidence)) - confidence).abs() < 1e-8);
        }
    }
}
