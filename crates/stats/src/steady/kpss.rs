//! KPSS test of level stationarity, against a unit root or a shift.
//!
//! Kwiatkowski, Phillips, Schmidt and Shin (1992), with the table for a level and Bartlett weights.
//! Assumption: short-range dependence only, which the weights account for up to the lag. The mean
//! is a real number whatever the values are: cut to a whole one, the test rejects every series of
//! small integers.

use super::ranks;
use crate::values::SeriesValues;

/// Critical values of their table and their p.
const TABLE: [(f64, f64); 4] = [(0.347, 0.10), (0.463, 0.05), (0.574, 0.025), (0.739, 0.01)];

/// Outcome of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Kpss {
    /// The statistic: large if the level moves.
    pub statistic: f64,
    /// Lag up to which values were allowed to depend on each other.
    pub lag: usize,
    /// Interpolated in the table; limited to its ends, 0.01 and 0.10.
    pub p: f64,
    /// True if the statistic is beyond the 1 % point of the table.
    pub rejects_at_1_percent: bool,
}

/// Usual lag for n blocks: floor of 4 (n/100)^(1/4).
pub fn usual_lag(n: usize) -> usize {
    (4.0 * (n as f64 / 100.0).powf(0.25)) as usize
}

/// Tests with the usual lag.
pub fn level<'a>(x: impl Into<SeriesValues<'a>>) -> Option<Kpss> {
    let x = x.into();
    level_with_lag(x, usual_lag(x.len()))
}

/// Tests with a lag in blocks, at most n - 1; it takes n times the lag steps.
pub fn level_with_lag<'a>(x: impl Into<SeriesValues<'a>>, lag: usize) -> Option<Kpss> {
    let x = x.into();
    if x.len() < 3 || !ranks::varies(x) {
        return None;
    }
    let n = x.len() as f64;
    let lag = lag.min(x.len() - 1);
    let mean = x.iter().sum::<f64>() / n;
    let products = x.products(mean, lag);
    let weight = |apart: usize| 1.0 - apart as f64 / (lag as f64 + 1.0);
    let variance = (products[0] + 2.0 * (1..=lag).map(|k| weight(k) * products[k]).sum::<f64>()) / n;
    let mut sum = 0.0;
    let mut squares = 0.0;
    for x in x.iter() {
        sum += x - mean;
        squares += sum * sum;
    }
    let statistic = squares / (n * n) / variance;
    let rejects_at_1_percent = statistic > TABLE[3].0;
    // The weighted variance can be rounding alone: then the result is unknown.
    (variance > 0.0 && statistic.is_finite()).then(|| Kpss {
        statistic,
        lag,
        p: p_of(statistic),
        rejects_at_1_percent,
    })
}

fn p_of(statistic: f64) -> f64 {
    let between = TABLE.windows(2).find(|pair| statistic <= pair[1].0);
    let Some(&[(low, p_low), (high, p_high)]) = between.and_then(|pair| pair.first_chunk()) else {
        return TABLE[3].1;
    };
    let part = ((statistic - low) / (high - low)).max(0.0);
    p_low + part * (p_high - p_low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{FREMANTLE_M, PORT_PIRIE_M};
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    #[test]
    fn statistics_are_those_of_the_reference() {
        for (x, lag, expected) in [
            (&PORT_PIRIE_M[..], 0, 0.054_963_284),
            (&PORT_PIRIE_M[..], 4, 0.059_165_726),
            (&FREMANTLE_M[..], 0, 0.980_759_4),
            (&FREMANTLE_M[..], 4, 0.749_325_3),
        ] {
            let test = level_with_lag(x, lag).unwrap();
            assert!((test.statistic - expected).abs() < 1e-8, "{test:?}");
            assert_eq!(test.rejects_at_1_percent, x.len() == 86);
            assert_eq!(test.p, if x.len() == 86 { 0.01 } else { 0.10 });
        }
        assert_eq!((usual_lag(65), usual_lag(100), usual_lag(3600), usual_lag(0)), (3, 4, 9, 0));
        assert_eq!(level(&PORT_PIRIE_M).map(|test| test.lag), Some(3));
    }

    #[test]
    fn p_is_that_of_the_table() {
        for (statistic, p) in TABLE {
            assert!((p_of(statistic) - p).abs() < 1e-15);
        }
        assert!((p_of(0.405) - 0.075).abs() < 1e-12);
        assert_eq!((p_of(0.0), p_of(9.0)), (0.10, 0.01));
    }

    #[test]
    fn whole_microseconds_are_not_rejected_for_their_rounding() {
        let (mut rng, mut rejected) = (Rng::new(SEED), 0);
        for _ in 0..200 {
            let x: Vec<f64> = (0..200).map(|_| (40.0 + rng.exponential()).floor()).collect();
            rejected += u32::from(level(&x).unwrap().rejects_at_1_percent);
        }
        assert!(rejected <= 6, "{rejected}");
        let shifted: Vec<f64> = (0..200).map(|i| rng.exponential() + f64::from(i / 100)).collect();
        assert!(level(&shifted).unwrap().rejects_at_1_percent);
    }

    #[test]
    fn edges_have_answers() {
        for x in [&[][..], &[1.0], &[1.0, 2.0], &[0.1; 50], &[f64::NAN; 4], &[1.0, 2.0, f64::INFINITY]] {
            assert_eq!(level(x), None);
        }
        assert_eq!(level_with_lag(&[1.0, 2.0, 4.0], usize::MAX).map(|test| test.lag), Some(2));
        let _ = level(&[1e308, -1e308, 1e308, -1e308]);
    }

    proptest! {
        #[test]
        fn the_result_is_independent_of_unit_origin_and_direction_of_time(
            x in proptest::collection::vec(-1e3f64..1e3, 3..80), lag in 0usize..9,
        ) {
            if let Some(test) = level_with_lag(&x, lag) {
                prop_assume!(test.statistic < 1e3);
                let other: Vec<f64> = x.iter().rev().map(|x| 64.0 * x + 1024.0).collect();
                let other = level_with_lag(&other, lag).unwrap();
                prop_assert!((test.statistic - other.statistic).abs() < 1e-6 * test.statistic.max(1.0));
            }
        }
    }
}
