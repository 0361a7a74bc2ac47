//! Whether counts vary more from unit to unit than chance alone: the dispersion, and a rate ratio that allows for it.
//!
//! Quasi-Poisson (Wedderburn 1974; McCullagh and Nelder 1989, section 6.2.3): the variance is phi times the
//! mean, phi estimated by Pearson's statistic over its degrees of freedom. Assumes independent units and one
//! phi for all. About 1 for Poisson events, larger where spikes come in bursts or runs differ.

use super::conditional::{Exposure, RateRatio, total};
use crate::stats::law;

/// Pearson's statistic of units that share one rate; `None` without events or where a time is not positive.
fn pearson(units: &[Exposure]) -> Option<f64> {
    let sum = total(units);
    let sound = sum.events > 0 && units.iter().all(|unit| unit.time > 0.0 && unit.time.is_finite());
    let rate = sum.events as f64 / sum.time;
    let part = |unit: &Exposure| (unit.events as f64 - rate * unit.time).powi(2) / (rate * unit.time);
    sound.then(|| units.iter().map(part).sum())
}

/// Phi of units that share one rate; `None` with fewer than two units, without events or time.
pub fn phi(units: &[Exposure]) -> Option<f64> {
    if units.len() < 2 { None } else { Some(pearson(units)? / (units.len() - 1) as f64) }
}

/// The index of dispersion of counts in windows of equal length, variance over mean; `None` with fewer than two or no events.
pub fn index(counts: &[u64]) -> Option<f64> {
    let units: Vec<Exposure> = counts.iter().map(|&events| Exposure { events, time: 1.0 }).collect();
    phi(&units)
}

/// The rate of B over that of A with an interval by Student's t that allows for phi, at least 1, of both.
///
/// `None` unless both have events and there are three units in all.
pub fn rate_ratio(a: &[Exposure], b: &[Exposure], confidence: f64) -> Option<RateRatio> {
    let (sum_a, sum_b) = (total(a), total(b));
    let freedom = (a.len() + b.len()).checked_sub(2).filter(|&freedom| freedom > 0)? as f64;
    let phi = ((pearson(a)? + pearson(b)?) / freedom).max(1.0);
    let ln_ratio = (sum_b.events as f64 / sum_b.time).ln() - (sum_a.events as f64 / sum_a.time).ln();
    let error = (phi * (1.0 / sum_a.events as f64 + 1.0 / sum_b.events as f64)).sqrt();
    let reach = error * law::student_quantile(0.5 + 0.5 * confidence.clamp(0.0, 1.0), freedom);
    Some(RateRatio {
        ratio: ln_ratio.exp(),
        lower: (ln_ratio - reach).exp(),
        upper: (ln_ratio + reach).exp(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn units(counts: &[u64], time: f64) -> Vec<Exposure> {
        counts.iter().map(|&events| Exposure { events, time }).collect()
    }

    #[test]
    fn dispersion_is_variance_over_mean_for_equal_times() {
        // Mean 4, variance 20 / 3.
        assert!((index(&[1, 3, 5, 7]).unwrap() - 20.0 / 3.0 / 4.0).abs() < 1e-12);
        // Two units, rate 1: (1-2)^2/2 + (5-4)^2/4 over 1.
        let uneven = [Exposure { events: 1, time: 2.0 }, Exposure { events: 5, time: 4.0 }];
        assert!((phi(&uneven).unwrap() - 0.75).abs() < 1e-12);
        assert_eq!(
            (index(&[4, 4, 4]), index(&[0, 0]), index(&[3]), index(&[])),
            (Some(0.0), None, None, None)
        );
        assert_eq!(phi(&[Exposure { events: 1, time: 0.0 }, Exposure { events: 1, time: 1.0 }]), None);
    }

    #[test]
    fn an_interval_widens_with_phi_and_never_below_poisson() {
        let even = rate_ratio(&units(&[10, 10, 10], 5.0), &units(&[20, 20, 20], 5.0), 0.95).unwrap();
        // ln 2 +- t(0.975; 4) sqrt(1/30 + 1/60), with t = 2.776445105.
        let reach = 2.776_445_105 * (0.05f64).sqrt();
        assert!((even.lower / (2f64.ln() - reach).exp() - 1.0).abs() < 1e-8);
        assert!((even.upper / (2f64.ln() + reach).exp() - 1.0).abs() < 1e-8);
        let bursts = rate_ratio(&units(&[2, 3, 25], 5.0), &units(&[60, 0, 0], 5.0), 0.95).unwrap();
        assert!((bursts.ratio - even.ratio).abs() < 1e-12 && bursts.upper > 10.0 * even.upper);
        assert_eq!(rate_ratio(&units(&[1], 1.0), &units(&[1], 1.0), 0.95), None);
        assert_eq!(rate_ratio(&units(&[0, 0], 1.0), &units(&[1, 1], 1.0), 0.95), None);
        assert_eq!(rate_ratio(&[], &[], 0.95), None);
    }
}
