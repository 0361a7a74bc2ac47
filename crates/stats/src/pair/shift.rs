//! Difference of B and A along the distribution, quantile by quantile.
//!
//! The shift function (Doksum 1974) from Harrell-Davis quantiles (Wilcox 1995), computed per unit,
//! so that intervals rest on the spread between units. One interval per quantile, not one band for
//! all: a picture to read, and of its points only the primary one is a verdict.

use super::harrell_davis::Weights;
use super::inversion::Interval;
use super::verdict::{Design, difference, of_units};

/// Quantiles of the function, from the lower tenth to the tail.
pub const GRID: [f64; 9] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995];

/// One quantile of the shift function, in the values' unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Shift {
    /// The quantile, 0 to 1.
    pub q: f64,
    /// A's quantile, one per unit that has values.
    pub a: Vec<f64>,
    /// B's quantile, one per unit that has values.
    pub b: Vec<f64>,
    /// Mean over units of B minus A.
    pub difference: f64,
    /// Interval over units; `None` if there are too few for the confidence.
    pub interval: Option<Interval>,
    /// Two-sided p over units, against no difference.
    pub p: f64,
}

/// Shift at each quantile of the grid from the block maxima of each unit, with intervals at this
/// confidence.
///
/// Units without values are excluded, in pairs together with their partner. One unit's values are
/// in memory at a time.
pub fn function(
    a: impl Iterator<Item = Vec<f64>>,
    b: impl Iterator<Item = Vec<f64>>,
    design: Design,
    grid: &[f64],
    confidence: f64,
) -> Vec<Shift> {
    let mut weights: Vec<Weights> = grid.iter().map(|&q| Weights::new(0, q)).collect();
    let mut a: Vec<UnitQuantiles> = a.map(|values| quantiles(values, grid, &mut weights)).collect();
    let mut b: Vec<UnitQuantiles> = b.map(|values| quantiles(values, grid, &mut weights)).collect();
    if design == Design::Paired {
        (a, b) = a.into_iter().zip(b).filter(|(a, b)| a.is_some() && b.is_some()).unzip();
    }
    let at = |(place, &q)| {
        let of = |units: &[UnitQuantiles]| units.iter().flatten().map(|unit| unit[place]).collect::<Vec<_>>();
        at(of(&a), of(&b), design, q, confidence)
    };
    grid.iter().enumerate().map(at).collect()
}

/// Quantiles of a unit at each place of the grid; `None` without values.
type UnitQuantiles = Option<Vec<f64>>;

fn at(a: Vec<f64>, b: Vec<f64>, design: Design, q: f64, confidence: f64) -> Shift {
    let relabelled = of_units(&a, &b, design);
    let (interval, p) = (relabelled.interval(confidence), relabelled.p_two_sided(0.0));
    Shift { q, difference: difference(&a, &b, design), interval, p, a, b }
}

/// Quantiles of a unit; units are mostly of one size, whose weights are found once.
fn quantiles(mut values: Vec<f64>, grid: &[f64], weights: &mut [Weights]) -> UnitQuantiles {
    values.sort_unstable_by(f64::total_cmp);
    let of = |(&q, weights): (&f64, &mut Weights)| {
        weights.of_sorted(&values).or_else(|| {
            *weights = Weights::new(values.len(), q);
            weights.of_sorted(&values)
        })
    };
    grid.iter().zip(weights).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::harrell_davis::quantile;
    use super::*;

    fn unit(from: f64, stretch: f64, n: i32) -> Vec<f64> {
        (0..n).map(|i| from + stretch * f64::from((i * 37) % n)).collect()
    }

    fn of_slices(a: &[&[f64]], b: &[&[f64]], design: Design, grid: &[f64]) -> Vec<Shift> {
        let units = |side: &[&[f64]]| side.iter().map(|unit| unit.to_vec()).collect::<Vec<_>>().into_iter();
        function(units(a), units(b), design, grid, 0.95)
    }

    #[test]
    fn a_stretched_tail_shifts_more_the_farther_out() {
        let a: Vec<Vec<f64>> = (0..6).map(|n| unit(f64::from(n), 1.0, 101)).collect();
        let b: Vec<Vec<f64>> = (0..6).map(|n| unit(f64::from(n), 1.5, 101)).collect();
        let (a, b): (Vec<&[f64]>, Vec<&[f64]>) =
            (a.iter().map(Vec::as_slice).collect(), b.iter().map(Vec::as_slice).collect());
        for design in [Design::Paired, Design::Unpaired] {
            let shifts = of_slices(&a, &b, design, &GRID);
            assert!(shifts.windows(2).all(|two| two[0].difference < two[1].difference));
            let median = &shifts[2];
            assert!((median.difference - 25.0).abs() < 1e-9 && median.interval.is_some());
            assert_eq!(median.p, of_units(&median.a, &median.b, design).p_two_sided(0.0));
            assert!(median.p < 0.05);
            assert!((median.a[3] - quantile(a[3], 0.5).unwrap()).abs() < 1e-12);
        }
        assert!(of_slices(&a[..5], &b, Design::Paired, &[0.5])[0].interval.is_none());
    }

    #[test]
    fn units_of_different_length_and_empty_ones_are_taken_as_they_are() {
        let (long, short): (Vec<f64>, Vec<f64>) = (unit(0.0, 1.0, 50), unit(0.0, 1.0, 20));
        let (a, b) = ([&long[..], &[], &short[..]], [&short[..], &long[..], &long[..]]);
        let paired = &of_slices(&a, &b, Design::Paired, &[0.9])[0];
        assert_eq!((paired.a.len(), paired.b.len()), (2, 2));
        assert!(paired.difference.abs() < 1e-9);
        let unpaired = &of_slices(&a, &b, Design::Unpaired, &[0.9])[0];
        assert_eq!((unpaired.a.len(), unpaired.b.len()), (2, 3));
        let nothing = &of_slices(&[], &[], Design::Paired, &[0.9])[0];
        assert_eq!((nothing.difference, nothing.interval, nothing.p), (0.0, None, 1.0));
    }
}
