//! The law of excesses over a threshold: the generalised Pareto distribution, fitted to values or to a histogram.
//!
//! Coles (2001), An Introduction to Statistical Modeling of Extreme Values, equations 4.2, 4.10 and 4.12, with the
//! likelihood of the steps in which the values were recorded; an open last step takes part as what it is. Assumes
//! independent excesses of one law: a histogram alone cannot show whether they are.

use super::gev::Shape;
use super::profile::{Interval, outward, root_excess};
use super::search::{self, Minimum};
use super::steps::{Standard, Step, Steps};

/// A generalised Pareto law of excesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gpd {
    /// Scale, in the unit of the values.
    pub sigma: f64,
    /// Shape, a number.
    pub xi: f64,
}

/// Below this the law is exponential; the general formulas hold their digits down to here.
const EXPONENTIAL: f64 = 1e-10;
/// How far the shape's interval is searched.
const SHAPES: (f64, f64) = (-1.0, 3.0);

impl Gpd {
    /// The shapes that a fit may have: wider than for maxima, since excesses over a poor threshold are heavy.
    pub const USUAL: Shape = Shape { low: -0.5, high: 2.0 };

    /// -ln S(y).
    fn hazard(&self, y: f64) -> f64 {
        let s = y / self.sigma;
        if self.xi.abs() < EXPONENTIAL { s } else { (self.xi * s).max(-1.0).ln_1p() / self.xi }
    }

    /// P(Y > y).
    pub fn sf(&self, y: f64) -> f64 {
        (-self.hazard(y)).exp()
    }

    /// P(Y <= y).
    pub fn cdf(&self, y: f64) -> f64 {
        -(-self.hazard(y)).exp_m1()
    }

    /// The excess that one of `expected` excesses exceeds on average, in the unit of the values.
    ///
    /// For the level exceeded once in m observations, `expected` is m times the fraction of observations above the
    /// threshold, times the extremal index if those come in clusters.
    pub fn level(&self, expected: f64) -> f64 {
        self.sigma * self.units(expected)
    }

    fn units(&self, expected: f64) -> f64 {
        let y = expected.ln();
        if self.xi.abs() < EXPONENTIAL { y } else { (self.xi * y).exp_m1() / self.xi }
    }

    /// ln of the probability of a step, or of the density where the step has no width.
    pub fn ln_step(&self, step: &Step) -> f64 {
        let hazard = self.hazard(step.low);
        if step.high == step.low {
            let inside = 1.0 + self.xi * step.low / self.sigma > 0.0;
            return if inside { -(1.0 + self.xi) * hazard - self.sigma.ln() } else { f64::NEG_INFINITY };
        }
        if step.high == f64::INFINITY {
            return -hazard;
        }
        let width = (step.high - step.low) / self.sigma;
        let apart = if self.xi.abs() < EXPONENTIAL {
            width
        } else {
            let rest = 1.0 + self.xi * step.low / self.sigma;
            if rest <= 0.0 { 0.0 } else { (self.xi * width / rest).max(-1.0).ln_1p() / self.xi }
        };
        -hazard + (-(-apart).exp_m1()).ln()
    }

    /// Minus the log-likelihood of steps; infinite where the law excludes one of them.
    pub fn nllh(&self, steps: &[Step]) -> f64 {
        let sum: f64 = steps.iter().map(|step| step.count * self.ln_step(step)).sum();
        if sum.is_finite() && self.sigma > 0.0 { -sum } else { f64::INFINITY }
    }

    fn of(&[ln_sigma, xi]: &[f64; 2]) -> Gpd {
        Gpd { sigma: ln_sigma.exp(), xi }
    }
}

/// A fitted law of excesses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The law.
    pub law: Gpd,
    /// Minus the log-likelihood, natural logarithm: of the steps' probabilities, or of densities for width 0.
    pub nllh: f64,
    /// How many excesses.
    pub n: f64,
    /// The shapes that were allowed.
    pub shape: Shape,
}

/// Fits excesses (see [`Steps::above`]); None for less than three distinct values or without spread.
pub fn fit(excesses: &Steps, shape: Shape) -> Option<Fit> {
    let data = excesses.standard_from_zero()?;
    let boxed = |at: &[f64; 2]| boxed_nllh(&data, shape, at);
    let by_moments = 2.0 - data.mean;
    let mut best = Minimum { at: [0.0; 2], value: f64::INFINITY };
    for xi in [by_moments, -0.1, 0.05, 0.2, 0.7] {
        let start = feasible(&data, Gpd { sigma: data.mean * (1.0 - xi.min(0.5)), xi }, shape);
        let rough = search::nelder_mead(&boxed, start, [0.1, 0.1], 1e-2, 80);
        best = if rough.value < best.value { rough } else { best };
    }
    let fine = search::nelder_mead(&boxed, best.at, [0.02, 0.02], 1e-8, 400);
    let last = search::polish(&|at: &[f64; 2]| Gpd::of(at).nllh(&data.steps), fine, 1e-4, 6);
    let mut least = if shape.holds(last.at[1]) { last } else { fine };
    let wall = if least.at[1] - shape.low < shape.high - least.at[1] { shape.low } else { shape.high };
    if (least.at[1] - wall).abs() < 0.03 {
        let walled = of_shape(&data, wall);
        least = if walled.value < least.value {
            Minimum { at: [walled.at[0], wall], value: walled.value }
        } else {
            least
        };
    }
    let law = Gpd { sigma: least.at[0].exp() * data.scale, xi: least.at[1] };
    let nllh = least.value + data.offset;
    least.value.is_finite().then_some(Fit { law, nllh, n: excesses.n(), shape })
}

/// Fits steps as they are, from a start near the optimum and to fewer digits: for the many fits of a bootstrap.
pub fn fit_from(steps: &[Step], start: &Gpd, shape: Shape) -> Option<Gpd> {
    let boxed = |at: &[f64; 2]| if shape.holds(at[1]) { Gpd::of(at).nllh(steps) } else { f64::INFINITY };
    let least = search::nelder_mead(&boxed, [start.sigma.ln(), start.xi], [0.1, 0.1], 1e-4, 200);
    least.value.is_finite().then(|| Gpd::of(&least.at))
}

fn boxed_nllh(data: &Standard, shape: Shape, at: &[f64; 2]) -> f64 {
    if shape.holds(at[1]) { Gpd::of(at).nllh(&data.steps) } else { f64::INFINITY }
}

fn feasible(data: &Standard, law: Gpd, shape: Shape) -> [f64; 2] {
    let mut at = [law.sigma.max(1e-6).ln(), law.xi.clamp(shape.low, shape.high)];
    for _ in 0..60 {
        if Gpd::of(&at).nllh(&data.steps).is_finite() {
            break;
        }
        at[0] += 0.2;
    }
    at
}

/// The best scale for one shape, as ln sigma in standard units.
fn of_shape(data: &Standard, xi: f64) -> Minimum<1> {
    let centre = data.mean.max(1e-6).ln();
    search::minimum_between(
        &|ln_sigma| Gpd { sigma: ln_sigma.exp(), xi }.nllh(&data.steps),
        centre - 6.0,
        centre + 6.0,
    )
}

/// Covariance of (sigma, xi) from the observed information; None where the maximum is an edge or flat.
pub fn covariance(excesses: &Steps, fit: &Fit) -> Option<[[f64; 2]; 2]> {
    let data = excesses.standard_from_zero()?;
    let f = |&[sigma, xi]: &[f64; 2]| Gpd { sigma, xi }.nllh(&data.steps);
    let (_, second) = search::derivatives(&f, &[fit.law.sigma / data.scale, fit.law.xi], 1e-4);
    let unit = search::inverse(&second)?;
    let size = [data.scale, 1.0];
    Some(std::array::from_fn(|i| std::array::from_fn(|j| unit[i][j] * size[i] * size[j])))
}

/// Standard errors of sigma and xi, from [`covariance`]; None where that is or has no positive diagonal.
pub fn standard_errors(excesses: &Steps, fit: &Fit) -> Option<[f64; 2]> {
    let cov = covariance(excesses, fit)?;
    let errors = [cov[0][0].sqrt(), cov[1][1].sqrt()];
    errors.iter().all(|error| error.is_finite()).then_some(errors)
}

/// Both ends of the profile interval of [`Gpd::level`], as excesses in the unit of the values.
pub fn level_interval(excesses: &Steps, fit: &Fit, expected: f64, drop: f64) -> Interval {
    let end = |side: f64| level_end(excesses, fit, expected, drop, side);
    Interval { low: end(-1.0), high: end(1.0) }
}

fn level_end(excesses: &Steps, fit: &Fit, expected: f64, drop: f64, side: f64) -> Option<f64> {
    if !(expected > 1.0 && expected.is_finite()) {
        return None;
    }
    let data = excesses.standard_from_zero()?;
    let hat = Gpd { sigma: fit.law.sigma / data.scale, xi: fit.law.xi };
    let (centre, mut least) = (hat.level(expected), hat.nllh(&data.steps));
    let mut excess = |z: f64| {
        // A level at or below the threshold is none of this law: the scale would not be positive.
        if z <= 0.0 {
            return f64::INFINITY;
        }
        let nllh = |xi: f64| {
            let sigma = z / Gpd { sigma: 1.0, xi }.units(expected);
            Gpd { sigma, xi }.nllh(&data.steps)
        };
        let found = search::minimum_between(&nllh, fit.shape.low, fit.shape.high).value;
        least = least.min(found);
        root_excess(found, least, drop)
    };
    outward(&mut excess, centre, side, 0.1 * centre, 1000.0 * centre, drop).map(|z| z * data.scale)
}

/// Both ends of the profile interval of the shape; searched from -1 to 3.
pub fn shape_interval(excesses: &Steps, fit: &Fit, drop: f64) -> Interval {
    let Some(data) = excesses.standard_from_zero() else { return Interval { low: None, high: None } };
    let hat = Gpd { sigma: fit.law.sigma / data.scale, xi: fit.law.xi };
    let least = hat.nllh(&data.steps);
    let end = |side: f64| {
        let mut excess = |xi: f64| root_excess(of_shape(&data, xi).value, least, drop);
        let far = if side > 0.0 { SHAPES.1 - hat.xi } else { hat.xi - SHAPES.0 };
        outward(&mut excess, hat.xi, side, 0.03, far, drop)
    };
    Interval { low: end(-1.0), high: end(1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{RAIN_OVER_30_MM, RPI2_HIST_US};
    use crate::tail::profile::TWO_SIDED_95;
    use proptest::prelude::*;

    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} is not {expected}");
    }

    fn rain(width: f64) -> Steps {
        Steps::new(&RAIN_OVER_30_MM, width).unwrap().above(30.0).unwrap()
    }

    fn rpi2(threshold: f64) -> Steps {
        let step =
            |&(us, count): &(u64, u64)| Step { low: us as f64, high: us as f64 + 1.0, count: count as f64 };
        Steps::of_steps(RPI2_HIST_US.iter().map(step).collect()).unwrap().above(threshold).unwrap()
    }

    #[test]
    fn rain_is_as_published() {
        let excesses = rain(0.0);
        let fit = fit(&excesses, Gpd::USUAL).unwrap();
        near(fit.nllh, 485.093_72, 1e-4);
        near(fit.law.sigma, 7.440_269, 1e-4);
        near(fit.law.xi, 0.184_499_04, 1e-5);
        let cov = covariance(&excesses, &fit).unwrap();
        near(cov[0][0], 0.918_784_18, 1e-4);
        near(cov[0][1], -0.065_507_825, 1e-5);
        near(cov[1][1], 0.010_242_252, 1e-6);
        assert_eq!(standard_errors(&excesses, &fit), Some([cov[0][0].sqrt(), cov[1][1].sqrt()]));
        let shape = shape_interval(&excesses, &fit, TWO_SIDED_95);
        near(shape.low.unwrap(), 0.013_561_639, 1e-4);
        near(shape.high.unwrap(), 0.415_439_86, 1e-4);
        let expected = 36_500.0 * 152.0 / 17_531.0;
        near(30.0 + fit.law.level(expected), 106.328_02, 1e-3);
        let level = level_interval(&excesses, &fit, expected, TWO_SIDED_95);
        near(30.0 + level.low.unwrap(), 80.857_464, 1e-3);
        near(30.0 + level.high.unwrap(), 184.987_75, 1e-2);
    }

    #[test]
    fn grouped_rain_is_as_published() {
        for (width, sigma, xi, nllh, bins) in [
            (0.1, 7.322_060_4, 0.193_723_17, 834.055_62, 66),
            (1.0, 7.193_606_7, 0.206_884_05, 483.497_72, 30),
            (5.0, 7.533_166_6, 0.178_261_54, 244.195_66, 11),
        ] {
            // The reference put a value on an edge into the step below; the record has a resolution of 0.1 mm.
            let below = RAIN_OVER_30_MM.map(|v| v - 0.1);
            let excesses = Steps::new(&below, width).unwrap().above(30.0).unwrap();
            assert_eq!(excesses.all().len(), bins);
            let fit = fit(&excesses, Gpd::USUAL).unwrap();
            near(fit.law.sigma, sigma, 1e-4);
            near(fit.law.xi, xi, 1e-5);
            near(fit.nllh, nllh, 1e-5);
        }
    }

    #[test]
    fn the_raspberry_is_as_published() {
        for (u, n, sigma, xi) in [
            (18.0, 218_923.0, 2.399_536_5, 1.004_664_9),
            (20.0, 109_177.0, 12.849_713, -0.229_368_31),
            (36.0, 8_006.0, 0.916_019_27, 0.902_510_08),
            (50.0, 377.0, 2.633_465_8, 0.120_470_46),
            (53.0, 135.0, 2.551_696_7, 0.210_171_2),
            (55.0, 68.0, 2.212_091_3, 0.410_047_34),
        ] {
            let fit = fit(&rpi2(u), Gpd::USUAL).unwrap();
            assert_eq!(fit.n, n);
            near(fit.law.sigma, sigma, 1e-4 * sigma);
            near(fit.law.xi, xi, 1e-4);
        }
        for (u, m, level, low, high) in [
            (53.0, 1e8, 96.087_284, 77.333_12, 173.104_98),
            (53.0, 1e9, 130.464_13, 87.047_096, 396.820_27),
            (55.0, 1e9, 250.736_34, 95.289_365, 4_804.051_1),
        ] {
            let excesses = rpi2(u);
            let fit = fit(&excesses, Gpd::USUAL).unwrap();
            let expected = m * fit.n / 1e7;
            near(u + fit.law.level(expected), level, 1e-3 * level);
            let ends = level_interval(&excesses, &fit, expected, TWO_SIDED_95);
            near(u + ends.low.unwrap(), low, 1e-3 * low);
            near(u + ends.high.unwrap(), high, 1e-3 * high);
        }
        let excesses = rpi2(56.0);
        let ends = shape_interval(&excesses, &fit(&excesses, Gpd::USUAL).unwrap(), TWO_SIDED_95);
        near(ends.low.unwrap(), -0.132, 1e-3);
        near(ends.high.unwrap(), 0.827, 1e-3);
    }

    #[test]
    fn an_open_step_is_used_as_one() {
        let mut steps = rpi2(53.0).all().to_vec();
        let cut = steps.iter().position(|s| s.low >= 8.0).unwrap();
        let above: f64 = steps[cut..].iter().map(|s| s.count).sum();
        steps.truncate(cut);
        let dropped = fit(&Steps::of_steps(steps.clone()).unwrap(), Gpd::USUAL).unwrap();
        steps.push(Step { low: 8.0, high: f64::INFINITY, count: above });
        let kept = fit(&Steps::of_steps(steps).unwrap(), Gpd::USUAL).unwrap();
        let whole = fit(&rpi2(53.0), Gpd::USUAL).unwrap();
        let off = |fit: Fit| (fit.law.level(1e3) - whole.law.level(1e3)).abs();
        assert!(off(kept) < 0.5 * off(dropped), "{kept:?} {dropped:?}");
    }

    #[test]
    fn nothing_is_made_of_too_little() {
        let constant = Steps::new(&[0.0; 50], 1.0).unwrap();
        assert!(fit(&constant, Gpd::USUAL).is_none());
        let fit = fit(&rain(1.0), Gpd::USUAL).unwrap();
        assert_eq!(level_interval(&rain(1.0), &fit, 0.5, 2.7).high, None);
        assert_eq!(level_interval(&constant, &fit, 5.0, 2.7).high, None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn steps_add_up_to_the_law(xi in -0.5f64..1.5, low in 0.0f64..20.0, width in 1e-3f64..5.0) {
            let law = Gpd { sigma: 2.0, xi };
            let whole = law.ln_step(&Step { low, high: low + width, count: 1.0 }).exp();
            prop_assert!((whole - (law.sf(low) - law.sf(low + width))).abs() <= 1e-12 + 1e-9 * whole);
            prop_assert!((law.cdf(low) + law.sf(low) - 1.0).abs() < 1e-12);
            prop_assert!(law.sf(low) < 1e-9 || (law.level(1.0 / law.sf(low)) - low).abs() < 1e-6 * (1.0 + low));
        }
    }
}
