//! Mann-Kendall test of a monotone trend, and a slope that outliers do not move.
//!
//! Mann (1945); Kendall (1975), Rank Correlation Methods, with the variance corrected for ties and
//! a correction for continuity; Sen (1968) for the slope. Assumption: independent blocks;
//! dependence makes p too small.

use super::ranks;
use crate::law;
use crate::levels::Levels;
use crate::values::SeriesValues;

/// Maximum number of medians for the slope: pairs grow with the square.
const SLOPE_POINTS: usize = 300;

/// Outcome of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannKendall {
    /// Pairs that rise minus pairs that fall.
    pub s: f64,
    /// S in standard deviations, one step nearer to zero for continuity.
    pub z: f64,
    /// Two-sided p.
    pub p: f64,
}

/// Tests in n log n steps.
pub fn trend<'a>(x: impl Into<SeriesValues<'a>>) -> Option<MannKendall> {
    let x = x.into();
    if x.len() < 3 || !ranks::varies(x) {
        return None;
    }
    let n = x.len() as f64;
    let levels = Levels::of(x.iter(), x.len());
    let (mut tied_pairs, mut tied_variance) = (0.0, 0.0);
    for &(_, count) in levels.all() {
        let t = count as f64;
        tied_pairs += t * (t - 1.0) / 2.0;
        tied_variance += t * (t - 1.0) * (2.0 * t + 5.0);
    }
    let falling = falling_pairs(x, &levels) as f64;
    let s = n * (n - 1.0) / 2.0 - tied_pairs - 2.0 * falling;
    let variance = (n * (n - 1.0) * (2.0 * n + 5.0) - tied_variance) / 18.0;
    let z = if s == 0.0 { 0.0 } else { (s - s.signum()) / variance.sqrt() };
    Some(MannKendall { s, z, p: law::normal_two_sided(z) })
}

/// Number of pairs of which the later one is smaller, by a tree of the counts of each value so far
/// (Fenwick 1994).
fn falling_pairs(x: SeriesValues, levels: &Levels) -> u64 {
    let mut tree = vec![0u64; levels.all().len() + 1];
    let mut falling = 0;
    for (before, value) in x.iter().enumerate() {
        let place = levels.place(value) + 1;
        let (mut at, mut not_larger) = (place, 0);
        while at > 0 {
            not_larger += tree[at];
            at &= at - 1;
        }
        falling += before as u64 - not_larger;
        let mut at = place;
        while at < tree.len() {
            tree[at] += 1;
            at += at & at.wrapping_neg();
        }
    }
    falling
}

/// Drift per block: the median slope of all pairs (Theil-Sen), over medians of stretches if there
/// are more than 300 blocks.
pub fn slope<'a>(x: impl Into<SeriesValues<'a>>) -> Option<f64> {
    let x = x.into();
    let stretches = x.len().min(SLOPE_POINTS);
    if stretches < 2 || x.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let edge = |g: usize| (g as u128 * x.len() as u128 / stretches as u128) as usize;
    let points: Vec<(f64, f64)> = (0..stretches)
        .filter_map(|g| {
            let (from, to) = (edge(g), edge(g + 1));
            Some(((from + to - 1) as f64 / 2.0, ranks::median(x.part(from..to))?))
        })
        .collect();
    let later = |(i, a): (usize, &(f64, f64))| {
        let a = *a;
        points[i + 1..].iter().map(move |b| (b.1 - a.1) / (b.0 - a.0))
    };
    let mut slopes: Vec<f64> = points.iter().enumerate().flat_map(later).collect();
    ranks::median_of(&mut slopes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{FREMANTLE_M, PORT_PIRIE_M};
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    #[test]
    fn trends_are_those_of_the_reference() {
        for (x, s, z, p) in [
            (&PORT_PIRIE_M[..], -47.0, -0.260_581_06, 0.794_415_6),
            (&FREMANTLE_M[..], 785.0, 2.931_740_9, 0.003_370_678_1),
        ] {
            let test = trend(x).unwrap();
            assert_eq!(test.s, s);
            assert!((test.z - z).abs() < 1e-7 && (test.p - p).abs() < 1e-8, "{test:?}");
        }
    }

    #[test]
    fn slopes_are_those_of_scipy() {
        assert!((slope(&PORT_PIRIE_M).unwrap() + 0.000_435_606_061).abs() < 1e-12);
        assert!((slope(&FREMANTLE_M).unwrap() - 0.001_944_444_444).abs() < 1e-12);
    }

    #[test]
    fn a_long_drift_under_spikes_is_found_and_measured() {
        let mut rng = Rng::new(SEED);
        let mut x: Vec<f64> = (0..86_400).map(|i| 40.0 + rng.exponential() + 2e-5 * f64::from(i)).collect();
        (0..400).for_each(|i| x[i * 7] += 500.0);
        let test = trend(&x).unwrap();
        assert!(test.p < 1e-12 && test.z > 0.0, "{test:?}");
        assert!((slope(&x).unwrap() / 2e-5 - 1.0).abs() < 0.05, "{:?}", slope(&x));
    }

    #[test]
    fn a_rising_series_has_all_pairs() {
        let x: Vec<f64> = (0..1000).map(f64::from).collect();
        assert_eq!((trend(&x).unwrap().s, slope(&x)), (499_500.0, Some(1.0)));
    }

    #[test]
    fn edges_have_answers() {
        for x in [&[][..], &[1.0], &[1.0, 2.0], &[0.1; 50], &[f64::NAN, 1.0, 2.0]] {
            assert_eq!(trend(x), None);
        }
        assert_eq!((slope(&[1.0]), slope(&[1.0, 1.0]), slope(&[f64::NAN; 3])), (None, Some(0.0), None));
        assert_eq!(trend(&[1.0, 0.0, 1.0]).map(|test| (test.s, test.p)), Some((0.0, 1.0)));
    }

    proptest! {
        #[test]
        fn counting_by_merging_agrees_with_all_pairs(x in proptest::collection::vec(-9i32..9, 3..60)) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            if let Some(test) = trend(&x) {
                let sign = |d: f64| if d == 0.0 { 0.0 } else { d.signum() };
                let later = |i: usize| (i + 1..x.len()).map(|j| sign(x[j] - x[i])).sum::<f64>();
                prop_assert_eq!(test.s, (0..x.len()).map(later).sum::<f64>());
            }
        }

        #[test]
        fn time_reversed_it_falls_and_bent_it_stays(x in proptest::collection::vec(-99i32..99, 3..80)) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            let back: Vec<f64> = x.iter().rev().copied().collect();
            let bent: Vec<f64> = x.iter().map(|x| (x / 20.0).exp() - 7.0).collect();
            prop_assert_eq!(trend(&x), trend(&bent));
            prop_assert_eq!(trend(&x).map(|test| (-test.s, test.p)), trend(&back).map(|test| (test.s, test.p)));
            prop_assert!((slope(&x).unwrap() + slope(&back).unwrap()).abs() < 1e-9);
        }
    }
}
