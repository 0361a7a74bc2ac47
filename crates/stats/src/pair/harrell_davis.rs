//! A quantile as a weighted mean of all order statistics: less noisy than one of them, smooth in
//! the data.
//!
//! Harrell and Davis (1982), Biometrika 69: the weight of the i-th of n is the probability that a
//! Beta((n + 1) q, (n + 1) (1 - q)) variable lies between (i - 1) / n and i / n. Assumes
//! nothing of the law.

use crate::law;

/// Distance from the quantile, in standard deviations of the weights and in ranks, beyond which
/// ranks weigh nothing; the ranks are for quantiles next to an end, whose weights fall off
/// exponentially.
const REACH: (f64, f64) = (12.0, 40.0);

/// Nodes and weights of Gauss's rule with five points on -1 to 1.
const GAUSS: [(f64, f64); 5] = [
    (-0.906_179_845_938_664, 0.236_926_885_056_189_08),
    (-0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
    (0.0, 0.568_888_888_888_888_9),
    (0.538_469_310_105_683_1, 0.478_628_670_499_366_47),
    (0.906_179_845_938_664, 0.236_926_885_056_189_08),
];

/// The law of the weights for n values and a quantile.
struct Weighing {
    a: f64,
    b: f64,
    ln_beta: f64,
    deviation: f64,
    reach: (f64, f64),
}

impl Weighing {
    fn new(n: f64, q: f64) -> Weighing {
        let (a, b) = ((n + 1.0) * q, (n + 1.0) * (1.0 - q));
        let deviation = (q * (1.0 - q) / (n + 2.0)).sqrt();
        let reach = REACH.0 * deviation + REACH.1 / n;
        Weighing { a, b, ln_beta: law::ln_beta(a, b), deviation, reach: (q - reach, q + reach) }
    }

    /// The weight of the ranks between two shares of n.
    ///
    /// The incomplete beta function costs the square root of n per call, so it is kept for the few
    /// intervals that are wide; across narrow ones the density is smooth and five points integrate
    /// it.
    fn between(&self, low: f64, high: f64) -> f64 {
        if high - low > 0.25 * self.deviation {
            return law::beta_lower(self.a, self.b, high) - law::beta_lower(self.a, self.b, low);
        }
        let (middle, half) = (0.5 * (low + high), 0.5 * (high - low));
        let density = |x: f64| ((self.a - 1.0) * x.ln() + (self.b - 1.0) * (-x).ln_1p() - self.ln_beta).exp();
        half * GAUSS.iter().map(|(node, weight)| weight * density(middle + half * node)).sum::<f64>()
    }
}

/// Weights of n order statistics for one quantile, for use with every sample of that size.
pub struct Weights {
    n: usize,
    first: usize,
    weights: Vec<f64>,
}

impl Weights {
    /// Weights of n values at quantile q; below 0 and above 1 it is the minimum and the maximum.
    pub fn new(n: usize, q: f64) -> Weights {
        if n == 0 {
            return Weights { n, first: 0, weights: Vec::new() };
        }
        if !(q > 0.0 && q < 1.0) {
            return Weights { n, first: if q >= 1.0 { n - 1 } else { 0 }, weights: vec![1.0] };
        }
        let size = n as f64;
        let weighing = Weighing::new(size, q);
        let (low, high) = weighing.reach;
        let first = (low * size).max(0.0) as usize;
        let last = ((high * size).ceil() as usize).clamp(first + 1, n);
        let share = |rank: usize| rank as f64 / size;
        let mut weights: Vec<f64> =
            (first..last).map(|rank| weighing.between(share(rank), share(rank + 1))).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        Weights { n, first, weights }
    }

    /// Quantile of values in ascending order; `None` if they are not as many as the weights are
    /// for.
    pub fn of_sorted(&self, sorted: &[f64]) -> Option<f64> {
        let values = sorted.get(self.first..self.first + self.weights.len())?;
        let weighted = || self.weights.iter().zip(values).map(|(weight, value)| weight * value).sum();
        (sorted.len() == self.n && self.n > 0).then(weighted)
    }
}

/// The values in ascending order.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// The quantile (0.99) of values in any order; `None` without values.
pub fn quantile(values: &[f64], q: f64) -> Option<f64> {
    Weights::new(values.len(), q).of_sorted(&sorted(values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::PORT_PIRIE_M;
    use crate::rng::Rng;
    use proptest::prelude::*;

    const AT: [f64; 3] = [0.5, 0.9, 0.95];

    fn near(found: Option<f64>, expected: f64, tolerance: f64) {
        assert!(
            found.is_some_and(|found| (found - expected).abs() <= tolerance),
            "{found:?} is not {expected}"
        );
    }

    #[test]
    fn port_pirie_has_its_published_quantiles() {
        for (q, expected) in AT.into_iter().zip([3.944_603_9, 4.312_909_6, 4.458_780_8]) {
            near(quantile(&PORT_PIRIE_M, q), expected, 1e-7);
        }
    }

    #[test]
    fn large_samples_cost_little_and_keep_their_digits() {
        // The values are the ranks, so the quantile is n times the mean of the weights' law, plus
        // one half.
        for (n, q) in [(86_400, 0.5), (86_400, 0.99), (86_400, 0.9999), (1_000_000, 0.9)] {
            let ranks: Vec<f64> = (1..=n).map(f64::from).collect();
            let found = Weights::new(ranks.len(), q).of_sorted(&ranks);
            near(found, f64::from(n) * q + 0.5, 1e-4);
        }
    }

    #[test]
    fn the_two_ways_to_integrate_agree() {
        // From 64 values on at the median the density is integrated; the distribution function is
        // exact.
        for (n, q) in [(70, 0.5), (600, 0.9), (3_600, 0.99)] {
            let weighing = Weighing::new(f64::from(n), q);
            let weights = Weights::new(n as usize, q);
            let below = |rank: usize| law::beta_lower(weighing.a, weighing.b, rank as f64 / f64::from(n));
            for (at, weight) in weights.weights.iter().enumerate() {
                let rank = weights.first + at;
                assert!((weight - (below(rank + 1) - below(rank))).abs() < 1e-11, "{n} {q} {rank}");
            }
        }
    }

    #[test]
    fn edges_have_an_answer() {
        assert_eq!(quantile(&[], 0.5), None);
        near(quantile(&[7.0], 0.99), 7.0, 1e-12);
        near(quantile(&[3.0, 1.0, 2.0], 0.0), 1.0, 0.0);
        near(quantile(&[3.0, 1.0, 2.0], 1.5), 3.0, 0.0);
        near(quantile(&[5.0; 900], 0.3), 5.0, 1e-12);
        assert!(quantile(&[1.0, 2.0], f64::NAN).is_some());
        assert_eq!(Weights::new(3, 0.5).of_sorted(&[1.0; 4]), None);
    }

    proptest! {
        #[test]
        fn quantiles_stay_inside_and_rise_with_q(seed in 0u64..1_000, n in 1usize..400, q in 0.001f64..0.999) {
            let mut rng = Rng::new(seed);
            let values: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
            let sorted = sorted(&values);
            let found = quantile(&values, q).unwrap();
            prop_assert!(found >= sorted[0] - 1e-9 && found <= sorted[n - 1] + 1e-9);
            prop_assert!(quantile(&values, (q + 0.1).min(1.0)).unwrap() >= found - 1e-9);
        }
    }
}
