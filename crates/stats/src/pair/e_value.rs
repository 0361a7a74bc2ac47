//! An e-value for the share of the events: two counts may be watched, and the test stopped as soon
//! as it decides.
//!
//! A beta(1/2, 1/2) mixture over the share against the share that equal rates would give (Robbins
//! 1970; Ramdas and others 2023, Statistical Science 38). Under equal rates it reaches 20 at any
//! time with probability at most 1 / 20. Assumes near-Poisson events (decluster first, index of
//! dispersion about 1) and a schedule that does not depend on what the present segment shows.

use crate::law;

/// E-value at which one may stop and reject equal rates at 5 %.
pub const STOP_AT: f64 = 20.0;

/// Largest overdispersion of the counts of one side's runs for which there is an e-value to stop
/// by.
pub const MAX_OVERDISPERSION: f64 = 2.0;

/// ln of the e-value against equal rates; `share_a` is A's share of the observed time, 0 to 1.
pub fn ln_e_value(events_a: u64, events_b: u64, share_a: f64) -> f64 {
    if !(share_a > 0.0 && share_a < 1.0) {
        return 0.0;
    }
    let (a, b) = (events_a as f64, events_b as f64);
    let mixture = law::ln_beta(a + 0.5, b + 0.5) - law::ln_beta(0.5, 0.5);
    mixture - a * share_a.ln() - b * (-share_a).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn may_stop(events_a: u64, events_b: u64, share_a: f64) -> bool {
        ln_e_value(events_a, events_b, share_a) >= STOP_AT.ln()
    }

    #[test]
    fn values_are_those_of_the_table() {
        for (a, b, e) in
            [(8, 0, 50.273_437), (12, 4, 1.587_005_6), (20, 8, 2.126_369_9), (30, 12, 6.575_752_3)]
        {
            for (a, b) in [(a, b), (b, a)] {
                assert!((ln_e_value(a, b, 0.5).exp() / e - 1.0).abs() < 1e-7, "{a} {b}");
            }
        }
        assert!(may_stop(8, 0, 0.5) && !may_stop(30, 12, 0.5));
    }

    #[test]
    fn the_mean_under_equal_rates_is_one() {
        // E over Bin(n, p) of the ratio of the mixture to it is 1, for any p.
        for share in [0.5, 0.2] {
            let mean: f64 = (0..=20u64)
                .map(|a| {
                    let ln_chance = law::ln_choose(20, a)
                        + a as f64 * f64::ln(share)
                        + (20 - a) as f64 * f64::ln(1.0 - share);
                    (ln_chance + ln_e_value(a, 20 - a, share)).exp()
                })
                .sum();
            assert!((mean - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn looking_after_every_event_keeps_five_percent() {
        let mut rng = Rng::new(11);
        let mut stopped = 0;
        for _ in 0..300 {
            let (mut a, mut b) = (0, 0);
            let stops = (0..150).any(|_| {
                if rng.uniform() < 0.3 {
                    a += 1
                } else {
                    b += 1
                }
                may_stop(a, b, 0.3)
            });
            stopped += u32::from(stops);
        }
        assert!(stopped <= 15 + 12, "{stopped} of 300");
    }

    #[test]
    fn edge_cases_have_no_evidence() {
        assert_eq!(ln_e_value(0, 0, 0.5), 0.0);
        assert_eq!((ln_e_value(5, 1, 0.0), ln_e_value(5, 1, f64::NAN)), (0.0, 0.0));
        assert!(!ln_e_value(u64::MAX, 0, 0.5).is_nan());
    }
}
