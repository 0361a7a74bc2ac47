//! Data of a fit: the count of each recorded value, with the step in which it was recorded.
//!
//! A clock that counts in steps of w shows b for everything in [b, b + w): the likelihood of such a
//! value is the probability of its step, not a density (Kulldorff 1961, Estimation from Grouped and
//! Partially Grouped Samples). With w small compared to the spread both agree; with w of its size
//! the density of integers breaks a tail fit.

use super::lmoments::LMoments;
pub use super::step::Step;
use crate::levels::Levels;
use crate::values::SeriesValues;

/// Values in ascending order, with equal ones counted.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupedSample {
    steps: Vec<Step>,
    n: f64,
}

/// Number of distinct values above which they are grouped for a fit.
const MANY: usize = 120;
/// Largest distance of grouped values, in spreads of the bulk: about a twelfth of a Gumbel sigma.
const CLOSE: f64 = 0.12;
/// Largest number of groups; the distance grows if there would be more.
const MAX_GROUPS: usize = 2000;
/// Largest step, as a part of the bulk's spread, whose probability is the density at its middle
/// times its width, to a millionth part.
const NARROW: f64 = 0.01;
/// Largest share of all values in such a step: a density can grow without end if many are equal.
const MAX_TIE_SHARE: f64 = 0.05;

impl GroupedSample {
    /// Values recorded in steps of `width` (0: continuous), each as the lower edge of its step;
    /// None without values or with one that is not finite.
    ///
    /// Values need not have been rounded yet. One less than a millionth of a step below an edge
    /// counts as on it: decimal fractions are not exact in binary.
    pub fn new<'a>(values: impl Into<SeriesValues<'a>>, width: f64) -> Option<GroupedSample> {
        let values = values.into();
        if values.is_empty() || !values.iter().all(f64::is_finite) || !(width >= 0.0 && width.is_finite()) {
            return None;
        }
        let edge = |v: f64| if width > 0.0 { (v / width + 1e-6).floor() * width } else { v };
        if !values.iter().map(edge).all(f64::is_finite) {
            return None;
        }
        let lows = Levels::of(values.iter().map(edge), values.len());
        let step = |&(low, count): &(f64, u64)| Step { low, high: low + width, count: count as f64 };
        let steps: Vec<Step> = lows.all().iter().map(step).collect();
        Some(GroupedSample { steps, n: values.len() as f64 })
    }

    /// Sample of given steps; `None` without any, or if they are not in ascending order.
    pub fn of_steps(steps: Vec<Step>) -> Option<GroupedSample> {
        let n: f64 = steps.iter().map(|step| step.count).sum();
        let ordered = steps.windows(2).all(|pair| pair[0].low < pair[1].low);
        let sound = steps.iter().all(|s| s.low.is_finite() && s.high >= s.low && s.count > 0.0);
        (!steps.is_empty() && ordered && sound && n.is_finite()).then_some(GroupedSample { steps, n })
    }

    /// Steps, ascending.
    pub fn all(&self) -> &[Step] {
        &self.steps
    }

    pub fn n(&self) -> f64 {
        self.n
    }

    /// The largest recorded value: the upper edge of the last step, or its lower one if it is open.
    pub fn largest(&self) -> f64 {
        self.steps.last().map_or(f64::NAN, |step| if step.high.is_finite() { step.high } else { step.low })
    }

    /// The steps moved and scaled: x becomes (x - centre) / scale. Neighbours within `close` (in
    /// the new unit) of the first of them are concentrated at two points.
    ///
    /// The points and weights of Gauss's quadrature keep a group's count, mean, variance and third
    /// moment, and lie within it. Groups a twelfth of a sigma wide then move the shape and, in
    /// sigmas, the other parameters by about 1e-5 for shapes between -0.4 and 0.3, by 1e-6 near 0,
    /// by less than 1e-4 up to 0.6.
    pub fn scaled(&self, centre: f64, scale: f64, close: f64) -> Vec<Step> {
        let unit = |s: &Step| Step {
            low: (s.low - centre) / scale,
            high: (s.high - centre) / scale,
            count: s.count,
        };
        let width = |s: &Step| s.high - s.low;
        let steps: Vec<Step> = self.steps.iter().map(unit).collect();
        let same = |a: &Step, b: &Step| {
            b.low - a.low <= close && (width(a) - width(b)).abs() <= 1e-3 * width(a).min(width(b)) + 1e-12
        };
        let mut together = Vec::new();
        let mut rest = &steps[..];
        while let Some(first) = rest.first() {
            let size = rest.iter().take_while(|step| same(first, step)).count().max(1);
            let (group, others) = rest.split_at(size);
            if size > 2 {
                together.extend(two_points(group))
            } else {
                together.extend_from_slice(group)
            }
            rest = others;
        }
        together
    }

    /// Steps in units of the data's centre and L-scale, grouped if there are many; `None` without
    /// spread.
    pub fn standard(&self) -> Option<Standard> {
        self.standard_with(self.usual_closeness())
    }

    fn usual_closeness(&self) -> f64 {
        if self.steps.len() > MANY { CLOSE } else { 0.0 }
    }

    /// Value with this part of all values below it.
    fn quantile(&self, part: f64) -> f64 {
        let mut left = part * self.n;
        let reached = self.steps.iter().find(|step| {
            left -= step.count;
            left < 0.0
        });
        reached.or(self.steps.last()).map_or(f64::NAN, |step| step.low)
    }

    /// L-scale of the bulk alone: a few far values widen that of all values, and groups of that
    /// width would swallow the rest.
    fn bulk_scale(&self, scale: f64) -> f64 {
        // For Gumbel's law and the exponential one the L-scale is 0.44 and 0.46 of the distance of
        // the quartiles.
        let within = |low: f64, factor: f64| factor * (self.quantile(1.0 - low) - self.quantile(low));
        let candidates = [within(0.25, 0.45), within(0.05, 0.17), 0.01 * scale];
        candidates.into_iter().find(|width| *width > 0.0).unwrap_or(scale).min(scale)
    }

    fn grouped(&self, centre: f64, scale: f64, close: f64) -> Vec<Step> {
        let mut distance = close * self.bulk_scale(scale) / scale;
        let mut steps = self.scaled(centre, scale, distance);
        for _ in 0..20 {
            if close == 0.0 || steps.len() <= MAX_GROUPS {
                break;
            }
            distance *= 2.0;
            steps = self.scaled(centre, scale, distance);
        }
        steps
    }

    /// Like [`Self::standard`], with a given distance (in L-scales of the bulk) for groups.
    pub fn standard_with(&self, close: f64) -> Option<Standard> {
        let moments = LMoments::of(&self.steps, self.n)?;
        let scale = moments.l2;
        let spread = self.steps.len() >= 3 && scale.is_normal() && scale > 1e-12 * moments.l1.abs();
        let densities: f64 = self.steps.iter().filter(|s| s.high == s.low).map(|s| s.count).sum();
        let centre = moments.l1;
        spread.then(|| {
            let mut steps = self.grouped(centre, scale, close);
            let narrowed = if self.are_narrow(scale) { by_density(&mut steps) } else { 0.0 };
            Standard {
                steps,
                centre,
                scale,
                offset: densities * scale.ln() - narrowed,
                skew: moments.l3 / scale,
            }
        })
    }

    /// True if every step is so narrow compared to the spread of the bulk that a density suffices.
    fn are_narrow(&self, scale: f64) -> bool {
        let width = NARROW * self.bulk_scale(scale);
        self.steps.iter().all(|s| s.high - s.low <= width && s.count <= MAX_TIE_SHARE * self.n)
    }
}

/// Replaces each step by a density at its middle, which costs a third of the time. Returns the sum
/// of the logarithms of the values' widths, by which the logarithm of the likelihood is then too
/// small.
fn by_density(steps: &mut [Step]) -> f64 {
    let mut sum = 0.0;
    for step in steps.iter_mut().filter(|step| step.high > step.low) {
        sum += step.count * (step.high - step.low).ln();
        let middle = 0.5 * (step.low + step.high);
        (step.low, step.high) = (middle, middle);
    }
    sum
}

/// Replaces a group of equally wide steps by two: the two-point Gauss quadrature of its lower
/// edges.
fn two_points(group: &[Step]) -> [Step; 2] {
    let count: f64 = group.iter().map(|s| s.count).sum();
    let mean = group.iter().map(|s| s.low * s.count).sum::<f64>() / count;
    let moment = |k: i32| group.iter().map(|s| s.count * (s.low - mean).powi(k)).sum::<f64>() / count;
    let spread = moment(2).sqrt();
    let half_skew = if spread > 0.0 { 0.5 * moment(3) / spread.powi(3) } else { 0.0 };
    let root = (1.0 + half_skew * half_skew).sqrt();
    let width = group[0].high - group[0].low;
    [-1.0, 1.0].map(|side| {
        let low = mean + spread * (half_skew + side * root);
        Step { low, high: low + width, count: 0.5 * count * (1.0 - side * half_skew / root) }
    })
}

/// Data in units of their centre and spread, so that a fit does not depend on the unit.
#[derive(Clone, Debug)]
pub struct Standard {
    /// Steps in those units.
    pub steps: Vec<Step>,
    /// Subtracted centre, in the unit of the values.
    pub centre: f64,
    /// L-scale, in the unit of the values.
    pub scale: f64,
    /// Constant between minus the log-likelihood of these steps and that of the values in their
    /// unit.
    pub offset: f64,
    /// Ratio of the third L-moment to the second.
    pub skew: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tail::gev;

    #[test]
    fn values_fall_into_their_steps() {
        let steps = GroupedSample::new(&[0.3, 0.1, 0.25, 0.3], 0.1).unwrap();
        let lows: Vec<(i64, f64)> =
            steps.all().iter().map(|s| ((s.low * 100.0).round() as i64, s.count)).collect();
        assert_eq!(lows, [(10, 1.0), (20, 1.0), (30, 2.0)]);
        assert_eq!(GroupedSample::new(&[2.0, 1.0], 0.0).unwrap().all()[0].high, 1.0);
    }

    #[test]
    fn without_data_there_is_none() {
        assert_eq!(GroupedSample::new(&[], 1.0), None);
        assert_eq!(GroupedSample::new(&[1.0, f64::NAN], 1.0), None);
        assert_eq!(GroupedSample::new(&[1.0], -1.0), None);
        assert_eq!(GroupedSample::of_steps(Vec::new()), None);
        for constant in [&[5.0; 9][..], &[1.0, 2.0, 2.0][..], &[7.0][..]] {
            assert!(GroupedSample::new(constant, 0.0).unwrap().standard().is_none());
        }
    }

    #[test]
    fn narrow_steps_count_by_density_unless_many_are_equal() {
        let values: Vec<f64> = (1..200).map(|i| 1e4 * (1.0 + f64::from(i) / 200.0).ln()).collect();
        let is_narrow = |values: &[f64], width: f64| {
            let steps = GroupedSample::new(values, width).unwrap().standard().unwrap().steps;
            steps.iter().all(|step| step.low == step.high)
        };
        assert!(is_narrow(&values, 1.0) && is_narrow(&values, 0.0) && !is_narrow(&values, 200.0));
        let alike: Vec<f64> = values.iter().copied().chain([7.0; 20]).collect();
        assert!(!is_narrow(&alike, 1.0));
        let steps = GroupedSample::new(&values, 1.0).unwrap();
        let fit = gev::fit(&steps, gev::Shape::USUAL).unwrap();
        let by_steps = fit.law.nllh(steps.all());
        assert!((fit.nllh - by_steps).abs() < 1e-4, "{} {by_steps}", fit.nllh);
    }

    #[test]
    fn far_values_do_not_swallow_the_bulk() {
        let mut values: Vec<f64> = (0..500).map(|i| f64::from(i) / 100.0).collect();
        values.extend([1e6, 1e7]);
        let steps = GroupedSample::new(&values, 0.0).unwrap();
        assert!(steps.standard().unwrap().steps.len() > 20);
        let wide: Vec<f64> =
            (0..40_000).map(|i| if i % 4 == 0 { f64::from(i).powi(3) } else { 1.0 }).collect();
        let steps = GroupedSample::new(&wide, 0.0).unwrap();
        assert!(steps.standard().unwrap().steps.len() <= MAX_GROUPS);
    }

    #[test]
    fn putting_together_keeps_count_and_moments() {
        let values: Vec<f64> = (0..5_000).map(|i| f64::from(i * i % 7_919)).collect();
        let steps = GroupedSample::new(&values, 1.0).unwrap();
        let few = steps.standard().unwrap().steps;
        let moment =
            |steps: &[Step], k: i32| steps.iter().map(|s| s.low.powi(k) * s.count).sum::<f64>() / 5_000.0;
        assert!(steps.all().len() > 1_000 && few.len() < 200, "{}", few.len());
        assert!((few.iter().map(|s| s.count).sum::<f64>() - 5_000.0).abs() < 1e-9);
        let all = steps.standard_with(0.0).unwrap().steps;
        for k in 1..4 {
            assert!((moment(&few, k) - moment(&all, k)).abs() < 1e-9);
        }
        assert!(few[0].low >= all[0].low && few.last().unwrap().low <= all.last().unwrap().low);
    }
}
