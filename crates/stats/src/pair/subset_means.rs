//! Means of all subsets of some numbers, counted and ranked without a list of them.
//!
//! A subset's mean is at most s if its numbers, each less s, add up to at most 0. Every subset is
//! one of the first half and one of the second, and with the sums of both halves in order two
//! pointers count the pairs: 2^(n/2) steps for 2^n subsets (Horowitz and Sahni 1974, J. ACM 21).

use std::collections::BTreeSet;

use model::sort::CompactSort;

/// Distance of two ends of a search, as a part of the largest mean, at which they are one value.
const CLOSE: f64 = 1e-14;
/// Maximum number of steps of a search down to that, in which every second step is a halving.
const MOST_STEPS: usize = 128;

/// Numbers, of which there are fewer than 64.
#[derive(Clone, Debug)]
pub(super) struct SubsetMeans {
    numbers: Vec<f64>,
}

/// A sum over a subset of a half, and the mask of the subset.
type Sum = (f64, u32);

impl SubsetMeans {
    pub(super) fn new(numbers: &[f64]) -> SubsetMeans {
        SubsetMeans { numbers: numbers.to_vec() }
    }

    /// Number of means; the empty subset has none.
    pub(super) fn len(&self) -> usize {
        (1 << self.numbers.len()) - 1
    }

    /// Smallest and largest mean, those of a single number.
    pub(super) fn ends(&self) -> Option<[f64; 2]> {
        let numbers = || self.numbers.iter().copied();
        Some([numbers().min_by(f64::total_cmp)?, numbers().max_by(f64::total_cmp)?])
    }

    /// Number of means that are at most this large.
    pub(super) fn at_most(&self, bound: f64) -> usize {
        let halves = self.halves(bound);
        let counts = pairs(&halves, |sum| sum <= 0.0).map(|(_, others)| others.len());
        counts.sum::<usize>().saturating_sub(1)
    }

    /// Number of smaller means.
    pub(super) fn below(&self, bound: f64) -> usize {
        let halves = self.halves(bound);
        pairs(&halves, |sum| sum < 0.0).map(|(_, others)| others.len()).sum()
    }

    /// The mean at this place in their order, from 0.
    pub(super) fn nth(&self, index: usize) -> Option<f64> {
        let [mut low, mut high] = self.ends()?;
        if index >= self.len() {
            return None;
        }
        let mut counted = [self.at_most(low), self.len()];
        if counted[0] > index {
            return Some(low);
        }
        let close = CLOSE * low.abs().max(high.abs());
        for step in 0..MOST_STEPS {
            if high - low <= close || counted[1] - counted[0] <= 1 {
                break;
            }
            // Means lie nearly evenly between two close bounds; alternate halving bounds the steps.
            let share = match step % 2 {
                0 => (index - counted[0]) as f64 / (counted[1] - counted[0]) as f64,
                _ => 0.5,
            };
            let between = low + (high - low) * share;
            let at_most = self.at_most(between);
            if at_most > index {
                (high, counted[1]) = (between, at_most);
            } else {
                (low, counted[0]) = (between, at_most);
            }
        }
        Some(self.within(low, high).unwrap_or(high))
    }

    /// A mean that is counted at the second bound and not at the first.
    fn within(&self, low: f64, high: f64) -> Option<f64> {
        let [before, after] = [low, high].map(|bound| self.halves(bound));
        let partners = |halves| {
            let mut of_set = vec![0; 1 << (self.numbers.len() / 2)];
            pairs(halves, |sum| sum <= 0.0).for_each(|(left, others)| of_set[left.1 as usize] = others.len());
            of_set
        };
        let (fewer, more) = (partners(&before), partners(&after));
        let left = fewer.iter().zip(&more).position(|(fewer, more)| more > fewer)?;
        let known: BTreeSet<u32> = before[1][..fewer[left]].iter().map(|(_, set)| *set).collect();
        let right = after[1][..more[left]].iter().map(|(_, set)| *set).find(|set| !known.contains(set))?;
        let (first, second) = self.numbers.split_at(self.numbers.len() / 2);
        let chosen = |half: &[f64], set: u32| {
            let of_set = half.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
            of_set.map(|(_, number)| *number).collect::<Vec<_>>()
        };
        let chosen = [chosen(first, left as u32), chosen(second, right)].concat();
        Some(chosen.iter().sum::<f64>() / chosen.len() as f64)
    }

    /// The sums of both halves, each number less a shift.
    fn halves(&self, shift: f64) -> [Vec<Sum>; 2] {
        let (first, second) = self.numbers.split_at(self.numbers.len() / 2);
        [sums(first, shift), sums(second, shift)]
    }
}

/// The sums over all subsets, in order.
fn sums(numbers: &[f64], shift: f64) -> Vec<Sum> {
    let mut sums = vec![(0.0, 0)];
    for (at, number) in numbers.iter().enumerate() {
        let end = sums.len();
        sums.extend_from_within(..);
        for (sum, set) in &mut sums[end..] {
            *sum += number - shift;
            *set |= 1 << at;
        }
        // Two runs in order, which a stable sort merges in one pass.
        sums.compact_sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    sums
}

/// Each sum of the first half with those of the second that it may be added to.
fn pairs<'a>(
    [first, second]: &'a [Vec<Sum>; 2],
    counts: impl Fn(f64) -> bool + 'a,
) -> impl Iterator<Item = (Sum, &'a [Sum])> + 'a {
    let mut end = second.len();
    first.iter().map(move |left| {
        while end > 0 && !counts(left.0 + second[end - 1].0) {
            end -= 1;
        }
        (*left, &second[..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All means, in order.
    fn listed(numbers: &[f64]) -> Vec<f64> {
        let mean = |set: u32| {
            let chosen = numbers.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
            chosen.map(|(_, number)| number).sum::<f64>() / f64::from(set.count_ones())
        };
        let mut all: Vec<f64> = (1..1u32 << numbers.len()).map(mean).collect();
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn few_and_equal_numbers_have_their_means() {
        let none = SubsetMeans::new(&[]);
        assert_eq!((none.len(), none.at_most(1.0), none.below(1.0), none.nth(0)), (0, 0, 0, None));
        let one = SubsetMeans::new(&[3.0]);
        assert_eq!((one.len(), one.nth(0), one.nth(1)), (1, Some(3.0), None));
        let same = SubsetMeans::new(&[0.0; 8]);
        assert_eq!((same.at_most(0.0), same.below(0.0), same.nth(254)), (255, 0, Some(0.0)));
        let six = SubsetMeans::new(&[1.0, 2.0, 3.0, 4.0, 5.0, 7.0]);
        assert_eq!((six.nth(0), six.nth(1), six.nth(62)), (Some(1.0), Some(1.5), Some(7.0)));
    }

    #[test]
    fn what_is_no_number_ends_the_search() {
        for numbers in
            [[f64::NAN, 1.0, 2.0], [f64::NEG_INFINITY, f64::INFINITY, 0.0], [f64::MAX, 1.0, f64::MIN]]
        {
            let means = SubsetMeans::new(&numbers);
            assert!(means.at_most(1.0) <= 8 && (0..7).all(|index| means.nth(index).is_some()));
        }
    }

    proptest! {
        #[test]
        fn counts_and_places_are_those_of_a_list(
            numbers in proptest::collection::vec(-40i32..40, 1..12), scale in 0.001f64..1e9,
        ) {
            let numbers: Vec<f64> = numbers.iter().map(|&n| f64::from(n) * scale).collect();
            let (means, all) = (SubsetMeans::new(&numbers), listed(&numbers));
            prop_assert_eq!(means.len(), all.len());
            let close = 1e-13 * all[0].abs().max(all[all.len() - 1].abs());
            for index in (0..all.len()).step_by(all.len() / 40 + 1) {
                let found = means.nth(index).unwrap();
                prop_assert!((found - all[index]).abs() <= close, "{index}: {found} for {}", all[index]);
            }
            // Between two of them, where no rounding decides.
            for two in all.windows(2).filter(|two| two[1] - two[0] > 2.0 * close) {
                let bound = 0.5 * (two[0] + two[1]);
                let counted = all.partition_point(|mean| *mean <= bound);
                prop_assert_eq!((means.at_most(bound), means.below(bound)), (counted, counted));
            }
        }
    }
}
