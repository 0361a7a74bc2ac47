//! Rank test of B's values against A's: under the hypothesis the labels are exchangeable.
//!
//! The rank sum of Wilcoxon (1945) and Mann and Whitney (1947). Values that are tied share the mean
//! of their ranks, and the law is that of these ranks over all splits: exact with ties, too. Unlike
//! the mean it does not depend on the distance of one outlying run. The shift is the median of all
//! differences of a value of B and one of A (Hodges and Lehmann 1963), its interval lies between
//! two of these differences; with ties it holds at least the requested confidence.
//!
//! Exact as long as the law's lower tail takes at most 400 million additions, which always holds up
//! to 100 values on each side. Beyond that the normal law with the variance of the tied ranks and a
//! correction for continuity. A two-sided p is twice the smaller one-sided p.

use std::cmp::Ordering;

use model::sort::CompactSort;

use super::inversion::Interval;
use crate::law;

/// Maximum number of additions for an exact law.
const MOST_STEPS: u64 = 400_000_000;

/// The test of the rank sum of B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankSum {
    /// The probability of ranks of B at least as high as these.
    pub p_greater: f64,
    /// The probability of ranks of B at most as high as these.
    pub p_less: f64,
    /// The side to which B's ranks lean: `Greater` where they are higher than A's.
    pub leaning: Ordering,
    /// True if all splits were gone through; else the normal law was used.
    pub exact: bool,
}

impl RankSum {
    /// Result without a value on a side.
    const NOTHING: RankSum = RankSum { p_greater: 1.0, p_less: 1.0, leaning: Ordering::Equal, exact: true };

    /// Twice the smaller one-sided p.
    pub fn p_two_sided(&self) -> f64 {
        (2.0 * self.p_greater.min(self.p_less)).min(1.0)
    }

    /// Result of A against B.
    fn mirrored(self) -> RankSum {
        let RankSum { p_greater, p_less, leaning, exact } = self;
        RankSum { p_greater: p_less, p_less: p_greater, leaning: leaning.reverse(), exact }
    }
}

/// The test of B's ranks against A's.
pub fn rank_sum(a: &[f64], b: &[f64]) -> RankSum {
    if b.len() > a.len() {
        return rank_sum(b, a).mirrored();
    }
    if b.is_empty() {
        return RankSum::NOTHING;
    }
    let ranks = DoubledRanks::of(a, b);
    // Only the lower tail is computed: for high ranks, that of the ranks counted from above.
    match ranks.leaning() {
        Ordering::Greater => ranks.turned().lower_tail().mirrored(),
        _ => ranks.lower_tail(),
    }
}

/// Doubled mean ranks of all values, ascending, and the number of values in the smaller group.
struct DoubledRanks {
    all: Vec<u64>,
    few: usize,
    /// Sum of the doubled ranks of the smaller group.
    sum: u64,
}

impl DoubledRanks {
    fn of(many: &[f64], few: &[f64]) -> DoubledRanks {
        let mut values: Vec<(f64, bool)> = many.iter().map(|value| (*value, false)).collect();
        values.extend(few.iter().map(|value| (*value, true)));
        values.compact_sort_by(|one, other| one.0.total_cmp(&other.0));
        let (mut all, mut sum) = (Vec::with_capacity(values.len()), 0);
        for tied in values.chunk_by(|one, other| one.0 == other.0) {
            let rank = (2 * all.len() + tied.len() + 1) as u64;
            all.extend(tied.iter().map(|_| rank));
            sum += rank * tied.iter().filter(|value| value.1).count() as u64;
        }
        DoubledRanks { all, few: few.len(), sum }
    }

    /// Ranks counted from the highest value.
    fn turned(&self) -> DoubledRanks {
        let top = 2 * (self.all.len() as u64 + 1);
        let all = self.all.iter().rev().map(|rank| top - rank).collect();
        DoubledRanks { all, few: self.few, sum: top * self.few as u64 - self.sum }
    }

    /// Side of the law's mean on which the sum lies.
    fn leaning(&self) -> Ordering {
        self.sum.cmp(&(self.few as u64 * (self.all.len() as u64 + 1)))
    }

    /// Tests a sum that is not above the mean.
    fn lower_tail(&self) -> RankSum {
        let least: u64 = self.all[..self.few].iter().sum();
        let Some(law) = law_up_to(&self.all, self.few, self.sum - least) else { return self.normal() };
        let (at_most, here) = (law.iter().sum::<f64>().min(1.0), law.last().copied().unwrap_or(0.0));
        let p_greater = (1.0 - at_most + here).clamp(0.0, 1.0);
        RankSum { p_greater, p_less: at_most, leaning: self.leaning(), exact: true }
    }

    /// Tests by the normal law; the half step of the correction is one of the doubled ranks.
    fn normal(&self) -> RankSum {
        let (few, all) = (self.few as f64, self.all.len() as f64);
        let tied = self.all.chunk_by(|one, other| one == other).map(|tied| tied.len() as f64);
        let ties: f64 = tied.map(|t| t * t * t - t).sum();
        let variance = few * (all - few) / 12.0 * (all + 1.0 - ties / (all * (all - 1.0)));
        let (error, below) = (2.0 * variance.sqrt(), few * (all + 1.0) - self.sum as f64);
        let upper = |z: f64| {
            let tail = 0.5 * law::normal_two_sided(z);
            if z < 0.0 { 1.0 - tail } else { tail }
        };
        if variance <= 0.0 {
            return RankSum { exact: false, ..RankSum::NOTHING };
        }
        let (p_less, p_greater) = (upper((below - 1.0) / error), upper((-below - 1.0) / error));
        RankSum { p_greater, p_less, leaning: self.leaning(), exact: false }
    }
}

/// Probability of each sum of `few` ranks out of all, from the least possible sum up to `width`
/// above it, in steps of the ranks' common divisor; `None` if that takes too long.
///
/// The ranks are gone through in ascending order. The k-th that is chosen adds its distance from
/// the k-th of all, which is never negative: a sum beyond the width never returns.
fn law_up_to(ranks: &[u64], few: usize, width: u64) -> Option<Vec<f64>> {
    let lowest = ranks.first().copied().unwrap_or(0);
    let step = ranks.iter().fold(0, |step, rank| gcd(rank - lowest, step)).max(1);
    let width = width / step;
    let steps = (ranks.len() as u64).checked_mul(few as u64)?.checked_mul(width + 1)?;
    if steps > MOST_STEPS {
        return None;
    }
    let row = width as usize + 1;
    let mut chosen = vec![0.0; row * (few + 1)];
    chosen[0] = 1.0;
    for (at, rank) in ranks.iter().enumerate() {
        let left = (ranks.len() - at) as f64;
        for k in (few.saturating_sub(ranks.len() - at)..=few.min(at)).rev() {
            let take = (few - k) as f64 / left;
            let (below, above) = chosen.split_at_mut(row * (k + 1));
            let from_row = &mut below[row * k..];
            if k < few {
                let added = ((rank - ranks[k]) / step) as usize;
                above
                    .iter_mut()
                    .take(row)
                    .skip(added)
                    .zip(&*from_row)
                    .for_each(|(to, from)| *to += from * take);
            }
            from_row.iter_mut().for_each(|p| *p *= 1.0 - take);
        }
    }
    chosen.drain(..row * few);
    Some(chosen)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The shift of B against A: the median of all differences; `None` without a value on a side.
pub fn shift(a: &[f64], b: &[f64]) -> Option<f64> {
    let differences = Differences::of(a, b);
    let pairs = differences.pairs();
    let middle = pairs.checked_sub(1)? / 2;
    let (low, high) = (differences.nth(middle), differences.nth(pairs / 2));
    Some(low + 0.5 * (high - low))
}

/// Interval of that shift at this confidence (0.95); `None` if there are too few values for a
/// finite one.
pub fn interval(a: &[f64], b: &[f64], confidence: f64) -> Option<Interval> {
    let tail = 0.5 * (1.0 - confidence.clamp(0.0, 1.0));
    let (outside, missed) = outside(a.len(), b.len(), tail)?;
    let differences = Differences::of(a, b);
    let last = differences.pairs().checked_sub(outside)?;
    let (lower, upper) = (differences.nth(outside - 1), differences.nth(last));
    (lower <= upper).then_some(Interval { lower, upper, attained: 1.0 - 2.0 * missed })
}

/// Number, counted from 1, of the interval's difference from either end, and the probability that
/// the shift lies beyond it, which is at most the tail.
fn outside(a: usize, b: usize, tail: f64) -> Option<(usize, f64)> {
    let (few, all) = (a.min(b), a + b);
    let ranks: Vec<u64> = (1..=all as u64).collect();
    let pairs = few as u64 * (all - few) as u64;
    let Some(law) = law_up_to(&ranks, few, pairs / 2) else {
        let (mean, error) = (0.5 * pairs as f64, (pairs as f64 * (all as f64 + 1.0) / 12.0).sqrt());
        let place = (mean - 0.5 + law::normal_quantile(tail) * error).floor();
        return (place >= 1.0).then_some((place as usize, tail));
    };
    let (mut place, mut missed) = (0, 0.0);
    for p in law {
        // The floor of the tail, whatever its last bit is.
        if missed + p > tail * (1.0 + 1e-12) {
            break;
        }
        (place, missed) = (place + 1, missed + p);
    }
    (place > 0).then_some((place, missed))
}

/// All differences of a value of B and one of A, without a list: there may be millions.
struct Differences {
    a: Vec<f64>,
    b: Vec<f64>,
}

impl Differences {
    fn of(a: &[f64], b: &[f64]) -> Differences {
        let sorted = |values: &[f64]| {
            let mut values = values.to_vec();
            values.sort_unstable_by(f64::total_cmp);
            values
        };
        Differences { a: sorted(a), b: sorted(b) }
    }

    fn pairs(&self) -> usize {
        self.a.len().saturating_mul(self.b.len())
    }

    /// Number of differences that are at most this large.
    fn at_most(&self, bound: f64) -> usize {
        let mut above = 0;
        let count = |b: &f64| {
            above += self.a[above..].iter().take_while(|a| b - **a > bound).count();
            self.a.len() - above
        };
        self.b.iter().map(count).sum()
    }

    /// Difference at a place of their order, from 0 on: the least number that `index` of them do
    /// not exceed. It is searched in the order of all floating-point numbers, to the last bit.
    fn nth(&self, index: usize) -> f64 {
        let (mut low, mut high) = (place(f64::NEG_INFINITY), place(f64::INFINITY));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.at_most(number(middle)) > index { high = middle } else { low = middle + 1 }
        }
        number(low)
    }
}

const SIGN: u64 = 1 << 63;

/// Place of a number in the order of all floating-point numbers.
fn place(value: f64) -> u64 {
    let bits = value.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn number(place: u64) -> f64 {
    f64::from_bits(if place & SIGN == 0 { !place } else { place & !SIGN })
}

#[cfg(test)]
mod tests {
    use super::super::permutation;
    use super::*;
    use proptest::prelude::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1e-3), "{found} is not {expected}");
    }

    #[test]
    fn p_without_ties_is_that_of_scipy_and_of_the_book() {
        // Hollander and Wolfe, permeability of membranes; R and scipy 1.17: W 35, p 0.1272.
        let term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let early = [1.15, 0.88, 0.90, 0.74, 1.21];
        let found = rank_sum(&early, &term);
        close(found.p_greater, 0.127_206_127_206_127_2);
        close(found.p_two_sided(), 0.254_412_254_412_254_4);
        assert!((shift(&early, &term).unwrap() - 0.305).abs() < 1e-12 && found.exact);
        // scipy 1.17: mannwhitneyu(b, a, alternative="greater", method="exact"), U 2325.
        let a: Vec<f64> = (0..60).map(f64::from).collect();
        let b: Vec<f64> = (0..60).map(|n| f64::from(n) + 9.5).collect();
        close(rank_sum(&a, &b).p_greater, 0.002_808_741_367_370_872_5);
    }

    #[test]
    fn p_with_ties_is_that_of_all_splits() {
        // Counted over itertools.combinations of scipy.stats.rankdata.
        let found = rank_sum(&[13.0, 13.0, 14.0, 14.0, 13.0, 14.0], &[14.0, 15.0, 14.0, 15.0, 13.0, 16.0]);
        close(found.p_greater, 60.0 / 924.0);
        close(found.p_less, 904.0 / 924.0);
        let found = rank_sum(&[0.0, 0.0, 1.0, 2.0, 0.0], &[1.0, 1.0, 0.0, 3.0, 2.0, 0.0, 4.0]);
        close(found.p_greater, 126.0 / 792.0);
        close(found.p_less, 726.0 / 792.0);
    }

    #[test]
    fn eight_against_eight_without_overlap_is_two_in_12870() {
        let a: Vec<f64> = [13.0, 14.0, 14.0, 13.0, 14.0, 13.0, 14.0, 14.0].to_vec();
        let found = rank_sum(&a, &[21.0; 8]);
        close(found.p_two_sided(), 2.0 / 12_870.0);
        assert_eq!((found.leaning, found.exact), (Ordering::Greater, true));
        let within = interval(&a, &[21.0; 8], 0.95).unwrap();
        assert_eq!((shift(&a, &[21.0; 8]), within.lower, within.upper), (Some(7.0), 7.0, 8.0));
    }

    #[test]
    fn the_normal_law_is_that_of_scipy() {
        // scipy 1.17: mannwhitneyu(b, a, method="asymptotic"), which corrects for both.
        let a: Vec<f64> = (0..400).map(|n| f64::from(n * 7 % 5)).collect();
        let b: Vec<f64> = (0..400).map(|n| f64::from(n * 7 % 6)).collect();
        let found = rank_sum(&a, &b);
        assert!(!found.exact && (found.p_greater / 2.514_280_271_534_141_3e-5 - 1.0).abs() < 1e-6);
        assert!((found.p_less - 0.999_974_890_614_770_1).abs() < 1e-9);
        assert_eq!(rank_sum(&[5.0; 900], &[5.0; 900]).p_two_sided(), 1.0);
        // The exact and the normal law agree where both are computed.
        let ranks = DoubledRanks::of(&a[..60], &b[..50]);
        assert!((ranks.normal().p_less - ranks.lower_tail().p_less).abs() < 2e-3);
    }

    #[test]
    fn the_interval_is_that_of_the_tables() {
        // The lower critical values of the Mann-Whitney test at 0.05, two-sided.
        for (a, b, u) in [(4, 4, 0), (5, 5, 2), (8, 8, 13), (10, 10, 23), (20, 20, 127), (8, 20, 41)] {
            assert_eq!(outside(a, b, 0.025).map(|found| found.0), Some(u + 1), "{a} {b}");
        }
        assert_eq!((outside(3, 3, 0.025), outside(0, 5, 0.025)), (None, None));
        let many = outside(2_000, 2_000, 0.025).unwrap();
        assert!((many.0 as f64 - (2e6 - 1.96 * 36_519.4)).abs() < 50.0, "{many:?}");
    }

    #[test]
    fn edges_have_an_answer() {
        for (a, b) in [(&[][..], &[][..]), (&[1.0], &[]), (&[], &[1.0])] {
            assert_eq!((rank_sum(a, b), shift(a, b), interval(a, b, 0.95)), (RankSum::NOTHING, None, None));
        }
        assert_eq!(rank_sum(&[1.0], &[1.0]).p_two_sided(), 1.0);
        let odd = [f64::NAN, f64::INFINITY, -0.0, 0.0, f64::MIN];
        assert!((0.0..=1.0).contains(&rank_sum(&odd, &odd).p_two_sided()));
        let _ = (shift(&odd, &odd), interval(&odd, &odd, 0.1));
        close(rank_sum(&vec![1.0; 9_999], &[2.0]).p_greater, 1.0 / 10_000.0);
    }

    /// Whole numbers, of which many are tied.
    fn side(most: usize) -> impl Strategy<Value = Vec<f64>> {
        proptest::collection::vec((0i32..12).prop_map(f64::from), 1..most)
    }

    proptest! {
        #[test]
        fn the_law_sums_to_one_and_is_that_of_all_splits(a in side(7), b in side(7)) {
            let (few, many) = if a.len() > b.len() { (&b, &a) } else { (&a, &b) };
            let ranks = DoubledRanks::of(many, few);
            let law = law_up_to(&ranks.all, few.len(), 2 * (a.len() * b.len()) as u64).unwrap();
            prop_assert!((law.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            // The mean of the ranks instead of that of the values, over listed splits.
            let rank = |value: &f64| {
                let all = || a.iter().chain(&b);
                let below = all().filter(|one| *one < value).count();
                let tied = all().filter(|one| *one == value).count();
                below as f64 + 0.5 * (tied as f64 + 1.0)
            };
            let ranked = |side: &[f64]| side.iter().map(rank).collect::<Vec<_>>();
            let (listed, found) = (permutation::relabelled(&ranked(&a), &ranked(&b)), rank_sum(&a, &b));
            prop_assert!((listed.p_greater(0.0) - found.p_greater).abs() < 1e-9);
            prop_assert!((listed.p_less(0.0) - found.p_less).abs() < 1e-9);
        }

        #[test]
        fn swapped_and_turned_sides_mirror(a in side(30), b in side(30)) {
            let (there, back) = (rank_sum(&a, &b), rank_sum(&b, &a));
            prop_assert_eq!(there.leaning, back.leaning.reverse());
            prop_assert!((there.p_greater - back.p_less).abs() < 1e-12);
            let negated = |side: &[f64]| side.iter().map(|value| -value).collect::<Vec<_>>();
            let turned = rank_sum(&negated(&a), &negated(&b));
            prop_assert!((there.p_greater - turned.p_less).abs() < 1e-12);
            prop_assert_eq!(shift(&a, &b), shift(&b, &a).map(|shift| 0.0 - shift));
        }

        #[test]
        fn a_larger_b_is_never_less_sure_without_ties(
            a in proptest::collection::vec(0f64..9.0, 1..20),
            b in proptest::collection::vec(0f64..9.0, 1..20),
            at in 0usize..20, by in 0f64..5.0,
        ) {
            let mut more = b.clone();
            more[at % b.len()] += by;
            prop_assert!(rank_sum(&a, &more).p_greater <= rank_sum(&a, &b).p_greater + 1e-12);
        }

        #[test]
        fn differences_are_those_of_a_list(a in side(20), b in side(20), scale in 1e-3f64..1e9) {
            let scaled = |side: &[f64]| side.iter().map(|value| value * scale).collect::<Vec<_>>();
            let (a, b) = (scaled(&a), scaled(&b));
            let mut listed: Vec<f64> = b.iter().flat_map(|b| a.iter().map(move |a| b - a)).collect();
            listed.sort_by(f64::total_cmp);
            let differences = Differences::of(&a, &b);
            for (index, expected) in listed.iter().enumerate() {
                prop_assert!(differences.nth(index) == *expected);
            }
        }

        #[test]
        fn test_and_interval_agree_without_ties(
            a in proptest::collection::vec(0f64..9.0, 4..12),
            b in proptest::collection::vec(3f64..12.0, 4..12),
        ) {
            let within = interval(&a, &b, 0.95).unwrap();
            prop_assert!(within.attained >= 0.95);
            prop_assert_eq!(rank_sum(&a, &b).p_two_sided() <= 0.05, within.lower > 0.0 || within.upper < 0.0);
        }
    }
}
