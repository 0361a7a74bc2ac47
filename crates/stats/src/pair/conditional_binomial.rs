//! Test of two event rates, from one count each: given the sum of the counts, the share of one is
//! binomial.
//!
//! Przyborowski and Wilenski (1940), Biometrika 31; the interval is Clopper and Pearson's (1934)
//! for the share, carried over to the ratio. Assumes Poisson events: decluster first, and see
//! `overdispersion` when there are several units.
//!
//! The two-sided p is twice the smaller tail. Adding up the outcomes that are no more likely gives
//! the same for equal times; for unequal times only doubling agrees with the interval, so that p <=
//! 0.05 exactly when the 95 % interval excludes 1.

use crate::law;

/// Number of events in an observed time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exposure {
    pub events: u64,
    /// Observed time, in any unit that both sides share.
    pub time: f64,
}

/// The rate of B divided by that of A, with its exact interval; above 1 B has more events.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateRatio {
    /// Observed ratio; infinite when A has no events.
    pub ratio: f64,
    /// Lower end of the interval, 0 when B has no events.
    pub lower: f64,
    /// Upper end of the interval, infinite when A has no events.
    pub upper: f64,
}

/// The sum over units; saturates.
pub fn total(units: &[Exposure]) -> Exposure {
    units.iter().fold(Exposure { events: 0, time: 0.0 }, |sum, unit| Exposure {
        events: sum.events.saturating_add(unit.events),
        time: sum.time + unit.time,
    })
}

/// The share of the time that is A's; `None` unless both times are positive.
fn share_of_a(a: Exposure, b: Exposure) -> Option<f64> {
    let share = a.time / (a.time + b.time);
    (a.time > 0.0 && b.time > 0.0 && share > 0.0 && share < 1.0).then_some(share)
}

/// The probability of counts at least this unequal when both rates are the same, two-sided; 1
/// without time or events.
pub fn p_two_sided(a: Exposure, b: Exposure) -> f64 {
    let Some(share) = share_of_a(a, b) else { return 1.0 };
    let both = a.events.saturating_add(b.events);
    let few = law::binomial_at_most(a.events, both, share);
    let many = law::binomial_at_least(a.events, both, share);
    (2.0 * few.min(many)).min(1.0)
}

/// The probability that B has this number of the events or more when both rates are the same; 1
/// without time or events.
pub fn p_more(a: Exposure, b: Exposure) -> f64 {
    let Some(share) = share_of_a(a, b) else { return 1.0 };
    law::binomial_at_least(b.events, a.events.saturating_add(b.events), 1.0 - share)
}

/// The ratio of the rates with its exact interval at this confidence (0.95); `None` without time or
/// any event.
pub fn rate_ratio(a: Exposure, b: Exposure, confidence: f64) -> Option<RateRatio> {
    share_of_a(a, b)?;
    let both = a.events.checked_add(b.events)?;
    if both == 0 {
        return None;
    }
    let tail = 0.5 * (1.0 - confidence.clamp(0.0, 1.0));
    let of_share = |share: f64| share / (1.0 - share) * (a.time / b.time);
    let lower = if b.events == 0 {
        0.0
    } else {
        of_share(share_where(|share| law::binomial_at_least(b.events, both, share) < tail))
    };
    let upper = if a.events == 0 {
        f64::INFINITY
    } else {
        of_share(share_where(|share| law::binomial_at_most(b.events, both, share) > tail))
    };
    let ratio = (b.events as f64 / b.time) / (a.events as f64 / a.time);
    Some(RateRatio { ratio, lower, upper })
}

/// The share of B where `below` turns false.
fn share_where(below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if below(middle) { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn in_time(events: u64, time: f64) -> Exposure {
        Exposure { events, time }
    }

    #[test]
    fn p_is_that_of_the_tables() {
        for (a, b, p) in [(5, 0, 0.0625), (6, 0, 0.03125), (8, 0, 0.007_812_5), (12, 4, 0.076_812_744)] {
            assert!((p_two_sided(in_time(a, 30.0), in_time(b, 30.0)) - p).abs() < 1e-8, "{a} {b}");
            assert!((p_two_sided(in_time(b, 30.0), in_time(a, 30.0)) - p).abs() < 1e-8, "{b} {a}");
        }
        // Twice the tail P(X >= 7), X of 9 trials with share 1/3: 163/19683 (by hand).
        assert!((p_two_sided(in_time(7, 1.0), in_time(2, 2.0)) - 2.0 * 163.0 / 19_683.0).abs() < 1e-12);
    }

    #[test]
    fn interval_is_that_of_clopper_and_pearson() {
        // scipy 1.17: binomtest(4, 16).proportion_ci() is [0.0726620, 0.5237708], as odds below.
        let found = rate_ratio(in_time(12, 1.0), in_time(4, 1.0), 0.95).unwrap();
        assert!((found.ratio - 1.0 / 3.0).abs() < 1e-12);
        assert!((found.lower - 0.072_662_0 / (1.0 - 0.072_662_0)).abs() < 1e-6);
        assert!((found.upper - 0.523_770_8 / (1.0 - 0.523_770_8)).abs() < 1e-6);
    }

    #[test]
    fn edges_have_an_answer() {
        assert_eq!(p_two_sided(in_time(0, 1.0), in_time(0, 1.0)), 1.0);
        assert_eq!(p_two_sided(in_time(3, 0.0), in_time(3, 1.0)), 1.0);
        assert_eq!(rate_ratio(in_time(0, 1.0), in_time(0, 1.0), 0.95), None);
        assert_eq!(rate_ratio(in_time(3, f64::NAN), in_time(0, 1.0), 0.95), None);
        let none_in_a = rate_ratio(in_time(0, 1.0), in_time(5, 1.0), 0.95).unwrap();
        assert!(none_in_a.ratio.is_infinite() && none_in_a.upper.is_infinite() && none_in_a.lower > 0.9);
        let none_in_b = rate_ratio(in_time(5, 1.0), in_time(0, 1.0), 0.95).unwrap();
        assert_eq!((none_in_b.ratio, none_in_b.lower), (0.0, 0.0));
        assert_eq!(total(&[in_time(u64::MAX, 1.0), in_time(9, 2.0)]), in_time(u64::MAX, 3.0));
        assert!(p_two_sided(in_time(u64::MAX, 1.0), in_time(9, 1.0)) < 1e-9);
    }

    proptest! {
        #[test]
        fn test_and_interval_agree(
            a in 0u64..60, b in 0u64..60, time_a in 0.1f64..10.0, time_b in 0.1f64..10.0,
        ) {
            let (a, b) = (in_time(a, time_a), in_time(b, time_b));
            let p = p_two_sided(a, b);
            prop_assert!((0.0..=1.0).contains(&p));
            if let Some(found) = rate_ratio(a, b, 0.95) {
                prop_assert!(found.lower <= found.ratio && found.ratio <= found.upper);
                if (p - 0.05).abs() > 1e-9 {
                    prop_assert_eq!(p < 0.05, found.lower > 1.0 || found.upper < 1.0);
                }
            }
        }
    }
}
