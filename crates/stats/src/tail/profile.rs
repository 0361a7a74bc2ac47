//! Profile-likelihood bounds of a level of the maxima, and of the shape.
//!
//! Coles (2001), section 2.6.6 and equation 3.11, for the level z that the maximum of m blocks
//! stays below with probability gamma: G(z)^m = gamma. Assumes what the fit assumes, and enough
//! data for the chi-squared law of the likelihood ratio. Each bound is a search inside a search,
//! and the inner one must start where the likelihood is not zero: with the location kept and the
//! scale solved for the level.

use super::gev::{self, Gev, GevFit, Shape};
use super::grouped_sample::{GroupedSample, Standard};
use super::search::{self, Minimum};
use model::sort::CompactSort;

/// The 95 % point of chi-squared with one degree of freedom: both bounds of a two-sided 95 %
/// interval.
pub const TWO_SIDED_95: f64 = 3.841_458_820_694_124;
/// The 90 % point: one bound, exceeded in 5 % of cases.
pub const ONE_SIDED_95: f64 = 2.705_543_454_095_404;
/// Normal 96 % point. A printed bound must hold in 95 % of the cases in which it is printed. The
/// gates refuse some clean runs, and those may all be ones in which it holds: if up to a fifth is
/// refused, it may fail in 4 % of all.
const ROOT_ALWAYS: f64 = 1.750_686_071_252_17;
/// Coefficient of an addition for few maxima, for which the signed root of the likelihood ratio is
/// not normal yet: its mean lies off zero by the order of one over the root of their number. By
/// simulation (`xtask experiments`, `printed`) bounds of 60 to 300 maxima that are to fail in 4 %
/// of all runs need roots up to 1.95 together, those of 3,600 up to 1.75.
const ROOT_MORE: f64 = 2.3;
/// Coefficient of an addition for coarse steps, by the square of their width in L-scales: the
/// information that they lose.
const ROOT_COARSE: f64 = 0.3;
/// Ratio of a bound to the estimate beyond which it counts as infinite.
const FAR: f64 = 1000.0;

/// Drop for an upper bound that is to hold in 95 % of the cases in which it is printed; more than
/// [`ONE_SIDED_95`], with which bounds from 60 maxima fail in up to 8 %.
pub fn printed_drop(steps: &GroupedSample) -> f64 {
    let width = steps.all().iter().map(|step| step.high - step.low).fold(0.0, f64::max);
    let coarse = steps.standard().map_or(0.0, |data| (width / data.scale).powi(2));
    (ROOT_ALWAYS + ROOT_MORE / steps.n().max(1.0).sqrt() * (1.0 + ROOT_COARSE * coarse)).powi(2)
}

/// A level of the maximum of many blocks, by its probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Level {
    /// Number of blocks m, more than 0.
    pub blocks: f64,
    /// Probability gamma that none of them exceeds the level.
    pub probability: f64,
}

impl Level {
    /// Rate -ln p of p = gamma^(1/m), without the p that is 1 to all digits for many blocks.
    fn rate(&self) -> f64 {
        -self.probability.ln() / self.blocks
    }

    /// Level under a law, in the unit of the values.
    pub fn of(&self, law: &Gev) -> f64 {
        law.level_of_rate(self.rate())
    }
}

/// An interval; an end is `None` if the likelihood never falls far enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfileInterval {
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// Both ends of the profile interval of a level, for a drop of twice the log-likelihood such as
/// [`TWO_SIDED_95`].
pub fn level_interval(steps: &GroupedSample, fit: &GevFit, level: Level, drop: f64) -> ProfileInterval {
    let end = |side: f64| level_end(steps, fit, level, drop, side);
    ProfileInterval { low: end(-1.0), high: end(1.0) }
}

/// Upper end alone: with [`ONE_SIDED_95`] the bound to print. For the guarded one give a fit of
/// [`Shape::NON_NEGATIVE`].
pub fn level_upper(steps: &GroupedSample, fit: &GevFit, level: Level, drop: f64) -> Option<f64> {
    level_end(steps, fit, level, drop, 1.0)
}

/// True if a level lies within the profile interval of that drop.
pub fn level_within(steps: &GroupedSample, fit: &GevFit, level: Level, z: f64, drop: f64) -> Option<bool> {
    let data = steps.standard()?;
    let profile = LevelProfile::new(&data, fit, level)?;
    Some(root_excess(profile.at((z - data.centre) / data.scale, None).value, profile.least, drop) <= 0.0)
}

fn level_end(steps: &GroupedSample, fit: &GevFit, level: Level, drop: f64, side: f64) -> Option<f64> {
    let data = steps.standard()?;
    let profile = LevelProfile::new(&data, fit, level)?;
    let centre = level.of(&profile.hat);
    let unit = (centre - profile.hat.mu).abs().max(0.1 * profile.hat.sigma);
    let mut warm = None;
    let mut least = profile.least;
    let mut excess = |z: f64| {
        let found = profile.at(z, warm);
        warm = found.value.is_finite().then_some(found.at);
        // The search for one level may find a better law than the fit did: it then replaces the
        // fit.
        least = least.min(found.value);
        root_excess(found.value, least, drop)
    };
    outward(&mut excess, centre, side, 0.1 * unit, FAR * unit, drop).map(|z| data.centre + data.scale * z)
}

/// Both ends of the profile interval of the shape; searched from -1 to 3.
pub fn shape_interval(steps: &GroupedSample, fit: &GevFit, drop: f64) -> ProfileInterval {
    let Some(data) = steps.standard() else { return ProfileInterval { low: None, high: None } };
    let hat = fit.law.standard(&data);
    let least = hat.nllh(&data.steps);
    let end = |side: f64| {
        let mut warm = [hat.mu, hat.sigma.ln()];
        let mut excess = |xi: f64| {
            let Some(found) = gev::of_shape(&data, xi, warm) else { return f64::INFINITY };
            warm = [found.at[0], found.at[1]];
            root_excess(found.value, least, drop)
        };
        let far = if side > 0.0 { 3.0 - hat.xi } else { hat.xi + 1.0 };
        outward(&mut excess, hat.xi, side, 0.03, far, drop)
    };
    ProfileInterval { low: end(-1.0), high: end(1.0) }
}

/// Root of twice the drop in log-likelihood, less that of the drop allowed: nearly linear, so that
/// a search is fast.
pub fn root_excess(nllh: f64, least: f64, drop: f64) -> f64 {
    (2.0 * (nllh - least)).max(0.0).sqrt() - drop.sqrt()
}

/// Steps outward from an estimate until a profile's root excess is positive, then finds its zero.
pub fn outward(
    excess: &mut impl FnMut(f64) -> f64,
    centre: f64,
    side: f64,
    first: f64,
    far: f64,
    drop: f64,
) -> Option<f64> {
    if !(centre.is_finite() && first > 0.0 && far.is_finite()) {
        return None;
    }
    let (mut distance, mut inner) = (first, (0.0, -drop.sqrt()));
    for _ in 0..60 {
        distance = distance.min(far);
        let value = excess(centre + side * distance);
        if value >= 0.0 {
            let mut along = |d: f64| excess(centre + side * d);
            let found = search::crossing_from(&mut along, inner.0, inner.1, distance, value, 1e-8 * distance);
            return found.map(|d| centre + side * d);
        }
        if distance >= far || value.is_nan() {
            return None;
        }
        // Crossing of a straight line, and a little more; never a leap past the whole bend.
        let slope = (value + drop.sqrt()) / distance;
        inner = (distance, value);
        distance = (1.05 * drop.sqrt() / slope).clamp(1.3 * distance, 3.0 * distance);
    }
    None
}

/// Likelihood of one level: the best law among those with that level.
struct LevelProfile<'a> {
    data: &'a Standard,
    hat: Gev,
    least: f64,
    shape: Shape,
    rate: f64,
}

impl LevelProfile<'_> {
    fn new<'a>(data: &'a Standard, fit: &GevFit, level: Level) -> Option<LevelProfile<'a>> {
        let hat = fit.law.standard(data);
        let (least, rate) = (hat.nllh(&data.steps), level.rate());
        let sound = least.is_finite() && rate.is_finite() && rate > 0.0;
        sound.then_some(LevelProfile { data, hat, least, shape: fit.shape, rate })
    }

    /// Distance of the level above mu, in sigmas.
    fn units(&self, xi: f64) -> f64 {
        Gev { mu: 0.0, sigma: 1.0, xi }.level_of_rate(self.rate)
    }

    fn law(&self, z: f64, &[ln_sigma, xi]: &[f64; 2]) -> Gev {
        let sigma = ln_sigma.exp();
        Gev { mu: z - sigma * self.units(xi), sigma, xi }
    }

    fn nllh(&self, z: f64, at: &[f64; 2]) -> f64 {
        if self.shape.holds(at[1]) { self.law(z, at).nllh(&self.data.steps) } else { f64::INFINITY }
    }

    /// Starts of a search: the location of the fit with the scale for the level, and the last
    /// solution.
    fn starts(&self, z: f64, warm: Option<[f64; 2]>) -> Vec<Minimum<2>> {
        let hat = self.hat.xi;
        let solved = [hat, hat - 0.1, hat + 0.1, 0.02].map(|xi| {
            let xi = xi.clamp(self.shape.low, self.shape.high);
            [((z - self.hat.mu) / self.units(xi)).ln(), xi]
        });
        let current = [self.hat.sigma.ln(), hat];
        let all = solved.into_iter().chain([current]).chain(warm);
        let valued = all.map(|at| Minimum { at, value: self.nllh(z, &at) });
        let mut starts: Vec<Minimum<2>> = valued.filter(|start| start.value.is_finite()).collect();
        starts.compact_sort_by(|a, b| a.value.total_cmp(&b.value));
        starts
    }

    fn at(&self, z: f64, warm: Option<[f64; 2]>) -> Minimum<2> {
        let f = |at: &[f64; 2]| self.nllh(z, at);
        let mut best = Minimum { at: [self.hat.sigma.ln(), self.hat.xi], value: f64::INFINITY };
        let starts = self.starts(z, warm);
        for start in starts.iter().take(if warm.is_some() { 1 } else { 3 }) {
            let size = if warm.is_some() { 0.03 } else { 0.1 };
            let found = search::nelder_mead(&f, start.at, [size; 2], 1e-6, 300);
            best = if found.value < best.value { found } else { best };
        }
        let Shape { low, high } = self.shape;
        let wall = if best.at[1] - low < high - best.at[1] { low } else { high };
        if (best.at[1] - wall).abs() < 0.02 && best.value.is_finite() {
            let flat = |at: &[f64; 1]| self.nllh(z, &[at[0], wall]);
            let found = search::nelder_mead(&flat, [best.at[0]], [0.05], 1e-6, 100);
            if found.value < best.value {
                best = Minimum { at: [found.at[0], wall], value: found.value };
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::PORT_PIRIE_M;
    use crate::rng::Rng;

    fn port_pirie() -> (GroupedSample, GevFit) {
        let steps = GroupedSample::new(&PORT_PIRIE_M, 0.0).unwrap();
        let fit = gev::fit(&steps, Shape::USUAL).unwrap();
        (steps, fit)
    }

    fn near(value: Option<f64>, expected: f64, tolerance: f64) {
        assert!((value.unwrap() - expected).abs() <= tolerance, "{value:?} is not {expected}");
    }

    #[test]
    fn port_pirie_has_the_published_intervals() {
        let (steps, fit) = port_pirie();
        for (years, low, high) in [
            (10.0, 4.204_611_3, 4.445_080_3),
            (100.0, 4.490_436_8, 5.260_704_6),
            (1000.0, 4.660_882_2, 6.465_039_3),
        ] {
            let level = Level { blocks: 1.0, probability: 1.0 - 1.0 / years };
            let interval = level_interval(&steps, &fit, level, TWO_SIDED_95);
            near(interval.low, low, 1e-4);
            near(interval.high, high, 1e-4);
        }
        let shape = shape_interval(&steps, &fit, TWO_SIDED_95);
        near(shape.low, -0.218_157_12, 1e-4);
        near(shape.high, 0.170_405_56, 1e-4);
    }

    #[test]
    fn many_blocks_are_one_power() {
        let (steps, fit) = port_pirie();
        let one = Level { blocks: 1.0, probability: 0.95f64.powf(1e-3) };
        let many = Level { blocks: 1000.0, probability: 0.95 };
        assert!((one.of(&fit.law) - many.of(&fit.law)).abs() < 1e-9);
        let upper = |level| level_upper(&steps, &fit, level, ONE_SIDED_95);
        near(upper(one), upper(many).unwrap(), 1e-6);
        let billion = Level { blocks: 1e9, probability: 0.95 };
        assert!(upper(billion).unwrap() > upper(many).unwrap());
    }

    #[test]
    fn the_guarded_bound_is_no_lower_where_the_shape_is_negative() {
        let (steps, fit) = port_pirie();
        let guarded = gev::fit(&steps, Shape::NON_NEGATIVE).unwrap();
        let level = Level { blocks: 650.0, probability: 0.95 };
        let bounds = [fit, guarded].map(|fit| level_upper(&steps, &fit, level, ONE_SIDED_95).unwrap());
        assert!(bounds[1] > bounds[0] && bounds[1] < 3.0 * bounds[0], "{bounds:?}");
    }

    #[test]
    fn a_level_is_within_where_the_interval_has_it() {
        let (steps, fit) = port_pirie();
        let level = Level { blocks: 1.0, probability: 0.99 };
        let within = |z: f64| level_within(&steps, &fit, level, z, TWO_SIDED_95);
        let found = [4.4896, 4.4913, 4.6, 5.2600, 5.2614].map(within);
        assert_eq!(found, [Some(false), Some(true), Some(true), Some(true), Some(false)]);
    }

    #[test]
    fn printed_bounds_allow_more_for_few_and_for_coarse_values() {
        let mut rng = Rng::new(12);
        let law = Gev { mu: 20.0, sigma: 2.0, xi: 0.0 };
        let mut drop = |n: usize, width: f64| {
            let values: Vec<f64> = (0..n).map(|_| law.level_of_rate(rng.exponential())).collect();
            printed_drop(&GroupedSample::new(&values, width).unwrap())
        };
        let [few, more, many] = [60, 600, 36_000].map(|n| drop(n, 0.0));
        assert!((few - 4.19).abs() < 0.01 && few > more && more > many && many > ONE_SIDED_95);
        assert!(drop(60, 4.0) > 1.5 * few && drop(60, 0.2) < 1.01 * few);
    }

    #[test]
    fn no_level_is_bounded_by_nothing() {
        let (steps, fit) = port_pirie();
        for (blocks, probability) in [(0.0, 0.5), (1.0, 0.0), (1.0, 1.0), (f64::INFINITY, 0.5), (-1.0, 0.5)] {
            let level = Level { blocks, probability };
            let _ = level_interval(&steps, &fit, level, TWO_SIDED_95);
            assert_eq!(level_upper(&steps, &fit, level, f64::INFINITY), None);
        }
        let mut flat = |_: f64| -1.0;
        assert_eq!(outward(&mut flat, 0.0, 1.0, 0.1, 100.0, 2.7), None);
    }

    #[test]
    fn the_bound_depends_on_the_unit_as_the_values_do() {
        let mut rng = Rng::new(11);
        let law = Gev { mu: 20.0, sigma: 2.0, xi: 0.1 };
        let values: Vec<f64> = (0..120).map(|_| law.level_of_rate(rng.exponential())).collect();
        let level = Level { blocks: 1200.0, probability: 0.95 };
        let bound = |unit: f64| {
            let values: Vec<f64> = values.iter().map(|v| v * unit).collect();
            let steps = GroupedSample::new(&values, unit).unwrap();
            level_upper(&steps, &gev::fit(&steps, Shape::USUAL).unwrap(), level, ONE_SIDED_95).unwrap()
        };
        near(Some(bound(1000.0) / 1000.0), bound(1.0), 1e-4);
    }
}
