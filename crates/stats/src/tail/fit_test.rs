//! Test of one fitted tail law: Anderson-Darling statistics with a parametric bootstrap.
//!
//! Stephens (1974), EDF Statistics for Goodness of Fit; the upper-tail form of Ahmad, Sinclair and
//! Spurr (1988), Assessment of flood frequency models using empirical distribution function
//! statistics; for grouped data Choulakian, Lockhart and Stephens (1994), Cramer-von Mises
//! statistics for discrete distributions. Assumes independent values. The parameters are fitted, so
//! the p-value comes from refits of drawn data.

use super::gev::{self, Gev, GevFit};
use super::grouped_sample::{GroupedSample, Step};
use crate::rng::Rng;
use model::sort::CompactSort;

/// Number of refits of a bootstrap.
pub const REFITS: u32 = 499;
/// Maximum number of values that a bootstrap draws: beyond it, the statistics' laws no longer
/// depend on the number.
const DRAWN: usize = 2000;
/// Width of the groups of values in a bootstrap's fits, in L-scales: a third of a sigma is close
/// enough for a refit.
const COARSE: f64 = 0.5;
/// Largest number of values that are placed one by one.
const TOO_MANY: f64 = 2e6;

/// A value with its probabilities under a law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueProbability {
    /// Lower edge of the step in which it was recorded, in the unit of the values.
    pub low: f64,
    /// P(X <= x).
    pub below: f64,
    /// P(X > x), exact where it is small.
    pub above: f64,
}

/// The values' probabilities under a law, ascending, each drawn within its step: under the law they
/// are uniform. Empty for more than two million values or with an open step.
pub fn placed(
    steps: &GroupedSample,
    law: impl Fn(f64) -> (f64, f64),
    rng: &mut Rng,
) -> Vec<ValueProbability> {
    if steps.n() > TOO_MANY || steps.all().iter().any(|s| s.high.is_infinite()) {
        return Vec::new();
    }
    let mut all = Vec::with_capacity(steps.n() as usize);
    for step in steps.all() {
        let ((below, above), (below_high, above_high)) = (law(step.low), law(step.high));
        let mut parts: Vec<f64> = (0..step.count as usize).map(|_| rng.uniform()).collect();
        parts.compact_sort_by(f64::total_cmp);
        all.extend(parts.into_iter().map(|part| ValueProbability {
            low: step.low,
            below: below + part * (below_high - below),
            above: above_high + (1.0 - part) * (above - above_high),
        }));
    }
    all
}

/// Anderson-Darling statistic A^2; infinite if a value has no probability.
pub fn anderson_darling(placed: &[ValueProbability]) -> f64 {
    let n = placed.len() as f64;
    let sum: f64 = placed
        .iter()
        .zip(placed.iter().rev())
        .enumerate()
        .map(|(i, (up, down))| (2 * i + 1) as f64 * (up.below.ln() + down.above.ln()))
        .sum();
    -n - sum / n
}

/// Upper-tail form AU^2, which weighs by 1 / P(X > x) alone.
pub fn upper_tail(placed: &[ValueProbability]) -> f64 {
    let n = placed.len() as f64;
    let term =
        |(i, p): (usize, &ValueProbability)| 2.0 * p.below + (2.0 - (2 * i + 1) as f64 / n) * p.above.ln();
    n / 2.0 - placed.iter().enumerate().map(term).sum::<f64>()
}

/// Statistic W^2 of Cramer and von Mises.
#[cfg(test)]
fn cramer_von_mises(placed: &[ValueProbability]) -> f64 {
    let n = placed.len() as f64;
    let term = |(i, p): (usize, &ValueProbability)| (p.below - (2 * i + 1) as f64 / (2.0 * n)).powi(2);
    1.0 / (12.0 * n) + placed.iter().enumerate().map(term).sum::<f64>()
}

/// Counts the drawn data that reach the observed statistic, and detects that more refits cannot
/// change the verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tally {
    reached: u32,
    done: u32,
    refits: u32,
}

impl Tally {
    /// Tally of a bootstrap with this number of refits.
    fn new(refits: u32) -> Tally {
        Tally { reached: 0, done: 0, refits }
    }

    fn count(&mut self, reached: bool) {
        self.reached += u32::from(reached);
        self.done += 1;
    }

    /// True if the p-value of all refits is on one side of alpha for any outcome of the rest.
    fn is_certain(&self, alpha: f64) -> bool {
        let of_all = |reached: u32| f64::from(reached + 1) / f64::from(self.refits + 1);
        let left = self.refits.saturating_sub(self.done);
        left == 0 || of_all(self.reached) >= alpha || of_all(self.reached + left) < alpha
    }

    /// P-value by the refits done: (reached + 1) / (done + 1), the least of any bootstrap being
    /// 1 / (done + 1).
    fn p(&self) -> f64 {
        f64::from(self.reached + 1) / f64::from(self.done + 1)
    }
}

/// Result of the test of a fitted law of maxima.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitTest {
    /// A^2.
    pub a2: f64,
    /// P-value of A^2 by the refits done.
    pub a2_p: f64,
    /// AU^2.
    pub au2: f64,
    /// P-value of AU^2 by the refits done.
    pub au2_p: f64,
    /// Number of refits until both verdicts at alpha were certain.
    pub refits: u32,
}

/// Tests a fit of maxima at level alpha with at most `refits` refits; `None` without data to test.
///
/// The bootstrap ends early if neither verdict can change any more; the p-values are then those of
/// fewer refits, on the same side of alpha.
pub fn of_maxima(steps: &GroupedSample, fit: &GevFit, alpha: f64, refits: u32, seed: u64) -> Option<FitTest> {
    let mut rng = Rng::new(seed);
    let (a2, au2) = statistics(steps, &fit.law, &mut rng)?;
    let n = (steps.n() as usize).min(DRAWN);
    let (mut a2_tally, mut au2_tally) = (Tally::new(refits), Tally::new(refits));
    while a2_tally.done < refits && !(a2_tally.is_certain(alpha) && au2_tally.is_certain(alpha)) {
        let drawn = refitted(steps, fit, n, &mut rng);
        // Drawn data that cannot be fitted do not count as reaching the statistic: that can only
        // cost a run its extrapolation.
        a2_tally.count(drawn.is_some_and(|drawn| drawn.0 >= a2));
        au2_tally.count(drawn.is_some_and(|drawn| drawn.1 >= au2));
    }
    Some(FitTest { a2, a2_p: a2_tally.p(), au2, au2_p: au2_tally.p(), refits: a2_tally.done })
}

/// (A^2, AU^2) of steps under a law of maxima.
pub fn statistics(steps: &GroupedSample, law: &Gev, rng: &mut Rng) -> Option<(f64, f64)> {
    let placed = placed(steps, |x| (law.cdf(x), law.sf(x)), rng);
    (placed.len() >= 3).then(|| (anderson_darling(&placed), upper_tail(&placed)))
}

fn refitted(steps: &GroupedSample, fit: &GevFit, n: usize, rng: &mut Rng) -> Option<(f64, f64)> {
    let values: Vec<f64> = (0..n).map(|_| fit.law.level_of_rate(rng.exponential())).collect();
    let drawn = on_the_grid_of(steps.all().first()?, values)?;
    let law = gev::fit_from(&drawn.standard_with(COARSE)?, &fit.law, fit.shape)?;
    statistics(&drawn, &law, rng)
}

/// Groups values like the data: in steps as wide as this one, with an edge at its lower edge.
fn on_the_grid_of(step: &Step, mut values: Vec<f64>) -> Option<GroupedSample> {
    let width = step.high - step.low;
    if width > 0.0 {
        let cell = |v: f64| ((v - step.low) / width).floor();
        values.iter_mut().for_each(|v| *v = cell(*v) * width + step.low);
    }
    values.compact_sort_by(f64::total_cmp);
    let mut steps: Vec<Step> = Vec::new();
    for low in values {
        match steps.last_mut() {
            Some(last) if last.low == low => last.count += 1.0,
            _ => steps.push(Step { low, high: low + width, count: 1.0 }),
        }
    }
    GroupedSample::of_steps(steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{PORT_PIRIE_M, RAIN_OVER_30_MM};
    use crate::rng::SEED;
    use crate::tail::gev::Shape;

    fn tested(values: &[f64], width: f64) -> FitTest {
        let steps = GroupedSample::new(values, width).unwrap();
        let fit = gev::fit(&steps, Shape::USUAL).unwrap();
        of_maxima(&steps, &fit, 0.01, REFITS, SEED).unwrap()
    }

    fn gumbel(n: usize, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..n).map(|_| Gev { mu: 20.0, sigma: 2.0, xi: 0.0 }.level_of_rate(rng.exponential())).collect()
    }

    #[test]
    fn rain_has_the_published_statistics() {
        let rain = GroupedSample::new(&RAIN_OVER_30_MM, 0.0).unwrap();
        // The generalised Pareto law that Coles (2001), example 4.4.1, fits to the excesses.
        let (sigma, xi) = (7.440_269_f64, 0.184_499_04_f64);
        let above = |mm: f64| (1.0 + xi * (mm - 30.0) / sigma).powf(-1.0 / xi);
        let placed = placed(&rain, |mm| (1.0 - above(mm), above(mm)), &mut Rng::new(1));
        assert!((anderson_darling(&placed) - 0.391_368_81).abs() < 1e-4, "{}", anderson_darling(&placed));
        assert!((cramer_von_mises(&placed) - 0.038_087_882).abs() < 1e-5);
    }

    #[test]
    fn evenly_placed_values_have_known_statistics() {
        let even: Vec<ValueProbability> = (1..=4)
            .map(|i| f64::from(i) / 5.0)
            .map(|p| ValueProbability { low: p, below: p, above: 1.0 - p })
            .collect();
        // By hand: the sums of the definitions for 0.2, 0.4, 0.6, 0.8.
        let ln = |p: f64| p.ln();
        let a2 = -4.0 - 2.0 * (ln(0.2) + 3.0 * ln(0.4) + 5.0 * ln(0.6) + 7.0 * ln(0.8)) / 4.0;
        assert!((anderson_darling(&even) - a2).abs() < 1e-12);
        let au2 = 2.0 - 4.0 - (1.75 * ln(0.8) + 1.25 * ln(0.6) + 0.75 * ln(0.4) + 0.25 * ln(0.2));
        assert!((upper_tail(&even) - au2).abs() < 1e-12);
    }

    #[test]
    fn one_law_passes_early_and_two_do_not() {
        for width in [0.0, 1.0] {
            let clean = tested(&gumbel(300, 3), width);
            assert!(clean.a2_p >= 0.01 && clean.au2_p >= 0.01 && clean.refits < REFITS, "{clean:?}");
        }
        let mut mixed = gumbel(200, 4);
        mixed.iter_mut().step_by(40).for_each(|v| *v += 50.0);
        let mixed = tested(&mixed, 1.0);
        assert!(mixed.au2_p < 0.01, "{mixed:?}");
        let port_pirie = tested(&PORT_PIRIE_M, 0.01);
        assert!(port_pirie.a2_p > 0.05, "{port_pirie:?}");
    }

    #[test]
    fn verdicts_are_certain_when_nothing_can_change_them() {
        let mut tally = Tally::new(499);
        assert!(!tally.is_certain(0.01));
        (0..4).for_each(|_| tally.count(true));
        assert!(tally.is_certain(0.01), "5 of 500 is 0.01 already");
        let mut never = Tally::new(499);
        (0..495).for_each(|_| never.count(false));
        assert!(!never.is_certain(0.01));
        never.count(false);
        assert!(never.is_certain(0.01) && never.p() < 0.01);
    }

    #[test]
    fn an_open_step_or_a_flood_is_not_placed() {
        let open =
            [Step { low: 0.0, high: 1.0, count: 5.0 }, Step { low: 1.0, high: f64::INFINITY, count: 1.0 }];
        let flood = [Step { low: 0.0, high: 1.0, count: 1e12 }];
        for steps in [&open[..], &flood[..]] {
            let steps = GroupedSample::of_steps(steps.to_vec()).unwrap();
            assert!(placed(&steps, |_| (0.5, 0.5), &mut Rng::new(1)).is_empty());
        }
    }
}
