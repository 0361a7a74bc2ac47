//! Dependence of blocks on earlier ones: autocorrelations and the Ljung-Box test that all are zero.
//!
//! Ljung and Box (1978), "On a measure of lack of fit in time series models". Assumption: finite
//! variance; a single huge value hides dependence of the rest, and is left to other tests.

use super::ranks;
use crate::law;
use crate::values::SeriesValues;

/// Outcome of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LjungBox {
    /// n (n + 2) times the sum of squared autocorrelations, each over n - k.
    pub q: f64,
    /// Number of lags in it: the degrees of freedom.
    pub lags: usize,
    /// P(chi-squared > q).
    pub p: f64,
}

/// The autocorrelations at 1 to `lags` blocks apart, at most n - 1 of them, in n times that many
/// steps.
pub fn autocorrelations<'a>(x: impl Into<SeriesValues<'a>>, lags: usize) -> Option<Vec<f64>> {
    let x = x.into();
    if !ranks::varies(x) {
        return None;
    }
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let products = x.products(mean, lags.min(x.len() - 1));
    let variance = products[0];
    let correlations = products[1..].iter().map(|product| product / variance).collect();
    (variance > 0.0 && variance.is_finite()).then_some(correlations)
}

/// Tests over that many lags, at most n - 1.
pub fn test<'a>(x: impl Into<SeriesValues<'a>>, lags: usize) -> Option<LjungBox> {
    let x = x.into();
    let correlations = autocorrelations(x, lags)?;
    let n = x.len() as f64;
    let terms = correlations.iter().enumerate().map(|(i, r)| r * r / (n - (i + 1) as f64));
    let (q, lags) = (n * (n + 2.0) * terms.sum::<f64>(), correlations.len());
    (lags > 0).then(|| LjungBox { q, lags, p: law::chi2_tail(q, lags as f64) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{FREMANTLE_M, PORT_PIRIE_M};
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    #[test]
    fn statistics_are_those_of_the_reference() {
        for (x, q, p) in
            [(&PORT_PIRIE_M[..], 5.829_842_3, 0.829_350_74), (&FREMANTLE_M[..], 11.731_283, 0.303_443_25)]
        {
            let test = test(x, 10).unwrap();
            assert!((test.q - q).abs() < 1e-6 && (test.p - p).abs() < 1e-7, "{test:?}");
            assert_eq!(test.lags, 10);
        }
        let r = autocorrelations(&FREMANTLE_M, 3).unwrap();
        for (r, expected) in r.iter().zip([0.136_708_526_6, 0.035_396_509_1, 0.100_313_726_7]) {
            assert!((r - expected).abs() < 1e-9);
        }
    }

    #[test]
    fn dependence_is_found_and_its_size_measured() {
        let mut rng = Rng::new(SEED);
        let mut last = 0.0;
        let mut next = || {
            last = 0.4 * last + rng.normal();
            last
        };
        let x: Vec<f64> = (0..2000).map(|_| next()).collect();
        assert!((autocorrelations(&x, 1).unwrap()[0] - 0.4).abs() < 0.06);
        assert!(test(&x, 10).unwrap().p < 1e-9);
    }

    #[test]
    fn edges_have_answers() {
        for x in [&[][..], &[1.0], &[0.1; 50], &[f64::NAN, 1.0], &[1.0, f64::INFINITY]] {
            assert_eq!(test(x, 10), None);
        }
        assert_eq!(test(&[1.0, 2.0, 4.0], usize::MAX).map(|test| test.lags), Some(2));
        assert_eq!(test(&[1.0, 2.0, 4.0], 0), None);
        let _ = test(&[1e308, -1e308, 1e-308], 2);
    }

    proptest! {
        #[test]
        fn the_result_is_independent_of_unit_origin_and_direction_of_time(x in proptest::collection::vec(-1e3f64..1e3, 3..80)) {
            if let Some(a) = test(&x, 10) {
                let other: Vec<f64> = x.iter().rev().map(|x| 7.0 - 64.0 * x).collect();
                let b = test(&other, 10).unwrap();
                prop_assert!((a.q - b.q).abs() < 1e-6 * a.q.max(1.0));
                prop_assert!((0.0..=1.0).contains(&a.p));
            }
        }
    }
}
