//! The class of a tail: the coefficient of variation of the excesses over each of the largest
//! values.
//!
//! Castillo, Daoudi and Lockhart (2014), Methods to distinguish between polynomial and exponential
//! tails. An exponential tail has 1, a generalised Pareto one CV^2 = 1 / (1 - 2 xi). Assumes
//! independent values. To look at, not to decide by.

use super::grouped_sample::{GroupedSample, Step};

/// The coefficient of variation of the excesses over one of the largest values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variation {
    pub k: f64,
    /// Value of the threshold, in the unit of the values.
    pub over: f64,
    /// Standard deviation (with 1/k) over mean.
    pub cv: f64,
    /// Interval of 95 % of exponential samples of this size.
    pub band: (f64, f64),
}

/// Excesses over each distinct recorded value that has at least 10 and at most `most` above it,
/// lowest first.
pub fn variations(steps: &GroupedSample, most: usize) -> Vec<Variation> {
    let middle = |s: &Step| if s.high.is_finite() { 0.5 * (s.low + s.high) } else { s.low };
    let (mut k, mut sum, mut squares) = (0.0, 0.0, 0.0);
    let mut found = Vec::new();
    // From the top, with sums about the largest value: an offset would cost the digits of the
    // variance.
    let origin = steps.all().last().map_or(0.0, middle);
    for step in steps.all().iter().rev() {
        let x = origin - middle(step);
        if k > most as f64 {
            break;
        }
        if k >= 10.0 {
            let mean = x - sum / k;
            let variance = (squares / k - (sum / k).powi(2)).max(0.0);
            if mean > 0.0 {
                found.push(Variation { k, over: middle(step), cv: variance.sqrt() / mean, band: band(k) });
            }
        }
        k += step.count;
        sum += x * step.count;
        squares += x * x * step.count;
    }
    found.reverse();
    found
}

/// Coefficient of variation of excesses (see [`GroupedSample::above`]); `None` without any or with
/// an open step.
#[cfg(test)]
fn variation_of(excesses: &GroupedSample) -> Option<f64> {
    let middle = |s: &Step| 0.5 * (s.low + s.high);
    let mean = excesses.all().iter().map(|s| s.count * middle(s)).sum::<f64>() / excesses.n();
    let square =
        excesses.all().iter().map(|s| s.count * (middle(s) - mean).powi(2)).sum::<f64>() / excesses.n();
    let cv = square.sqrt() / mean;
    cv.is_finite().then_some(cv)
}

/// Interval of 95 % of exponential samples, by simulated points for 10 to 500 values and the normal
/// limit beyond, with sqrt(k) (cv - 1) taken as linear in 1 / sqrt(k) between them; the points of
/// 10 for fewer.
fn band(k: f64) -> (f64, f64) {
    const POINTS: [(f64, f64, f64); 5] = [
        (10.0, 0.510_46, 1.392_26),
        (20.0, 0.634_84, 1.354_03),
        (50.0, 0.759_95, 1.255_63),
        (100.0, 0.822_29, 1.190_12),
        (500.0, 0.915_12, 1.089_65),
    ];
    let scaled = |&(n, low, high): &(f64, f64, f64)| {
        let root = n.sqrt();
        (1.0 / root, root * (low - 1.0), root * (high - 1.0))
    };
    let k = k.max(POINTS[0].0);
    let mut points: Vec<(f64, f64, f64)> = POINTS.iter().map(scaled).collect();
    points.push((0.0, -1.959_964, 1.959_964));
    let x = 1.0 / k.sqrt();
    let at = points.iter().position(|p| p.0 < x).unwrap_or(points.len() - 1).max(1);
    let ((x1, low1, high1), (x0, low0, high0)) = (points[at - 1], points[at]);
    let part = (x - x0) / (x1 - x0);
    (1.0 + x * (low0 + part * (low1 - low0)), 1.0 + x * (high0 + part * (high1 - high0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::RAIN_OVER_30_MM;
    use crate::rng::Rng;

    #[test]
    fn rain_varies_as_published() {
        let excesses = GroupedSample::new(&RAIN_OVER_30_MM.map(|mm| mm - 30.0), 0.0).unwrap();
        let cv = variation_of(&excesses).unwrap();
        assert!((cv - 1.179_076_2).abs() < 1e-6, "{cv}");
        assert!((152f64.sqrt() * (cv - 1.0) - 2.207_799_5).abs() < 1e-5);
    }

    #[test]
    fn each_threshold_has_its_own_excesses() {
        let values: Vec<f64> = (0..200).map(|i| f64::from(i * i)).collect();
        let steps = GroupedSample::new(&values, 0.0).unwrap();
        let all = variations(&steps, 50);
        assert_eq!((all.first().unwrap().k, all.last().unwrap().k), (50.0, 10.0));
        for one in all {
            let above: Vec<f64> = values.iter().map(|v| v - one.over).filter(|y| *y > 0.0).collect();
            let direct = variation_of(&GroupedSample::new(&above, 0.0).unwrap()).unwrap();
            assert!((direct - one.cv).abs() < 1e-9, "{one:?} {direct}");
        }
    }

    #[test]
    fn bands_hold_the_simulated_points() {
        assert!((band(50.0).0 - 0.759_95).abs() < 1e-9 && (band(100.0).1 - 1.190_12).abs() < 1e-9);
        assert!((band(1e6).1 - 1.001_96).abs() < 1e-5 && band(3.0) == band(10.0));
        let mut rng = Rng::new(5);
        let mut inside = 0;
        for _ in 0..400 {
            let values: Vec<f64> = (0..30).map(|_| rng.exponential()).collect();
            let cv = variation_of(&GroupedSample::new(&values, 0.0).unwrap()).unwrap();
            inside += i32::from(band(30.0).0 < cv && cv < band(30.0).1);
        }
        assert!((366..395).contains(&inside), "{inside}");
    }

    #[test]
    fn without_spread_the_result_is_none() {
        let constant = GroupedSample::new(&[2.0; 40], 0.0).unwrap();
        assert!(variations(&constant, 100).is_empty());
        assert_eq!(variation_of(&GroupedSample::new(&[0.0; 40], 0.0).unwrap()), None);
    }
}
