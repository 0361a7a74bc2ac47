//! Samples of boards and days, if there are more than a comparison takes.

use std::collections::BTreeSet;

/// Boards of a side.
pub const MOST_BOARDS: usize = 20;
/// Boards of a side that are looked at for maxima before those are chosen.
const MOST_LOOKED_AT: usize = 200;

/// The boards of each side that are checked for maxima.
pub fn boards_to_look_at(named: [&BTreeSet<String>; 2]) -> [Vec<String>; 2] {
    at_most(MOST_LOOKED_AT, named)
}

/// Of those with maxima, the boards of each side whose days are read: at most the limit of a
/// comparison.
pub fn boards_to_read(measured: [&BTreeSet<String>; 2]) -> [Vec<String>; 2] {
    at_most(MOST_BOARDS, measured)
}

/// The boards of both sides first, which are compared with themselves, then others, both evenly
/// spread by name.
fn at_most(most: usize, named: [&BTreeSet<String>; 2]) -> [Vec<String>; 2] {
    let shared: Vec<&String> = named[0].intersection(named[1]).collect();
    let shared = spread(&shared, most);
    named.map(|side| {
        let others: Vec<&String> = side.iter().filter(|name| !shared.contains(name)).collect();
        let others = spread(&others, most - shared.len());
        shared.iter().copied().chain(others).cloned().collect()
    })
}

/// At most this number of a list, one from each of as many parts of it. The position in a part
/// varies by the golden section: with a fixed one, each week would give the same day.
pub fn spread<T: Copy>(all: &[T], most: usize) -> Vec<T> {
    let taken = all.len().min(most);
    let one = |at: usize| {
        let (begin, end) = (at * all.len() / taken, (at + 1) * all.len() / taken);
        all.get(begin + (end - begin) * (at * 618 % 1_000) / 1_000).copied()
    };
    (0..taken).filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boards_of_both_sides_are_read_first() {
        let named = |of: std::ops::Range<usize>| of.map(|at| format!("b{at:03}")).collect::<BTreeSet<_>>();
        let [a, b] = boards_to_read([&named(0..100), &named(60..200)]);
        assert_eq!(a, b);
        assert!(a.len() == 20 && a[0].as_str() < "b063" && a[19].as_str() > "b096", "{a:?}");
        let [a, b] = boards_to_read([&named(0..10), &named(8..300)]);
        assert_eq!((a.len(), b.len()), (10, 20));
        assert!(a[..2] == b[..2] && b[2..].iter().any(|name| name.as_str() > "b280"), "{b:?}");
        let [a, b] = boards_to_read([&named(0..2), &named(0..0)]);
        assert_eq!((a.len(), b.len()), (2, 0));
        let [a, b] = boards_to_look_at([&named(0..150), &named(0..900)]);
        assert_eq!((a.len(), b.len()), (150, 200));
    }

    #[test]
    fn days_that_stand_for_a_time_are_of_the_whole_week() {
        let year = spread(&(0..28 * 7).collect::<Vec<_>>(), 28);
        let weekdays: BTreeSet<i64> = year.iter().map(|day| day % 7).collect();
        assert!(weekdays.len() == 7 && year.windows(2).all(|two| two[0] < two[1]), "{year:?}");
    }
}
