//! Dispersion of counts: their variation from unit to unit beyond chance.
//!
//! Quasi-Poisson (Wedderburn 1974; McCullagh and Nelder 1989, section 6.2.3): the variance is phi
//! times the mean, phi estimated by Pearson's statistic over its degrees of freedom. Assumes
//! independent units and one phi for all. About 1 for Poisson events, larger where spikes come in
//! bursts or runs differ.

use super::conditional_binomial::{Exposure, total};

/// Pearson's statistic of units that share one rate; `None` without events or where a time is not
/// positive.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn units(counts: &[u64], time: f64) -> Vec<Exposure> {
        counts.iter().map(|&events| Exposure { events, time }).collect()
    }

    #[test]
    fn dispersion_is_variance_over_mean_for_equal_times() {
        // Mean 4, variance 20 / 3.
        assert!((phi(&units(&[1, 3, 5, 7], 5.0)).unwrap() - 20.0 / 3.0 / 4.0).abs() < 1e-12);
        // Two units, rate 1: (1-2)^2/2 + (5-4)^2/4 over 1.
        let uneven = [Exposure { events: 1, time: 2.0 }, Exposure { events: 5, time: 4.0 }];
        assert!((phi(&uneven).unwrap() - 0.75).abs() < 1e-12);
        assert_eq!(
            [&[4, 4, 4][..], &[0, 0], &[3], &[]].map(|counts| phi(&units(counts, 1.0))),
            [Some(0.0), None, None, None]
        );
        assert_eq!(phi(&[Exposure { events: 1, time: 0.0 }, Exposure { events: 1, time: 1.0 }]), None);
    }
}
