//! Where along the distribution B differs from A: the difference of quantiles, quantile by
//! quantile.
//!
//! The shift function (Doksum 1974) from Harrell-Davis quantiles (Wilcox 1995), computed per unit,
//! so that intervals rest on the spread between units. One interval per quantile, not one band for
//! all: a picture to read, and of its points only the primary one is a verdict.

use super::harrell_davis::{Weights, sorted};
use super::inversion::Interval;
use super::verdict::{Design, difference, of_units};

/// The quantiles that are drawn, from the median to the tail.
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
    /// Its interval over units; `None` when there are too few for the confidence.
    pub interval: Option<Interval>,
    /// Two-sided over units, against no difference.
    pub p: f64,
}

/// The shift at each quantile of the grid from the block maxima of each unit, with intervals at
/// this confidence.
///
/// Units without values are left out, of pairs with their partner.
pub fn function(a: &[&[f64]], b: &[&[f64]], design: Design, grid: &[f64], confidence: f64) -> Vec<Shift> {
    let (a, b): (Vec<&[f64]>, Vec<&[f64]>) = match design {
        Design::Paired => {
            a.iter().zip(b).filter(|(a, b)| !a.is_empty() && !b.is_empty()).map(|(a, b)| (*a, *b)).unzip()
        }
        Design::Unpaired => (a.to_vec(), b.to_vec()),
    };
    let sort = |units: Vec<&[f64]>| units.into_iter().map(sorted).collect::<Vec<_>>();
    let (a, b) = (sort(a), sort(b));
    grid.iter().map(|&q| at(&a, &b, design, q, confidence)).collect()
}

fn at(a: &[Vec<f64>], b: &[Vec<f64>], design: Design, q: f64, confidence: f64) -> Shift {
    let (a, b) = (quantiles(a, q), quantiles(b, q));
    let relabelled = of_units(&a, &b, design);
    let (interval, p) = (relabelled.interval(confidence), relabelled.p_two_sided(0.0));
    Shift { q, difference: difference(&a, &b, design), interval, p, a, b }
}

/// The quantile of each unit; units are mostly of one size, whose weights are found once.
fn quantiles(units: &[Vec<f64>], q: f64) -> Vec<f64> {
    let mut weights = Weights::new(0, q);
    let mut of_unit = |unit: &Vec<f64>| {
        weights.of_sorted(unit).or_else(|| {
            weights = Weights::new(unit.len(), q);
            weights.of_sorted(unit)
        })
    };
    units.iter().filter_map(&mut of_unit).collect()
}

#[cfg(test)]
mod tests {
    use super::super::harrell_davis::quantile;
    use super::*;

    fn unit(from: f64, stretch: f64, n: i32) -> Vec<f64> {
        (0..n).map(|i| from + stretch * f64::from((i * 37) % n)).collect()
    }

    #[test]
    fn a_stretched_tail_shifts_more_the_farther_out() {
        let a: Vec<Vec<f64>> = (0..6).map(|n| unit(f64::from(n), 1.0, 101)).collect();
        let b: Vec<Vec<f64>> = (0..6).map(|n| unit(f64::from(n), 1.5, 101)).collect();
        let (a, b): (Vec<&[f64]>, Vec<&[f64]>) =
            (a.iter().map(Vec::as_slice).collect(), b.iter().map(Vec::as_slice).collect());
        for design in [Design::Paired, Design::Unpaired] {
            let shifts = function(&a, &b, design, &GRID, 0.95);
            assert!(shifts.windows(2).all(|two| two[0].difference < two[1].difference));
            let median = &shifts[2];
            assert!((median.difference - 25.0).abs() < 1e-9 && median.interval.is_some());
            assert_eq!(median.p, of_units(&median.a, &median.b, design).p_two_sided(0.0));
            assert!(median.p < 0.05);
            assert!((median.a[3] - quantile(a[3], 0.5).unwrap()).abs() < 1e-12);
        }
        assert!(function(&a[..5], &b, Design::Paired, &[0.5], 0.95)[0].interval.is_none());
    }

    #[test]
    fn units_of_different_length_and_empty_ones_are_taken_as_they_are() {
        let (long, short): (Vec<f64>, Vec<f64>) = (unit(0.0, 1.0, 50), unit(0.0, 1.0, 20));
        let (a, b) = ([&long[..], &[], &short[..]], [&short[..], &long[..], &long[..]]);
        let paired = &function(&a, &b, Design::Paired, &[0.9], 0.95)[0];
        assert_eq!((paired.a.len(), paired.b.len()), (2, 2));
        assert!(paired.difference.abs() < 1e-9);
        let unpaired = &function(&a, &b, Design::Unpaired, &[0.9], 0.95)[0];
        assert_eq!((unpaired.a.len(), unpaired.b.len()), (2, 3));
        let nothing = &function(&[], &[], Design::Paired, &[0.9], 0.95)[0];
        assert_eq!((nothing.difference, nothing.interval, nothing.p), (0.0, None, 1.0));
    }
}
