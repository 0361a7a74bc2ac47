//! Most likely single change of the level, by sums of ranks.
//!
//! Pettitt (1979), "A non-parametric approach to the change-point problem", with his approximation
//! of p, which is a little too large; ties make it larger. Assumption: independent blocks, one
//! change at most.

use super::ranks;
use crate::values::SeriesValues;

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianShift {
    /// The first block after the change, counted from 0.
    pub first_after: usize,
    /// Pairs across the change that fall minus those that rise; negative if the level rose.
    pub u: f64,
    /// 2 exp(-6 u^2 / (n^3 + n^2)), at most 1.
    pub p: f64,
    /// The median before the change.
    pub before: f64,
    /// The median from the change on.
    pub after: f64,
}

/// The most likely change, significant or not; the earliest of equally likely ones.
pub fn most_likely<'a>(x: impl Into<SeriesValues<'a>>) -> Option<MedianShift> {
    let x = x.into();
    if !ranks::varies(x) {
        return None;
    }
    let n = x.len() as f64;
    let mut sum = 0.0;
    let (mut first_after, mut u) = (1, 0.0f64);
    for (i, rank) in ranks::midranks(x).enumerate().take(x.len() - 1) {
        sum += 2.0 * rank - (n + 1.0);
        if sum.abs() > u.abs() {
            (first_after, u) = (i + 1, sum);
        }
    }
    let p = (2.0 * (-6.0 * u * u / (n * n * (n + 1.0))).exp()).min(1.0);
    let (before, after) = x.split_at(first_after);
    let (before, after) = (ranks::median(before)?, ranks::median(after)?);
    Some(MedianShift { first_after, u, p, before, after })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{FREMANTLE_M, PORT_PIRIE_M};
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    #[test]
    fn shifts_are_those_computed_with_scipy_ranks() {
        for (x, first_after, u, p, before, after) in [
            (&PORT_PIRIE_M[..], 43, 204.0, 0.816_848_214, 3.97, 3.89),
            (&FREMANTLE_M[..], 40, -707.0, 0.018_915_053, 1.475, 1.58),
        ] {
            let shift = most_likely(x).unwrap();
            assert_eq!((shift.first_after, shift.u), (first_after, u));
            assert!((shift.p - p).abs() < 1e-9, "{shift:?}");
            assert!((shift.before - before).abs() < 1e-12 && (shift.after - after).abs() < 1e-12);
        }
    }

    #[test]
    fn a_shift_in_a_day_of_seconds_is_placed() {
        let mut rng = Rng::new(SEED);
        let rise = |i: i32| if i < 30_000 { 0.0 } else { 0.5 };
        let x: Vec<f64> = (0..86_400).map(|i| rng.exponential() + rise(i)).collect();
        let shift = most_likely(&x).unwrap();
        assert!(shift.first_after.abs_diff(30_000) < 100 && shift.p < 1e-12, "{shift:?}");
        assert!((shift.after - shift.before - 0.5).abs() < 0.05);
    }

    #[test]
    fn edges_have_answers() {
        for x in [&[][..], &[1.0], &[0.1; 50], &[f64::NAN, 1.0], &[1.0, f64::INFINITY]] {
            assert_eq!(most_likely(x), None);
        }
        let two = most_likely(&[1.0, 2.0]).unwrap();
        assert_eq!((two.first_after, two.u, two.p, two.before, two.after), (1, -1.0, 1.0, 1.0, 2.0));
    }

    proptest! {
        #[test]
        fn sums_of_ranks_count_pairs(x in proptest::collection::vec(-9i32..9, 2..50)) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            let pairs = |at: usize| {
                let side = |a: f64| x[at..].iter().map(move |&b| f64::from(i8::from(a > b) - i8::from(a < b)));
                x[..at].iter().flat_map(|&a| side(a)).sum::<f64>()
            };
            if let Some(shift) = most_likely(&x) {
                prop_assert_eq!(shift.u, pairs(shift.first_after));
                prop_assert!((1..x.len()).all(|at| pairs(at).abs() <= shift.u.abs()));
            }
        }

        #[test]
        fn time_reversed_it_falls_and_bent_it_stays(x in proptest::collection::vec(-99i32..99, 2..80)) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            let back: Vec<f64> = x.iter().rev().copied().collect();
            let bent: Vec<f64> = x.iter().map(|x| (x / 20.0).exp() - 7.0).collect();
            let brief = |x: &[f64]| most_likely(x).map(|shift| (shift.first_after, shift.u, shift.p));
            prop_assert_eq!(brief(&x), brief(&bent));
            prop_assert_eq!(brief(&x).map(|b| (b.1.abs(), b.2)), brief(&back).map(|b| (b.1.abs(), b.2)));
        }
    }
}
