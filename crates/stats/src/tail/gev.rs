//! The law of block maxima: the generalised extreme value distribution, fitted by maximum
//! likelihood.
//!
//! Coles (2001), An Introduction to Statistical Modeling of Extreme Values, equations 3.2 and 3.9,
//! with the likelihood of the steps in which the maxima were recorded. Assumes independent maxima
//! of one law; the shape xi is positive for a heavy tail, negative for one with an upper end.
//! Maximum likelihood is regular for xi > -0.5.

use super::grouped_sample::{GroupedSample, Standard, Step};
use super::lmoments::LMoments;
use super::search::{self, Minimum};
use crate::law;

/// A generalised extreme value law.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gev {
    /// Location, in the unit of the values.
    pub mu: f64,
    /// Scale, in the unit of the values.
    pub sigma: f64,
    pub xi: f64,
}

/// Shape below which the law is Gumbel's. The general formulas hold their digits down to here, and
/// at Hosking's usual 1e-6 the likelihood would have a jump that disturbs a search.
const GUMBEL: f64 = 1e-10;

impl Gev {
    /// The law with these L-moments, its shape by Hosking's approximation (to 9e-4 for shapes
    /// within 0.5 of zero).
    pub fn of_moments(moments: &LMoments) -> Gev {
        let c = 2.0 / (3.0 + moments.l3 / moments.l2) - 2f64.ln() / 3f64.ln();
        Gev::of_moments_and_shape(moments, -(7.859 * c + 2.9554 * c * c))
    }

    /// The law of a given shape (below 1) with these first two L-moments.
    pub fn of_moments_and_shape(moments: &LMoments, xi: f64) -> Gev {
        const EULER: f64 = 0.577_215_664_901_532_9;
        if xi.abs() < 1e-6 {
            let sigma = moments.l2 / 2f64.ln();
            return Gev { mu: moments.l1 - EULER * sigma, sigma, xi: 0.0 };
        }
        let kappa = -xi.min(0.9);
        let gamma = law::gamma_of(1.0 + kappa);
        let sigma = moments.l2 * kappa / ((1.0 - 2f64.powf(-kappa)) * gamma);
        Gev { mu: moments.l1 - sigma * (1.0 - gamma) / kappa, sigma, xi: -kappa }
    }

    /// Expected number of a block's events above x, -ln G(x); infinite below the lower end of the
    /// law.
    pub fn rate_above(&self, x: f64) -> f64 {
        (-self.reduced((x - self.mu) / self.sigma)).exp()
    }

    /// P(X <= x).
    pub fn cdf(&self, x: f64) -> f64 {
        (-self.rate_above(x)).exp()
    }

    /// P(X > x), exact where it is small.
    pub fn sf(&self, x: f64) -> f64 {
        -(-self.rate_above(x)).exp_m1()
    }

    /// Level that a block's maximum stays below with probability p.
    pub fn quantile(&self, p: f64) -> f64 {
        self.level_of_rate(-p.clamp(0.0, 1.0).ln())
    }

    /// Level with -ln G = rate; exact for rates near 0, where the probability itself is 1 to all
    /// digits.
    pub fn level_of_rate(&self, rate: f64) -> f64 {
        let y = -rate.ln();
        let units = if self.xi.abs() < GUMBEL { y } else { (self.xi * y).exp_m1() / self.xi };
        self.mu + self.sigma * units
    }

    /// Converts to Gumbel's scale: s of G = exp(-exp(-s)).
    fn reduced(&self, s: f64) -> f64 {
        if self.xi.abs() < GUMBEL {
            return s;
        }
        let t = self.xi * s;
        if t <= -1.0 {
            if self.xi > 0.0 { f64::NEG_INFINITY } else { f64::INFINITY }
        } else {
            t.ln_1p() / self.xi
        }
    }

    /// ln of the probability of a step, or of the density where the step has no width.
    pub fn ln_step(&self, step: &Step) -> f64 {
        let s = (step.low - self.mu) / self.sigma;
        let reduced = self.reduced(s);
        let rate = (-reduced).exp();
        if step.high == step.low {
            return -(1.0 + self.xi) * reduced - rate - self.sigma.ln();
        }
        if step.high == f64::INFINITY {
            return (-(-rate).exp_m1()).ln();
        }
        let width = (step.high - step.low) / self.sigma;
        if rate == f64::INFINITY {
            return -self.rate_above(step.high);
        }
        // Distance of both edges on Gumbel's scale from the width itself: no difference of near
        // equals.
        let apart = if self.xi.abs() < GUMBEL {
            width
        } else {
            (self.xi * width / (1.0 + self.xi * s)).max(-1.0).ln_1p() / self.xi
        };
        let lost = -(-apart).exp_m1();
        let between = rate * lost;
        -rate * (1.0 - lost) + (-(-between).exp_m1()).ln()
    }

    /// Minus the log-likelihood of steps; infinite where the law excludes one of them.
    pub fn nllh(&self, steps: &[Step]) -> f64 {
        let sum: f64 = steps.iter().map(|step| step.count * self.ln_step(step)).sum();
        if sum.is_finite() && self.sigma > 0.0 { -sum } else { f64::INFINITY }
    }

    fn of(&[mu, ln_sigma, xi]: &[f64; 3]) -> Gev {
        Gev { mu, sigma: ln_sigma.exp(), xi }
    }

    /// The same law for values in the standard units of the data.
    pub fn standard(&self, data: &Standard) -> Gev {
        Gev { mu: (self.mu - data.centre) / data.scale, sigma: self.sigma / data.scale, xi: self.xi }
    }

    fn natural(&self, data: &Standard) -> Gev {
        Gev { mu: data.centre + data.scale * self.mu, sigma: data.scale * self.sigma, xi: self.xi }
    }
}

/// Shapes that a fit may have, both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shape {
    pub low: f64,
    pub high: f64,
}

impl Shape {
    /// Shapes for which maximum likelihood is regular and the mean is finite.
    pub const USUAL: Shape = Shape { low: -0.5, high: 0.7 };
    /// Shapes so wide that no profile is cut off: bounds from 60 maxima of xi 0.3 take shapes above
    /// 0.7 into account. Not for a test of the fit: a separate mode can pass for so heavy a tail.
    pub const WIDE: Shape = Shape { low: -0.5, high: 1.5 };
    /// Shapes without an upper end of the tail.
    pub const NON_NEGATIVE: Shape = Shape { low: 0.0, high: 1.5 };

    /// True if a shape is one of these.
    pub fn holds(&self, xi: f64) -> bool {
        (self.low..=self.high).contains(&xi)
    }

    /// True if a fitted shape is at an end of its range, so that the maximum is not interior.
    pub fn is_edge(&self, xi: f64) -> bool {
        xi <= self.low + 1e-6 || xi >= self.high - 1e-6
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GevFit {
    pub law: Gev,
    /// Minus the log-likelihood, natural logarithm: of the steps' probabilities, or of densities
    /// for width 0.
    pub nllh: f64,
    pub n: f64,
    /// Shapes that were allowed.
    pub shape: Shape,
}

/// Fits by maximum likelihood; None for less than three distinct values or without spread.
pub fn fit(steps: &GroupedSample, shape: Shape) -> Option<GevFit> {
    let data = steps.standard()?;
    let least = fit_standard(&data, shape)?;
    Some(natural_fit(&data, &least, steps.n(), shape))
}

/// Fits Gumbel's law, xi = 0.
#[cfg(test)]
fn fit_gumbel(steps: &GroupedSample) -> Option<GevFit> {
    fit(steps, Shape { low: 0.0, high: 0.0 })
}

fn natural_fit(data: &Standard, least: &Minimum<3>, n: f64, shape: Shape) -> GevFit {
    GevFit { law: Gev::of(&least.at).natural(data), nllh: least.value + data.offset, n, shape }
}

/// Fits from one start near the optimum with fewer digits, for the many fits of a bootstrap.
pub fn fit_from(data: &Standard, start: &Gev, shape: Shape) -> Option<Gev> {
    let start = feasible(data, start.standard(data), shape);
    let boxed = |at: &[f64; 3]| boxed_nllh(data, shape, at);
    let least = search::nelder_mead(&boxed, start, [0.05, 0.05, 0.05], 1e-4, 250);
    least.value.is_finite().then(|| Gev::of(&least.at).natural(data))
}

fn boxed_nllh(data: &Standard, shape: Shape, at: &[f64; 3]) -> f64 {
    if shape.holds(at[2]) { Gev::of(at).nllh(&data.steps) } else { f64::INFINITY }
}

/// Widens a law until no value lies outside of it.
fn feasible(data: &Standard, law: Gev, shape: Shape) -> [f64; 3] {
    let mut at = [law.mu, law.sigma.max(1e-6).ln(), law.xi.clamp(shape.low, shape.high)];
    for _ in 0..60 {
        if Gev::of(&at).nllh(&data.steps).is_finite() {
            break;
        }
        at[1] += 0.2;
    }
    at
}

fn fit_standard(data: &Standard, shape: Shape) -> Option<Minimum<3>> {
    let moments = LMoments { l1: 0.0, l2: 1.0, l3: data.skew };
    if shape.low >= shape.high {
        let start = Gev::of_moments_and_shape(&moments, shape.low);
        return of_shape(data, shape.low, [start.mu, start.sigma.ln()]);
    }
    let boxed = |at: &[f64; 3]| boxed_nllh(data, shape, at);
    let laws = [-0.1, 0.05, 0.2].map(|xi| Gev::of_moments_and_shape(&moments, xi));
    let mut best = Minimum { at: [0.0; 3], value: f64::INFINITY };
    for law in std::iter::once(Gev::of_moments(&moments)).chain(laws) {
        let rough = search::nelder_mead(&boxed, feasible(data, law, shape), [0.2, 0.1, 0.1], 1e-2, 120);
        best = if rough.value < best.value { rough } else { best };
    }
    if !best.value.is_finite() {
        return None;
    }
    let fine = search::nelder_mead(&boxed, best.at, [0.02, 0.02, 0.02], 1e-8, 600);
    let last = search::polish(&|at: &[f64; 3]| Gev::of(at).nllh(&data.steps), fine, 1e-4, 6);
    let inside = if shape.holds(last.at[2]) { last } else { fine };
    // A simplex near the boundary converges slowly: on it there are only two parameters.
    let wall = if inside.at[2] - shape.low < shape.high - inside.at[2] { shape.low } else { shape.high };
    let near = (inside.at[2] - wall).abs() < 0.1;
    let walled = if near { of_shape(data, wall, [inside.at[0], inside.at[1]]) } else { None };
    Some(walled.filter(|walled| walled.value < inside.value).unwrap_or(inside))
}

/// Best law of one shape, from a start in (mu, ln sigma), both in standard units.
pub fn of_shape(data: &Standard, xi: f64, start: [f64; 2]) -> Option<Minimum<3>> {
    let law = Gev { mu: start[0], sigma: start[1].exp(), xi };
    let [mu, ln_sigma, _] = feasible(data, law, Shape { low: xi, high: xi });
    let flat = |at: &[f64; 2]| Gev { mu: at[0], sigma: at[1].exp(), xi }.nllh(&data.steps);
    let fine = search::nelder_mead(&flat, [mu, ln_sigma], [0.1, 0.05], 1e-7, 400);
    let least = search::polish(&flat, fine, 1e-4, 6);
    least.value.is_finite().then_some(Minimum { at: [least.at[0], least.at[1], xi], value: least.value })
}

/// Covariance of (mu, sigma, xi) from the observed information; None where the maximum is an edge
/// or flat.
pub fn covariance(steps: &GroupedSample, fit: &GevFit) -> Option<[[f64; 3]; 3]> {
    let data = steps.standard()?;
    let law = fit.law.standard(&data);
    let f = |&[mu, sigma, xi]: &[f64; 3]| Gev { mu, sigma, xi }.nllh(&data.steps);
    let (_, second) = search::derivatives(&f, &[law.mu, law.sigma, law.xi], 1e-4);
    let unit = search::inverse(&second)?;
    let size = [data.scale, data.scale, 1.0];
    Some(std::array::from_fn(|i| std::array::from_fn(|j| unit[i][j] * size[i] * size[j])))
}

/// Standard errors of (mu, sigma, xi).
pub fn standard_errors(steps: &GroupedSample, fit: &GevFit) -> Option<[f64; 3]> {
    covariance(steps, fit).map(|cov| std::array::from_fn(|i| cov[i][i].sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{FREMANTLE_M, PORT_PIRIE_M};
    use crate::rng::Rng;
    use proptest::prelude::*;

    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
    }

    fn continuous(values: &[f64]) -> GroupedSample {
        GroupedSample::new(values, 0.0).unwrap()
    }

    fn drawn(law: Gev, n: usize, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        (0..n).map(|_| law.level_of_rate(rng.exponential())).collect()
    }

    #[test]
    fn port_pirie_is_as_published() {
        let steps = continuous(&PORT_PIRIE_M);
        let fit = fit(&steps, Shape::USUAL).unwrap();
        near(fit.nllh, -4.339_058_5, 1e-6);
        near(fit.law.mu, 3.874_749_9, 1e-5);
        near(fit.law.sigma, 0.198_043_96, 1e-5);
        near(fit.law.xi, -0.050_109_534, 1e-5);
        let errors = standard_errors(&steps, &fit).unwrap();
        for (error, expected) in errors.iter().zip([0.027_932_204, 0.020_249_228, 0.098_255_598]) {
            near(*error, expected, 1e-3 * expected);
        }
        near(covariance(&steps, &fit).unwrap()[0][2], -0.001_074_086_1, 1e-6);
        for (years, level) in [(10.0, 4.296_211_9), (100.0, 4.688_403_8), (1000.0, 5.031_058_8)] {
            near(fit.law.quantile(1.0 - 1.0 / years), level, 1e-4);
        }
        let gumbel = fit_gumbel(&steps).unwrap();
        near(gumbel.law.mu, 3.869_443_5, 1e-6);
        near(gumbel.law.sigma, 0.194_889_44, 1e-6);
        near(gumbel.nllh, -4.217_681_9, 1e-6);
        near(2.0 * (gumbel.nllh - fit.nllh), 0.242_753_15, 1e-5);
    }

    #[test]
    fn fremantle_is_as_published() {
        let fit = fit(&continuous(&FREMANTLE_M), Shape::USUAL).unwrap();
        near(fit.nllh, -43.566_629, 1e-5);
        near(fit.law.mu, 1.482_341_8, 1e-4);
        near(fit.law.sigma, 0.141_272_26, 1e-4);
        near(fit.law.xi, -0.217_427_99, 1e-4);
    }

    #[test]
    fn the_fit_is_independent_of_the_unit() {
        let values = drawn(Gev { mu: 12.0, sigma: 1.5, xi: 0.1 }, 300, 3);
        let shape = |unit: f64, width: f64| {
            let values: Vec<f64> = values.iter().map(|v| v * unit).collect();
            fit(&GroupedSample::new(&values, width * unit).unwrap(), Shape::USUAL).unwrap().law.xi
        };
        for width in [0.0, 0.25] {
            near(shape(1000.0, width), shape(1.0, width), 1e-8);
            near(shape(1e-6, width), shape(1.0, width), 1e-8);
        }
    }

    #[test]
    fn grouping_values_hardly_changes_the_fit() {
        for (n, xi, width) in [(300, -0.4, 1.0), (300, 0.3, 0.0), (300, 0.6, 0.0), (2_000, 0.1, 1.0)] {
            let law = Gev { mu: 20_000.0, sigma: 1_500.0, xi };
            let steps = GroupedSample::new(&drawn(law, n, 5), width).unwrap();
            let (few, all) = (steps.standard().unwrap(), steps.standard_with(0.0).unwrap());
            assert!(few.steps.len() < all.steps.len() / 2);
            let [few, all] = [few, all].map(|data| Gev::of(&fit_standard(&data, Shape::USUAL).unwrap().at));
            let most = if xi == 0.6 { 1e-4 } else { 2e-5 };
            near(few.mu, all.mu, most * all.sigma);
            near(few.sigma, all.sigma, most * all.sigma);
            near(few.xi, all.xi, most);
            near(few.xi, xi, 0.1);
        }
    }

    #[test]
    fn edges_are_reported() {
        let ended = drawn(Gev { mu: 0.0, sigma: 1.0, xi: -0.9 }, 200, 1);
        let heavy = drawn(Gev { mu: 0.0, sigma: 1.0, xi: 2.0 }, 200, 2);
        for (values, edge) in [(ended, -0.5), (heavy, 0.7)] {
            let fit = fit(&continuous(&values), Shape::USUAL).unwrap();
            assert!(fit.law.xi == edge && Shape::USUAL.is_edge(fit.law.xi), "{fit:?}");
        }
        assert!(!Shape::USUAL.is_edge(0.3));
        let guarded = fit(&continuous(&PORT_PIRIE_M), Shape::NON_NEGATIVE).unwrap();
        near(guarded.law.mu, 3.869_443_5, 1e-5);
        assert_eq!(guarded.law.xi, 0.0);
    }

    #[test]
    fn too_few_values_give_none_and_odd_ones_terminate() {
        assert!(fit(&continuous(&[5.0; 100]), Shape::USUAL).is_none());
        assert!(fit(&continuous(&[1.0, 2.0]), Shape::USUAL).is_none());
        for values in [vec![1.0, 2.0, 3.0], vec![0.0, 1e-300, 1e300], vec![0.0, 0.0, 0.0, 0.0, 1.0, 1e9]] {
            let _ = fit(&continuous(&values), Shape::USUAL);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn steps_add_up_to_the_law(
            xi in -0.5f64..0.7, sigma in 0.1f64..10.0, low in -3.0f64..30.0, width in 1e-3f64..5.0,
        ) {
            let law = Gev { mu: 1.0, sigma, xi };
            let (low, high) = (1.0 + low * sigma, 1.0 + (low + width) * sigma);
            let whole = law.ln_step(&Step { low, high, count: 1.0 }).exp();
            let (a, b) = (law.sf(low), law.sf(high));
            prop_assert!((whole - (a - b)).abs() <= 1e-12 + 1e-9 * whole, "{whole} {}", a - b);
            let x = law.quantile(law.cdf(low));
            prop_assert!(law.cdf(low) < 1e-9 || a < 1e-9 || (x - low).abs() < 1e-5 * sigma);
            let open = law.ln_step(&Step { low, high: f64::INFINITY, count: 1.0 }).exp();
            prop_assert!((open - a).abs() <= 1e-12 * a);
        }
    }
}
