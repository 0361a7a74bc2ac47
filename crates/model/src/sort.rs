//! Stable sorts in little code.
//!
//! The standard library's sort is compiled for each type and order, in 5 kB; here that is done
//! once, for positions, and each type adds a comparison and an exchange.

use std::cmp::Ordering;

/// Stable sorts of slices, for lists whose length no user chooses by the million.
pub trait CompactSort<T> {
    /// Sorts by a comparison.
    fn compact_sort_by(&mut self, compare: impl FnMut(&T, &T) -> Ordering);

    /// Sorts by a key, which is computed twice for each comparison.
    fn compact_sort_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.compact_sort_by(|a, b| key(a).cmp(&key(b)));
    }

    /// Sorts by the type's own order.
    fn compact_sort(&mut self)
    where
        T: Ord,
    {
        self.compact_sort_by(T::cmp);
    }
}

impl<T> CompactSort<T> for [T] {
    fn compact_sort_by(&mut self, mut compare: impl FnMut(&T, &T) -> Ordering) {
        let order = sorted_positions(self.len(), &mut |a, b| compare(&self[a], &self[b]));
        move_to(order, &mut |a, b| self.swap(a, b));
    }
}

/// Positions of the elements in their order.
#[inline(never)]
fn sorted_positions(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut positions: Vec<usize> = (0..count).collect();
    positions.sort_by(|&a, &b| compare(a, b));
    positions
}

/// Moves the element at `sources[n]` to `n`, for all n, by at most one exchange each.
#[inline(never)]
fn move_to(mut sources: Vec<usize>, swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..sources.len() {
        let mut hole = start;
        // Along the cycle of moves that begins here; each step puts one element in its place.
        while sources[hole] != start {
            let source = sources[hole];
            swap(hole, source);
            sources[hole] = hole;
            hole = source;
        }
        sources[hole] = hole;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_the_standard_library(keys in proptest::collection::vec(0u8..20, 0..300)) {
            let pairs: Vec<(u8, usize)> = keys.into_iter().enumerate().map(|(at, key)| (key, at)).collect();
            let (mut ours, mut theirs) = (pairs.clone(), pairs);
            ours.compact_sort_by_key(|pair| pair.0);
            theirs.sort_by_key(|pair| pair.0);
            prop_assert_eq!(&ours, &theirs);
            ours.compact_sort_by(|a, b| b.1.cmp(&a.1));
            theirs.sort_by_key(|pair| std::cmp::Reverse(pair.1));
            prop_assert_eq!(&ours, &theirs);
            ours.compact_sort();
            theirs.sort();
            prop_assert_eq!(ours, theirs);
        }
    }
}
