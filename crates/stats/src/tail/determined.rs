//! Whether the data determine the tail well enough to print a level: by the fitted shape, its interval and the bound.
//!
//! After Coles (2001), section 2.7 and example 3.4.1: a flat likelihood shows as a wide profile. Assumes a fit with
//! the usual shapes, not the guarded one, which often ends at its own edge.

use super::gev;
use super::gpd;
use super::profile::{Interval, TWO_SIDED_95, shape_interval};
use super::steps::Steps;

/// A shape whose interval reaches beyond has, for all that the data say, no variance. Of a histogram only: see
/// [`Determined::is_bounded`].
const HEAVIEST: f64 = 0.5;
/// A bound further above the largest value says nothing that is of use.
const TIMES_LARGEST: f64 = 3.0;

/// What speaks against printing a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Determined {
    /// Whether the fitted shape stands at an end of those allowed.
    pub at_edge: bool,
    /// The 95 % profile interval of the shape.
    pub shape: Interval,
    /// The upper bound over the largest observed value; infinite without a bound.
    pub times_largest: f64,
}

impl Determined {
    /// Whether there is a bound at all: what a claim about runs may ask.
    ///
    /// A bound that is printed where it is narrow is printed of a heavy tail where the run looks light, and is then
    /// too low more often than it says. Only what does not depend on how light a run looks may refuse it.
    pub fn is_bounded(&self) -> bool {
        !self.at_edge && self.times_largest.is_finite()
    }

    /// Whether nothing does: for a level that is shown and claims no confidence.
    pub fn is_enough(&self) -> bool {
        let bounded = self.shape.high.is_some_and(|high| high <= HEAVIEST);
        !self.at_edge && bounded && self.times_largest <= TIMES_LARGEST
    }
}

/// For a fit of maxima and the upper bound of a level, in the unit of the values.
pub fn of_maxima(steps: &Steps, fit: &gev::Fit, bound: Option<f64>) -> Determined {
    Determined {
        at_edge: fit.shape.is_edge(fit.law.xi),
        shape: shape_interval(steps, fit, TWO_SIDED_95),
        times_largest: times(bound, steps.largest()),
    }
}

/// For a fit of excesses over a threshold and the upper bound of a level (threshold included). The largest value is in the
/// last step, or known by itself where that step is open.
pub fn of_excesses(
    excesses: &Steps,
    fit: &gpd::Fit,
    threshold: f64,
    bound: Option<f64>,
    largest: Option<f64>,
) -> Determined {
    let steps = threshold + excesses.largest();
    Determined {
        at_edge: fit.shape.is_edge(fit.law.xi),
        shape: gpd::shape_interval(excesses, fit, TWO_SIDED_95),
        times_largest: times(bound, largest.map_or(steps, |largest| largest.max(steps))),
    }
}

/// How many times the largest value a bound is; infinite without a bound.
pub fn times(bound: Option<f64>, largest: f64) -> f64 {
    bound.filter(|_| largest > 0.0).map_or(f64::INFINITY, |bound| bound / largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::Dice;
    use crate::reference::RPI2_HIST_US;
    use crate::tail::gev::{Gev, Shape};
    use crate::tail::gpd::Gpd;
    use crate::tail::profile::{Level, ONE_SIDED_95, level_upper};
    use crate::tail::steps::Step;

    #[test]
    fn the_raspberry_may_be_extended_tenfold_but_not_a_hundredfold() {
        let step =
            |&(us, count): &(u64, u64)| Step { low: us as f64, high: us as f64 + 1.0, count: count as f64 };
        let steps = Steps::of_steps(RPI2_HIST_US.iter().map(step).collect()).unwrap();
        let excesses = steps.above(53.0).unwrap();
        let fit = gpd::fit(&excesses, Gpd::USUAL).unwrap();
        let at = |times: f64| {
            let bound = gpd::level_interval(&excesses, &fit, times * fit.n, TWO_SIDED_95).high;
            of_excesses(&excesses, &fit, 53.0, bound.map(|bound| 53.0 + bound), None)
        };
        assert!(at(10.0).is_enough() && !at(100.0).is_enough(), "{:?} {:?}", at(10.0), at(100.0));
        assert!((at(100.0).times_largest - 396.82 / 77.0).abs() < 0.01);
    }

    #[test]
    fn heavy_tails_and_missing_bounds_are_not_enough() {
        let mut dice = Dice::new(4);
        let mut drawn = |xi: f64| {
            let law = Gev { mu: 20.0, sigma: 2.0, xi };
            let values: Vec<f64> = (0..300).map(|_| law.level_of_rate(dice.exponential())).collect();
            let steps = Steps::new(&values, 0.0).unwrap();
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
        assert!(wide.is_bounded() && !wide.is_enough(), "however wide: {wide:?}");
        let (steps, fit) = drawn(3.0);
        let heavy = of_maxima(&steps, &fit, Some(1.0));
        assert!(heavy.at_edge && !heavy.is_bounded(), "{heavy:?}");
        let (steps, fit) = drawn(-0.8);
        assert!(!of_maxima(&steps, &fit, Some(1.0)).is_bounded(), "{fit:?}");
    }
}
