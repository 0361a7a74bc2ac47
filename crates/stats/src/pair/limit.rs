//! Limit whose exceedances are compared if the user gives none.
//!
//! The 99.5 % block maximum of all runs together: no exchange of runs changes it, so the test keeps
//! its size (`experiments`, 2 % to 4 % at 5 %), as it does with one taken from a pilot.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::series::Series;
use model::units::Nanos;

/// Least number of blocks that reach the limit: with fewer nothing can be compared.
const MIN_EXCEEDING_BLOCKS: usize = 20;

/// Lowest limit that no more than one block in 200 reaches, or 20 blocks, or half of them,
/// whichever is more: one above the 99.5 % block maximum by nearest rank, in the values' unit. If
/// more blocks have the largest maximum, it is that one: none would reach a higher limit. `None` if
/// all blocks are equal, and no limit separates any, or there are none.
///
/// Of the maxima of months only the largest are in memory.
pub fn frozen<I: Iterator<Item = i64>>(maxima: impl Fn() -> I) -> Option<i64> {
    let count = maxima().count();
    let above = (count / 200).max(MIN_EXCEEDING_BLOCKS).min(count / 2);
    let mut top: BinaryHeap<Reverse<i64>> = BinaryHeap::with_capacity(above + 2);
    for value in maxima() {
        if top.len() <= above || top.peek().is_some_and(|least| value > least.0) {
            top.push(Reverse(value));
        }
        if top.len() > above + 1 {
            top.pop();
        }
    }
    let (least, largest) = (maxima().min()?, maxima().max()?);
    let maximum = top.peek()?.0;
    (least < largest).then(|| maximum.saturating_add(1).min(largest))
}

/// Limit for all blocks of two sides together, on an edge of the coarser recording: within a step
/// it would count one side lower than the other. `None` if [`frozen`] is, or if only a part of a
/// step lies between the largest and the others.
pub fn pooled(a: &[&Series], b: &[&Series]) -> Option<Nanos> {
    let maxima = || a.iter().chain(b).flat_map(|series| series.blocks.maxima().map(|max| max.0));
    let step = a.iter().chain(b).map(|series| series.step.0.max(1)).max().unwrap_or(1);
    let (limit, largest) = (frozen(maxima)?, maxima().max()?);
    let above = limit.saturating_add((-limit).rem_euclid(step));
    // The largest may lie below the next edge, which no block would reach.
    let edge = if above > largest { largest - largest.rem_euclid(step) } else { above };
    maxima().any(|max| max < edge).then_some(Nanos(edge))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(maxima: &[i64]) -> Option<i64> {
        frozen(|| maxima.iter().copied())
    }

    #[test]
    fn the_limit_leaves_one_in_two_hundred_above_or_twenty() {
        let above = |n: i64| {
            let limit = frozen(|| 0..n).unwrap_or(n);
            (0..n).filter(|&value| value >= limit).count()
        };
        assert_eq!([above(20_000), above(4_000), above(1_000), above(30), above(3)], [100, 20, 20, 15, 1]);
        assert_eq!((of(&[]), of(&[7]), of(&[7, 9])), (None, None, Some(8)));
    }

    #[test]
    fn the_limit_is_one_that_was_reached_and_not_by_all() {
        assert_eq!((of(&[i64::MAX; 9]), of(&[9; 100])), (None, None));
        assert_eq!(of(&[7, 9, 9, 9]), Some(9));
        let many_alike = || (0..400).map(|at| if at < 300 { at } else { 1_000 });
        assert_eq!(frozen(many_alike), Some(1_000));
    }
}
