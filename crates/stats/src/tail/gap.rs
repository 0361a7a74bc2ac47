//! Test for a separate group of the largest events: Fisher's g on normalised spacings.
//!
//! Fisher (1929), Tests of significance in harmonic analysis, for the largest of k exponential
//! shares; Renyi (1953) for the spacings of exponential order statistics, to which those of the
//! fitted law's upper tail correspond on Gumbel's scale. Assumes that the fitted law is right below
//! the gap; values recorded in steps are spread within them. A group of more values than are looked
//! at shows no gap: the test of the fit covers that.

use super::fit_test::ValueProbability;
use super::gev::Gev;
use super::grouped_sample::GroupedSample;
use crate::law;

/// Maximum number of the largest values that are looked at.
const MAX_VALUES: usize = 100;
/// Least number of spacings for a test.
const MIN_SPACINGS: usize = 5;

/// The widest gap among the largest values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailGap {
    /// Share of the widest normalised spacing in all of them.
    pub g: f64,
    /// P(a share as large) if one law describes all values.
    pub p: f64,
    /// Number of values above the gap.
    pub events: usize,
    /// Least of those, in the unit of the values (lower edge of its step).
    pub starts_at: f64,
}

/// Searches the largest tenth of the maxima, at most 100; `None` for less than 50 maxima.
pub fn widest_gap(steps: &GroupedSample, law: &Gev) -> Option<TailGap> {
    let k = (steps.n() as usize / 10).min(MAX_VALUES);
    if k < MIN_SPACINGS {
        return None;
    }
    let top = largest(steps, law, k + 1)?;
    let reduced: Vec<f64> = top.iter().map(on_gumbels_scale).collect();
    let spacing = |(i, pair): (usize, &[f64])| (i + 1) as f64 * (pair[0] - pair[1]);
    let spacings: Vec<f64> = reduced.windows(2).enumerate().map(spacing).collect();
    let total: f64 = spacings.iter().sum();
    let (at, widest) = spacings.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    if !(total > 0.0 && total.is_finite()) {
        return None;
    }
    let g = widest / total;
    Some(TailGap { g, p: fisher_tail(g, k), events: at + 1, starts_at: top[at].low })
}

/// Largest values, in descending order, those of one step evenly spread in its probability; `None`
/// with an open step.
///
/// A random draw from one seed, for the sake of repetition, would be the same in every run: of 600
/// clean maxima with an upper end (xi -0.3) in steps of half a sigma it made a gap in every third.
fn largest(steps: &GroupedSample, law: &Gev, most: usize) -> Option<Vec<ValueProbability>> {
    let mut top = Vec::with_capacity(most);
    for step in steps.all().iter().rev() {
        if step.high.is_infinite() {
            return None;
        }
        let (below, above) = (law.cdf(step.low), law.sf(step.low));
        let (wide, above_high) = (law.cdf(step.high) - below, law.sf(step.high));
        let part = |i: usize| (i as f64 + 0.5) / step.count;
        top.extend((0..step.count as usize).take(most - top.len()).map(|i| ValueProbability {
            low: step.low,
            below: below + (1.0 - part(i)) * wide,
            above: above_high + part(i) * (above - above_high),
        }));
        if top.len() == most {
            break;
        }
    }
    Some(top)
}

/// -ln(-ln F), from the side where the probability is exact.
fn on_gumbels_scale(place: &ValueProbability) -> f64 {
    let rate = if place.below > 0.5 { -(-place.above).ln_1p() } else { -place.below.ln() };
    -rate.ln()
}

/// P(the largest of k shares > x), Fisher's formula; the terms alternate, and are summed in
/// logarithms.
pub fn fisher_tail(x: f64, k: usize) -> f64 {
    if x >= 1.0 || k < 2 {
        return if x < 1.0 { 1.0 } else { 0.0 };
    }
    // At most k = 100 terms of at most 1e11: if the sum is less than the rounding of its terms, x
    // is small.
    if x <= 1.5 / k as f64 {
        return 1.0;
    }
    let last = ((1.0 / x) as usize).min(k);
    let term = |j: usize| {
        let rest = 1.0 - j as f64 * x;
        let size = law::ln_choose(k as u64, j as u64) + (k as f64 - 1.0) * rest.max(1e-300).ln();
        if j % 2 == 1 { size.exp() } else { -size.exp() }
    };
    (1..=last).map(term).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::tail::gev::{self, Shape};

    fn gap_of(values: &[f64]) -> Option<TailGap> {
        let steps = GroupedSample::new(values, 1.0).unwrap();
        widest_gap(&steps, &gev::fit(&steps, Shape::USUAL)?.law)
    }

    fn gumbel(n: usize, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..n).map(|_| 20.0 + 2.0 * -rng.exponential().ln()).collect()
    }

    #[test]
    fn shares_have_the_published_points() {
        // Fisher (1929), table 1: the 5 % points of g for 5, 10, 20 and 50 shares.
        for (k, point) in [(5, 0.68377), (10, 0.44495), (20, 0.27040), (50, 0.13135)] {
            assert!((fisher_tail(point, k) - 0.05).abs() < 2e-4, "{k} {}", fisher_tail(point, k));
        }
        assert_eq!((fisher_tail(0.01, 100), fisher_tail(1.0, 5), fisher_tail(0.3, 0)), (1.0, 0.0, 1.0));
        let tails: Vec<f64> = (16..100).map(|i| fisher_tail(f64::from(i) / 1000.0, 100)).collect();
        assert!(tails.windows(2).all(|pair| pair[1] <= pair[0] + 1e-5), "{tails:?}");
    }

    #[test]
    fn a_separate_group_is_counted() {
        let mut values = gumbel(600, 7);
        assert!(gap_of(&values).unwrap().p > 0.01);
        for at in (0..600).step_by(60) {
            values[at] = 75.0 + at as f64 / 200.0;
        }
        let gap = gap_of(&values).unwrap();
        assert!(gap.p < 0.01 && gap.events == 10 && gap.starts_at == 75.0, "{gap:?}");
    }

    #[test]
    fn coarse_steps_make_no_gap() {
        let law = Gev { mu: 20.0, sigma: 2.0, xi: -0.3 };
        let clean = |seed| {
            let mut rng = Rng::new(seed);
            let values: Vec<f64> = (0..600).map(|_| law.level_of_rate(rng.exponential()).floor()).collect();
            gap_of(&values).unwrap()
        };
        assert_eq!((0..12).filter(|&seed| clean(seed).p < 0.01).count(), 0);
    }

    #[test]
    fn few_or_constant_values_have_no_gap() {
        assert_eq!(gap_of(&gumbel(49, 1)), None);
        assert_eq!(gap_of(&[5.0; 300]), None);
    }
}
