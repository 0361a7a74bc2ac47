//! The result of a set of relabellings for a difference: p-values and, by inverting the test, an
//! interval.
//!
//! Each relabelling of the units leaves the shift above or below one number, its "typical value"
//! (Hartigan 1969, JASA 64): the shift lies below the m-th smallest of them with probability m /
//! total, exactly. So their order answers p at every shift, and its order statistics are the
//! interval. Assumes that the units are exchangeable once the shift is taken out.

use super::subset_means::SubsetMeans;

/// The typical values of all, or of drawn, relabellings.
#[derive(Clone, Debug)]
pub struct Relabelled {
    values: TypicalValues,
    same: usize,
    /// True if every relabelling is among them; else they were drawn from a fixed seed.
    pub exact: bool,
}

/// The typical values in their order.
#[derive(Clone, Debug)]
enum TypicalValues {
    Listed(Vec<f64>),
    Means(SubsetMeans),
}

impl TypicalValues {
    fn len(&self) -> usize {
        match self {
            TypicalValues::Listed(all) => all.len(),
            TypicalValues::Means(means) => means.len(),
        }
    }

    fn ends(&self) -> Option<[f64; 2]> {
        match self {
            TypicalValues::Listed(all) => Some([*all.first()?, *all.last()?]),
            TypicalValues::Means(means) => means.ends(),
        }
    }

    fn at_most(&self, bound: f64) -> usize {
        match self {
            TypicalValues::Listed(all) => all.partition_point(|&value| value <= bound),
            TypicalValues::Means(means) => means.at_most(bound),
        }
    }

    fn below(&self, bound: f64) -> usize {
        match self {
            TypicalValues::Listed(all) => all.partition_point(|&value| value < bound),
            TypicalValues::Means(means) => means.below(bound),
        }
    }

    fn nth(&self, index: usize) -> Option<f64> {
        match self {
            TypicalValues::Listed(all) => all.get(index).copied(),
            TypicalValues::Means(means) => means.nth(index),
        }
    }
}

/// An interval for a shift, with its confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end, in the unit of the values.
    pub lower: f64,
    /// Upper end, in the unit of the values.
    pub upper: f64,
    /// Confidence that it attains: at least the requested one.
    pub attained: f64,
}

impl Relabelled {
    /// Builds the set from the typical values and the number of relabellings that change nothing,
    /// the observed one among them.
    pub(super) fn new(mut values: Vec<f64>, same: usize, exact: bool) -> Relabelled {
        values.sort_unstable_by(f64::total_cmp);
        Relabelled { values: TypicalValues::Listed(values), same: same.max(1), exact }
    }

    /// The means of all subsets of some differences.
    pub(super) fn of_subsets(differences: &[f64]) -> Relabelled {
        let values = TypicalValues::Means(SubsetMeans::new(differences));
        Relabelled { values, same: 1, exact: true }
    }

    /// The smallest two-sided p that this number of relabellings can show.
    pub(super) fn resolution(&self) -> f64 {
        2.0 / self.total()
    }

    fn total(&self) -> f64 {
        (self.values.len() + self.same) as f64
    }

    /// Values this close are one value: sums of the same numbers differ by their order.
    fn tolerance(&self) -> f64 {
        let [least, largest] = self.values.ends().unwrap_or_default();
        1e-13 * least.abs().max(largest.abs())
    }

    /// One-sided p against a shift of at most `at`.
    pub fn p_greater(&self, at: f64) -> f64 {
        (self.same + self.values.at_most(at + self.tolerance())) as f64 / self.total()
    }

    /// One-sided p against a shift of at least `at`.
    pub fn p_less(&self, at: f64) -> f64 {
        let below = self.values.below(at - self.tolerance());
        (self.same + self.values.len() - below) as f64 / self.total()
    }

    /// Two-sided p against a shift of `at`: twice the smaller one-sided p.
    pub fn p_two_sided(&self, at: f64) -> f64 {
        (2.0 * self.p_greater(at).min(self.p_less(at))).min(1.0)
    }

    /// The shifts that the two-sided test does not reject at this confidence (0.95); `None` when
    /// there are too few relabellings for a finite interval.
    pub fn interval(&self, confidence: f64) -> Option<Interval> {
        let tail = 0.5 * (1.0 - confidence.clamp(0.0, 1.0));
        // The floor of the product, whatever the last bit of the product is.
        let rank = (self.total() * tail * (1.0 + 1e-12)) as usize;
        let index = rank.checked_sub(self.same)?;
        let last = self.values.len().checked_sub(1 + index)?;
        let (lower, upper) = (self.values.nth(index)?, self.values.nth(last)?);
        (lower <= upper).then_some(Interval {
            lower,
            upper,
            attained: 1.0 - 2.0 * rank as f64 / self.total(),
        })
    }
}

/// Number of drawn relabellings for this many units, if there are too many to go through.
///
/// 19 999 leave p = 0.05 uncertain by 0.0015; sets of thousands of units get fewer, to bound the
/// work.
pub(super) fn draws_for(units: usize) -> usize {
    (40_000_000 / units.max(1)).clamp(999, 19_999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_statistics_are_the_interval() {
        let values: Vec<f64> = (1..=39).map(f64::from).collect();
        let relabelled = Relabelled::new(values, 1, true);
        assert_eq!(relabelled.interval(0.95), Some(Interval { lower: 1.0, upper: 39.0, attained: 0.95 }));
        assert_eq!(relabelled.interval(0.90), Some(Interval { lower: 2.0, upper: 38.0, attained: 0.90 }));
        assert_eq!(relabelled.interval(0.96), None);
        assert_eq!(relabelled.interval(-3.0).map(|found| found.lower), Some(20.0));
        assert_eq!(relabelled.p_greater(0.0), 1.0 / 40.0);
        assert_eq!(relabelled.p_greater(2.0), 3.0 / 40.0);
        assert_eq!(relabelled.p_less(39.5), 1.0 / 40.0);
        assert_eq!(relabelled.p_two_sided(0.0), 0.05);
        assert_eq!(relabelled.p_two_sided(20.0), 1.0);
    }

    #[test]
    fn nothing_to_relabel_gives_no_result() {
        let relabelled = Relabelled::new(Vec::new(), 1, true);
        assert_eq!((relabelled.p_two_sided(0.0), relabelled.interval(0.95)), (1.0, None));
        let broken = Relabelled::new(vec![f64::NAN, 1.0], 0, true);
        assert!((0.0..=1.0).contains(&broken.p_two_sided(0.0)));
        let _ = broken.interval(0.1);
    }
}
