//! Runs test about the median, for high and low blocks that stay together.
//!
//! Wald and Wolfowitz (1940), in its normal approximation. Values equal to the median are excluded,
//! and the runs on both sides of them join. Assumption: under independence every order of the signs
//! is as likely as any other.

use super::ranks;
use crate::law;
use crate::values::SeriesValues;

/// Outcome of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Runs {
    /// Number of stretches on one side of the median.
    pub runs: u64,
    /// Number of values above the median.
    pub above: u64,
    /// Number of values below the median.
    pub below: u64,
    /// Number of runs in standard deviations from its mean: negative if values stay together.
    pub z: f64,
    /// Two-sided p.
    pub p: f64,
}

pub fn about_median<'a>(x: impl Into<SeriesValues<'a>>) -> Option<Runs> {
    let x = x.into();
    if !ranks::varies(x) {
        return None;
    }
    let median = ranks::median(x)?;
    let (mut above, mut below, mut runs) = (0usize, 0usize, 0usize);
    let mut last = None;
    for x in x.iter().filter(|&x| x != median) {
        let side = x > median;
        let count = if side { &mut above } else { &mut below };
        *count += 1;
        runs += usize::from(last != Some(side));
        last = Some(side);
    }
    let n = (above + below) as f64;
    let mean = 2.0 * above as f64 * below as f64 / n + 1.0;
    let variance = (mean - 1.0) * (mean - 2.0) / (n - 1.0);
    let z = (runs as f64 - mean) / variance.sqrt();
    let (runs, above, below) = (runs as u64, above as u64, below as u64);
    (variance > 0.0).then(|| Runs { runs, above, below, z, p: law::normal_two_sided(z) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{FREMANTLE_M, PORT_PIRIE_M};
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    #[test]
    fn runs_are_those_of_the_reference() {
        for (x, runs, z, p) in [
            (&PORT_PIRIE_M[..], 27, -1.145_824_7, 0.251_867_7),
            (&FREMANTLE_M[..], 42, 0.113_21, 0.909_864_06),
        ] {
            let test = about_median(x).unwrap();
            assert_eq!(test.runs, runs);
            assert!((test.z - z).abs() < 1e-7 && (test.p - p).abs() < 1e-7, "{test:?}");
        }
    }

    #[test]
    fn what_equals_the_median_joins_its_neighbours() {
        let test = about_median(&[1.0, 2.0, 0.0, 9.0, 2.0, 8.0, 2.0]).unwrap();
        assert_eq!((test.runs, test.above, test.below), (2, 2, 2));
    }

    #[test]
    fn alternating_and_staying_have_opposite_signs() {
        let alternating: Vec<f64> = (0..100).map(|i| f64::from(i % 2)).collect();
        let staying: Vec<f64> = (0..100).map(|i| f64::from(i / 50)).collect();
        assert_eq!(about_median(&alternating).unwrap().runs, 100);
        assert!(about_median(&alternating).unwrap().z > 9.0 && about_median(&staying).unwrap().z < -9.0);
    }

    #[test]
    fn noise_is_not_rejected() {
        let (mut rng, mut rejected) = (Rng::new(SEED), 0);
        for _ in 0..500 {
            let x: Vec<f64> = (0..100).map(|_| rng.exponential()).collect();
            rejected += u32::from(about_median(&x).unwrap().p < 0.05);
        }
        assert!((8..=45).contains(&rejected), "{rejected}");
    }

    #[test]
    fn edges_have_answers() {
        for x in [&[][..], &[1.0], &[1.0, 2.0], &[0.1; 50], &[f64::NAN, 1.0], &[2.0, 2.0, 2.0, 3.0]] {
            assert_eq!(about_median(x), None);
        }
    }

    proptest! {
        #[test]
        fn the_result_depends_only_on_the_order(x in proptest::collection::vec(-9i32..9, 0..80)) {
            // An odd number of values: the median of an even one may lie between two and bend with
            // them.
            let mut x: Vec<f64> = x.into_iter().map(f64::from).collect();
            x.push(0.0);
            if x.len() % 2 == 0 {
                x.pop();
            }
            let bent: Vec<f64> = x.iter().map(|x| (x / 3.0).exp() + 5.0).collect();
            let back: Vec<f64> = x.iter().rev().copied().collect();
            prop_assert_eq!(about_median(&x), about_median(&bent));
            prop_assert_eq!(about_median(&x), about_median(&back));
        }
    }
}
