//! Sample L-moments.
//!
//! Hosking (1990), L-moments; Hosking, Wallis and Wood (1985), Estimation of the generalized
//! extreme-value distribution by the method of probability-weighted moments, equations 14 and 15.
//! Assumes independent values.

use super::step::Step;

/// The first three sample L-moments, in the unit of the values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LMoments {
    pub l1: f64,
    /// L-scale: half the expected distance of two values.
    pub l2: f64,
    /// Third L-moment; its ratio to the second is the L-skewness.
    pub l3: f64,
}

impl LMoments {
    /// L-moments of values at the middles of their steps (an open one: at its edge); `None` for
    /// less than three.
    pub fn of(steps: &[Step], n: f64) -> Option<LMoments> {
        if n < 3.0 {
            return None;
        }
        // Counted from the first value, so that a common offset costs no digits.
        let origin = steps.first()?.low;
        let (mut b0, mut b1, mut b2, mut before) = (0.0, 0.0, 0.0, 0.0);
        // The sums over ranks 1 to k of (i - 1) and of (i - 1)(i - 2).
        let ones = |k: f64| k * (k - 1.0) / 2.0;
        let twos = |k: f64| k * (k - 1.0) * (k - 2.0) / 3.0;
        for step in steps {
            let half = if step.high.is_finite() { 0.5 * (step.high - step.low) } else { 0.0 };
            let x = step.low - origin + half;
            let after = before + step.count;
            b0 += x * step.count;
            b1 += x * (ones(after) - ones(before));
            b2 += x * (twos(after) - twos(before));
            before = after;
        }
        let (b0, b1, b2) = (b0 / n, b1 / (n * (n - 1.0)), b2 / (n * (n - 1.0) * (n - 2.0)));
        Some(LMoments { l1: origin + b0, l2: 2.0 * b1 - b0, l3: 6.0 * b2 - 6.0 * b1 + b0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::PORT_PIRIE_M;
    use crate::tail::gev::Gev;
    use crate::tail::grouped_sample::GroupedSample;

    fn moments_of(values: &[f64]) -> Option<LMoments> {
        let sample = GroupedSample::new(values, 0.0).unwrap();
        LMoments::of(sample.all(), sample.n())
    }

    #[test]
    fn port_pirie_has_the_published_start() {
        let start = Gev::of_moments(&moments_of(&PORT_PIRIE_M).unwrap());
        for (value, expected) in
            [(start.mu, 3.873_172_4), (start.sigma, 0.203_267_58), (start.xi, -0.051_477_126)]
        {
            assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
        }
    }

    #[test]
    fn ties_count_as_often_as_they_came() {
        let moments = moments_of(&[1.0, 2.0, 2.0, 2.0, 5.0, 9.0]).unwrap();
        // By the definition: half the mean distance of two.
        let values = [1.0, 2.0, 2.0, 2.0, 5.0, 9.0f64];
        let pairs =
            values.iter().enumerate().flat_map(|(i, a)| values[..i].iter().map(move |b| (a - b).abs()));
        assert!((moments.l2 - pairs.sum::<f64>() / 15.0 / 2.0).abs() < 1e-12);
        assert!((moments.l1 - 3.5).abs() < 1e-12);
    }

    #[test]
    fn shapes_join_at_zero() {
        let moments = LMoments { l1: 3.0, l2: 2.0, l3: 0.3 };
        let (a, b) = (Gev::of_moments_and_shape(&moments, 0.0), Gev::of_moments_and_shape(&moments, 2e-6));
        assert!((a.mu - b.mu).abs() < 1e-4 && (a.sigma - b.sigma).abs() < 1e-4);
        assert_eq!(moments_of(&[1.0, 2.0]), None);
    }
}
