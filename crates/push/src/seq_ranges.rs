//! Numbers of rows that are done, as ranges.

use serde::{Deserialize, Serialize};

/// Set of numbers, as ascending ranges that do not touch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SeqRanges(Vec<(u64, u64)>);

impl SeqRanges {
    pub fn contains(&self, seq: u64) -> bool {
        let after = self.0.partition_point(|&(from, _)| from <= seq);
        after > 0 && self.0[after - 1].1 >= seq
    }

    /// Adds the numbers from `from` to `to`, both included.
    pub fn insert(&mut self, from: u64, to: u64) {
        if to < from {
            return;
        }
        let first = self.0.partition_point(|&(_, end)| end.saturating_add(1) < from);
        let last = self.0.partition_point(|&(begin, _)| begin <= to.saturating_add(1));
        let (mut from, mut to) = (from, to);
        if first < last {
            from = from.min(self.0[first].0);
            to = to.max(self.0[last - 1].1);
        }
        self.0.splice(first..last, [(from, to)]);
    }

    /// Count of the numbers from `from` to `to` that are not in the set.
    pub fn missing(&self, from: u64, to: u64) -> u64 {
        let there: u64 = self
            .0
            .iter()
            .filter(|&&(begin, end)| begin <= to && from <= end)
            .map(|&(begin, end)| (end.min(to) - begin.max(from)).saturating_add(1))
            .sum();
        to.saturating_sub(from).saturating_add(1).saturating_sub(there)
    }

    /// Numbers from `from` to `to` that are not in the set.
    pub fn gaps(&self, from: u64, to: u64) -> SeqRanges {
        let (mut gaps, mut next) = (SeqRanges::default(), Some(from));
        for &(begin, end) in self.0.iter().filter(|&&(begin, end)| begin <= to && from <= end) {
            if let Some(at) = next.filter(|at| *at < begin) {
                gaps.insert(at, begin - 1);
            }
            next = end.checked_add(1);
        }
        if let Some(at) = next {
            gaps.insert(at, to);
        }
        gaps
    }

    /// Count of the numbers in the set.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, &(from, to)| sum.saturating_add((to - from).saturating_add(1)))
    }

    /// Intersection with another set.
    pub fn common(&self, other: &SeqRanges) -> SeqRanges {
        let (mut both, mut left, mut right) = (SeqRanges::default(), self.0.iter(), other.0.iter());
        let (mut a, mut b) = (left.next(), right.next());
        while let (Some(&one), Some(&two)) = (a, b) {
            both.insert(one.0.max(two.0), one.1.min(two.1));
            if one.1 < two.1 { a = left.next() } else { b = right.next() }
        }
        both
    }

    /// Adds the numbers of another set.
    pub fn add(&mut self, other: &SeqRanges) {
        other.0.iter().for_each(|&(from, to)| self.insert(from, to));
    }

    /// True if the ranges ascend and do not touch: a file may hold anything.
    pub fn is_ordered(&self) -> bool {
        self.0.iter().all(|&(from, to)| from <= to)
            && self.0.windows(2).all(|pair| pair[0].1.saturating_add(1) < pair[1].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_is_the_set_of_its_numbers(spans in prop::collection::vec((0u64..60, 0u64..9), 0..30)) {
            let (mut ranges, mut set) = (SeqRanges::default(), BTreeSet::new());
            for (from, length) in spans {
                ranges.insert(from, from + length);
                set.extend(from..=from + length);
                prop_assert!(ranges.is_ordered());
            }
            for seq in 0..80 {
                prop_assert_eq!(ranges.contains(seq), set.contains(&seq));
            }
            let missing = (10..=50).filter(|seq| !set.contains(seq)).count() as u64;
            prop_assert_eq!(ranges.missing(10, 50), missing);
            let gaps = ranges.gaps(10, 50);
            prop_assert!(gaps.is_ordered() && gaps.count() == missing);
            for seq in 0..80 {
                prop_assert_eq!(gaps.contains(seq), (10..=50).contains(&seq) && !set.contains(&seq));
            }
        }
    }

    proptest! {
        #[test]
        fn two_have_what_is_in_both(
            a in prop::collection::vec((0u64..60, 0u64..9), 0..20),
            b in prop::collection::vec((0u64..60, 0u64..9), 0..20),
        ) {
            let of = |spans: &[(u64, u64)]| {
                let mut ranges = SeqRanges::default();
                spans.iter().for_each(|&(from, length)| ranges.insert(from, from + length));
                ranges
            };
            let (a, b) = (of(&a), of(&b));
            let (both, mut either) = (a.common(&b), a.clone());
            either.add(&b);
            prop_assert!(both.is_ordered() && either.is_ordered());
            for seq in 0..80 {
                prop_assert_eq!(both.contains(seq), a.contains(seq) && b.contains(seq));
                prop_assert_eq!(either.contains(seq), a.contains(seq) || b.contains(seq));
            }
            prop_assert_eq!(both.count() + either.count(), a.count() + b.count());
        }
    }

    #[test]
    fn the_last_numbers_are_numbers() {
        let mut ranges = SeqRanges::default();
        ranges.insert(u64::MAX, u64::MAX);
        ranges.insert(u64::MAX - 1, u64::MAX);
        ranges.insert(5, 4);
        assert!(ranges.contains(u64::MAX) && ranges.is_ordered() && !ranges.contains(5));
        assert_eq!(ranges.missing(u64::MAX - 2, u64::MAX), 1);
        assert_eq!(ranges.missing(0, u64::MAX), u64::MAX - 2);
        let gaps = ranges.gaps(u64::MAX - 2, u64::MAX);
        assert!(gaps.contains(u64::MAX - 2) && gaps.count() == 1);
    }
}
