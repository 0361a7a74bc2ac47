//! Coverage of the bounds of a fitted tail and false alarms of its gates, on drawn data.
//!
//! Coles (2001), section 2.6.6, has the theory that the coverage is checked against. Every
//! experiment is a function of its seed and number of repetitions; the tests are short forms,
//! `tails` has the long ones.

use stats::rng::Rng;
use stats::tail::fit_test;
use stats::tail::gap;
use stats::tail::gev::{self, Gev, Shape};
use stats::tail::grouped_sample::GroupedSample;
use stats::tail::profile::{self, Level, ONE_SIDED_95, TWO_SIDED_95};

/// Coverage of the bounds of a level.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverage {
    /// Part of repetitions in which the two-sided 95 % interval held the level.
    pub two_sided: f64,
    /// Rate at which the one-sided 95 % upper bound was not below it.
    pub upper: f64,
    /// Rate at which the upper bound of shapes from zero on was not below it.
    pub guarded: f64,
}

fn maxima(law: &Gev, n: usize, rng: &mut Rng) -> Vec<f64> {
    (0..n).map(|_| law.level_of_rate(rng.exponential())).collect()
}

fn not_below(bound: Option<f64>, level: f64) -> bool {
    bound.is_none_or(|bound| bound >= level)
}

/// Profile bounds of the level that one of 10 n blocks exceeds, from n maxima of a law with sigma
/// 1.
pub fn level_coverage(n: usize, xi: f64, reps: u32, seed: u64) -> Coverage {
    let law = Gev { mu: 10.0, sigma: 1.0, xi };
    let level = Level { blocks: 1.0, probability: 1.0 - 0.1 / n as f64 };
    let truth = level.of(&law);
    let mut rng = Rng::new(seed);
    let mut held = [0u32; 3];
    for _ in 0..reps {
        let steps = GroupedSample::new(&maxima(&law, n, &mut rng), 0.0);
        let Some((steps, fit)) =
            steps.and_then(|steps| gev::fit(&steps, Shape::USUAL).map(|fit| (steps, fit)))
        else {
            continue;
        };
        let both = profile::level_interval(&steps, &fit, level, TWO_SIDED_95);
        let upper = profile::level_upper(&steps, &fit, level, ONE_SIDED_95);
        let guarded = gev::fit(&steps, Shape::NON_NEGATIVE)
            .and_then(|fit| profile::level_upper(&steps, &fit, level, ONE_SIDED_95));
        held[0] += u32::from(not_below(both.high, truth) && both.low.is_none_or(|low| low <= truth));
        held[1] += u32::from(not_below(upper, truth));
        held[2] += u32::from(not_below(guarded, truth));
    }
    let [two_sided, upper, guarded] = held.map(|count| part(count, reps));
    Coverage { two_sided, upper, guarded }
}

fn part(count: u32, reps: u32) -> f64 {
    f64::from(count) / f64::from(reps.max(1))
}

/// Rate at which the maximum of the next m blocks stays below a bound for probability 0.95 from n:
/// (estimate, upper bound).
pub fn prediction(n: usize, m: f64, xi: f64, reps: u32, seed: u64) -> (f64, f64) {
    let law = Gev { mu: 10.0, sigma: 1.0, xi };
    let level = Level { blocks: m, probability: 0.95 };
    let mut rng = Rng::new(seed);
    let mut held = [0u32; 2];
    for _ in 0..reps {
        let steps = GroupedSample::new(&maxima(&law, n, &mut rng), 0.0);
        let next = law.level_of_rate(rng.exponential() / m);
        let Some(steps) = steps else { continue };
        let Some(fit) = gev::fit(&steps, Shape::USUAL) else { continue };
        held[0] += u32::from(level.of(&fit.law) >= next);
        held[1] += u32::from(not_below(profile::level_upper(&steps, &fit, level, ONE_SIDED_95), next));
    }
    (part(held[0], reps), part(held[1], reps))
}

/// Two-sided coverage of the 1-in-6000 level from 600 maxima recorded in steps of 1, for a law with
/// this sigma and xi 0.05: (by the likelihood of the steps, by that of densities at their middles).
pub fn rounded_coverage(sigma: f64, reps: u32, seed: u64) -> (f64, f64) {
    let law = Gev { mu: 6.3, sigma, xi: 0.05 };
    let level = Level { blocks: 1.0, probability: 1.0 - 1.0 / 6000.0 };
    let truth = level.of(&law);
    let mut rng = Rng::new(seed);
    let mut held = [0u32; 2];
    for _ in 0..reps {
        let values: Vec<f64> = maxima(&law, 600, &mut rng).iter().map(|v| v.floor()).collect();
        let middles: Vec<f64> = values.iter().map(|v| v + 0.5).collect();
        for (held, (values, width)) in held.iter_mut().zip([(values, 1.0), (middles, 0.0)]) {
            let Some(steps) = GroupedSample::new(&values, width) else { continue };
            let Some(fit) = gev::fit(&steps, Shape::USUAL) else { continue };
            let both = profile::level_interval(&steps, &fit, level, TWO_SIDED_95);
            *held += u32::from(not_below(both.high, truth) && both.low.is_none_or(|low| low <= truth));
        }
    }
    (part(held[0], reps), part(held[1], reps))
}

/// The 95 % and 99 % points of (A^2, AU^2) of n maxima under their own fit.
#[cfg(test)]
pub fn fit_statistics(n: usize, xi: f64, reps: u32, seed: u64) -> [(f64, f64); 2] {
    let law = Gev { mu: 10.0, sigma: 1.0, xi };
    let mut rng = Rng::new(seed);
    let (mut a2, mut au2) = (Vec::new(), Vec::new());
    for _ in 0..reps {
        let steps = GroupedSample::new(&maxima(&law, n, &mut rng), 0.0);
        let Some((steps, fit)) =
            steps.and_then(|steps| gev::fit(&steps, Shape::USUAL).map(|fit| (steps, fit)))
        else {
            continue;
        };
        let Some(statistics) = fit_test::statistics(&steps, &fit.law, &mut rng) else { continue };
        a2.push(statistics.0);
        au2.push(statistics.1);
    }
    a2.sort_by(f64::total_cmp);
    au2.sort_by(f64::total_cmp);
    let point =
        |list: &[f64], q: f64| list.get((q * list.len() as f64) as usize).copied().unwrap_or(f64::NAN);
    [0.95, 0.99].map(|q| (point(&a2, q), point(&au2, q)))
}

/// Blocks that carry a second mechanism.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Contamination {
    /// None does.
    Clean,
    /// One of that many blocks.
    Every(usize),
    /// Each block with this probability.
    Share(f64),
}

/// Rate at which gates stop 600 Gumbel maxima (sigma 2, steps of 1, or law of shape xi) with a
/// second mechanism `shift` higher: (gap at 0.01, A^2 or AU^2 beyond their approximate 99 % points
/// 0.80 and 0.46).
pub fn gates(mode: Contamination, shift: f64, xi: f64, reps: u32, seed: u64) -> (f64, f64) {
    let law = Gev { mu: 20.0, sigma: 2.0, xi };
    let mut rng = Rng::new(seed);
    let mut stopped = [0u32; 2];
    for _ in 0..reps {
        let mut values = maxima(&law, 600, &mut rng);
        for (block, value) in values.iter_mut().enumerate() {
            let carries = match mode {
                Contamination::Clean => false,
                Contamination::Every(blocks) => block % blocks.max(1) == 0,
                Contamination::Share(share) => rng.uniform() < share,
            };
            *value += if carries { shift } else { 0.0 };
        }
        let Some(steps) = GroupedSample::new(&values, 1.0) else { continue };
        let Some(fit) = gev::fit(&steps, Shape::USUAL) else { continue };
        // Not used: with it the draws that follow are those of the accepted rates.
        rng.next_u64();
        let gap = gap::widest_gap(&steps, &fit.law);
        let statistics = fit_test::statistics(&steps, &fit.law, &mut rng);
        stopped[0] += u32::from(gap.is_some_and(|gap| gap.p < 0.01));
        stopped[1] += u32::from(statistics.is_some_and(|(a2, au2)| a2 > 0.80 || au2 > 0.46));
    }
    (part(stopped[0], reps), part(stopped[1], reps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::rng::SEED;

    /// Asserts a rate within three standard deviations of the published one.
    fn near(rate: f64, published: f64, reps: u32) {
        let tolerance = 3.0 * (published * (1.0 - published) / f64::from(reps)).sqrt();
        assert!((rate - published).abs() <= tolerance + 1e-9, "{rate} of {reps} is not {published}");
    }

    #[test]
    fn profile_bounds_hold_as_often_as_published() {
        for (xi, two_sided, upper) in [(-0.2, 0.945, 0.912), (0.0, 0.953, 0.929), (0.2, 0.944, 0.934)] {
            let coverage = level_coverage(60, xi, 16, SEED);
            near(coverage.two_sided, two_sided, 16);
            near(coverage.upper, upper, 16);
            near(coverage.guarded, if xi > 0.1 { 0.96 } else { 0.999 }, 16);
        }
    }

    #[test]
    fn longer_series_keep_their_coverage() {
        let coverage = level_coverage(300, 0.2, 30, SEED);
        near(coverage.two_sided, 0.953, 30);
        near(coverage.upper, 0.954, 30);
        near(coverage.guarded, 0.935, 30);
    }

    #[test]
    fn printed_bounds_hold_for_the_next_blocks() {
        let (estimate, upper) = prediction(300, 3000.0, 0.1, 40, SEED);
        near(estimate, 0.84, 40);
        near(upper, 0.965, 40);
        assert!(upper > estimate);
    }

    #[test]
    fn recorded_steps_need_their_own_likelihood() {
        let (grouped, middles) = rounded_coverage(0.4, 30, SEED);
        near(grouped, 0.913, 30);
        assert!(middles < 0.3, "{middles}");
        near(rounded_coverage(2.0, 20, SEED).0, 0.973, 20);
    }

    #[test]
    fn statistics_of_fitted_laws_have_the_published_points() {
        let [(a2, au2), _] = fit_statistics(300, 0.0, 150, SEED);
        assert!((a2 - 0.58).abs() < 0.12 && (au2 - 0.317).abs() < 0.07, "{a2} {au2}");
    }

    #[test]
    fn gates_stop_a_second_mechanism_and_let_one_law_pass() {
        let (gap, statistic) = gates(Contamination::Clean, 0.0, 0.0, 60, SEED);
        near(gap, 0.02, 60);
        near(statistic, 0.01, 60);
        let (gap, statistic) = gates(Contamination::Every(60), 30.0, 0.0, 20, SEED);
        near(gap, 1.0, 20);
        near(statistic, 1.0, 20);
        near(gates(Contamination::Share(0.005), 50.0, 0.0, 40, SEED).0, 0.915, 40);
        let (gap, statistic) = gates(Contamination::Share(0.05), 15.0, 0.0, 40, SEED);
        near(gap, 0.36, 40);
        near(statistic, 0.956, 40);
    }
}
