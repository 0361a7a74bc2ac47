//! Precision of the tail in the data, as a condition to print a level: the fitted shape, its
//! interval and the bound.
//!
//! After Coles (2001), section 2.7 and example 3.4.1: a flat likelihood shows as a wide profile.
//! Assumes a fit with the usual shapes, not the restricted one, which often ends at its boundary.

use super::gev;
use super::grouped_sample::GroupedSample;
use super::profile::{ProfileInterval, TWO_SIDED_95, shape_interval};

/// Grounds for or against printing a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Determined {
    /// True if the fitted shape is at an end of the allowed range.
    pub at_edge: bool,
    /// The 95 % profile interval of the shape.
    pub shape: ProfileInterval,
    /// Ratio of the upper bound to the largest observed value; infinite without a bound.
    pub times_largest: f64,
}

impl Determined {
    /// True if there is a bound at all, the only such condition for a claim.
    ///
    /// If only narrow bounds are printed, a heavy tail has one when the run looks light, and it is
    /// then too low more often than its confidence states. Only conditions that do not depend on
    /// the appearance of the run may refuse it.
    pub fn is_bounded(&self) -> bool {
        !self.at_edge && self.times_largest.is_finite()
    }
}

/// Judges a fit of maxima and the upper bound of a level, in the unit of the values.
pub fn of_maxima(steps: &GroupedSample, fit: &gev::GevFit, bound: Option<f64>) -> Determined {
    Determined {
        at_edge: fit.shape.is_edge(fit.law.xi),
        shape: shape_interval(steps, fit, TWO_SIDED_95),
        times_largest: times(bound, steps.largest()),
    }
}

/// Ratio of a bound to the largest value; infinite without a bound.
pub fn times(bound: Option<f64>, largest: f64) -> f64 {
    bound.filter(|_| largest > 0.0).map_or(f64::INFINITY, |bound| bound / largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::tail::gev::{Gev, Shape};
    use crate::tail::profile::{Level, ONE_SIDED_95, level_upper};

    #[test]
    fn heavy_tails_and_missing_bounds_are_not_enough() {
        let mut rng = Rng::new(4);
        let mut drawn = |xi: f64| {
            let law = Gev { mu: 20.0, sigma: 2.0, xi };
            let values: Vec<f64> = (0..300).map(|_| law.level_of_rate(rng.exponential())).collect();
            let steps = GroupedSample::new(&values, 0.0).unwrap();
            let fit = gev::fit(&steps, Shape::USUAL).unwrap();
            (steps, fit)
        };
        let level = Level { blocks: 300.0, probability: 0.95 };
        let (steps, fit) = drawn(0.0);
        let bound = level_upper(&steps, &fit, level, ONE_SIDED_95);
        assert!(of_maxima(&steps, &fit, bound).is_bounded());
        assert!(!of_maxima(&steps, &fit, None).is_bounded());
        let (steps, fit) = drawn(0.4);
        let wide = of_maxima(&steps, &fit, Some(1e6));
        assert!(wide.is_bounded(), "however wide: {wide:?}");
        let (steps, fit) = drawn(3.0);
        let heavy = of_maxima(&steps, &fit, Some(1.0));
        assert!(heavy.at_edge && !heavy.is_bounded(), "{heavy:?}");
        let (steps, fit) = drawn(-0.8);
        assert!(!of_maxima(&steps, &fit, Some(1.0)).is_bounded(), "{fit:?}");
    }
}
