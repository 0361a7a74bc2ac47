//! Different values of a series with their counts, for ranks and ties.
//!
//! Recorded latencies repeat, so that there are few; a sorted copy of the series, or the places of
//! its values in order, would take as much memory as millions of values do.

/// Number of sorted parts into which values are split before they are merged.
const PARTS: usize = 16;
/// Least size of such a part.
const PART: usize = 1 << 14;
/// Largest number of whole numbers per level for a table of places.
const SPARSE: usize = 4;

/// Values in ascending order, each with its count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Levels {
    all: Vec<(f64, u64)>,
    /// Number of smaller values, for each level.
    below: Vec<u64>,
    /// Number of smaller levels for each whole number from the least value on; empty if that would
    /// be much longer than the list.
    places: Vec<u32>,
}

impl Levels {
    /// Levels of values in any order, of which the caller knows the approximate number. Both zeros
    /// are one value.
    pub fn of(values: impl IntoIterator<Item = f64>, about: usize) -> Levels {
        let size = (about / PARTS).max(PART);
        let (mut all, mut part): (Vec<(f64, u64)>, Vec<f64>) = (Vec::new(), Vec::new());
        for value in values {
            part.push(value + 0.0);
            if part.len() == size {
                all = merged(&all, &mut part);
            }
        }
        all = merged(&all, &mut part);
        let mut sum = 0;
        let mut below = Vec::with_capacity(all.len());
        for level in &all {
            below.push(sum);
            sum += level.1;
        }
        let places = places(&all);
        Levels { all, below, places }
    }

    /// Different values with their counts.
    pub fn all(&self) -> &[(f64, u64)] {
        &self.all
    }

    /// Index of a value among the different ones; it must be one of them.
    pub fn place(&self, value: f64) -> usize {
        let value = value + 0.0;
        let first = self.all.first().map_or(0.0, |level| level.0);
        let whole = whole_from(first, value).and_then(|beyond| self.places.get(beyond as usize));
        whole.map_or_else(
            || self.all.partition_point(|level| level.0.total_cmp(&value).is_lt()),
            |&place| place as usize,
        )
    }

    /// Value at a rank in ascending order, from 0 on.
    pub fn at(&self, rank: u64) -> Option<f64> {
        let at = self.below.partition_point(|&below| below <= rank).checked_sub(1)?;
        let (value, count) = *self.all.get(at)?;
        (rank - self.below[at] < count).then_some(value)
    }

    /// Mean of the ranks, from 1, of the values that are equal to this one, which must be one of
    /// them.
    pub fn midrank(&self, value: f64) -> f64 {
        let at = self.place(value).min(self.all.len().saturating_sub(1));
        self.all.get(at).map_or(0.0, |level| self.below[at] as f64 + (level.1 + 1) as f64 / 2.0)
    }

    /// Median; the mean of the middle two for an even number.
    pub fn median(&self) -> Option<f64> {
        let n = self.below.last()? + self.all.last()?.1;
        let upper = self.at(n / 2)?;
        if n % 2 == 1 {
            return Some(upper);
        }
        let lower = self.at(n / 2 - 1)?;
        Some(lower + (upper - lower) / 2.0)
    }
}

/// Distance of a value from the least one, if it is a whole number that identifies the value.
fn whole_from(first: f64, value: f64) -> Option<u32> {
    let beyond = (value - first) as u32;
    (f64::from(beyond) + first == value).then_some(beyond)
}

/// Table for [`Levels::place`].
fn places(all: &[(f64, u64)]) -> Vec<u32> {
    let ends = all.first().zip(all.last()).map(|(first, last)| (first.0, last.0));
    let span = ends.and_then(|(first, last)| whole_from(first, last));
    let Some((span, (first, _))) = span.zip(ends).filter(|one| one.0 as usize <= SPARSE * all.len()) else {
        return Vec::new();
    };
    let mut below = 0;
    let mut place = |beyond: u32| {
        let value = f64::from(beyond) + first;
        while all.get(below as usize).is_some_and(|level| level.0 < value) {
            below += 1;
        }
        below
    };
    (0..=span).map(&mut place).collect()
}

/// Counts values that are near each other and whole numbers apart, without sorting them.
fn counted(values: &[f64]) -> Option<Vec<(f64, u64)>> {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let span = whole_from(least, most).filter(|&span| span as usize <= values.len())?;
    let mut counts = vec![0u32; span as usize + 1];
    for &value in values {
        *counts.get_mut(whole_from(least, value)? as usize)? += 1;
    }
    let counts = (0u32..).zip(counts).filter(|count| count.1 > 0);
    Some(counts.map(|(beyond, count)| (f64::from(beyond) + least, u64::from(count))).collect())
}

/// Sorts and counts values in any order.
fn sorted(values: &mut [f64]) -> Vec<(f64, u64)> {
    values.sort_unstable_by(f64::total_cmp);
    values.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|same| (same[0], same.len() as u64)).collect()
}

/// Merges the levels with those of the values, and empties the values.
fn merged(all: &[(f64, u64)], values: &mut Vec<f64>) -> Vec<(f64, u64)> {
    let fresh = counted(values).unwrap_or_else(|| sorted(values));
    values.clear();
    if all.is_empty() {
        return fresh;
    }
    let mut fresh = fresh.into_iter().peekable();
    let mut known = all.iter().copied().peekable();
    let mut merged = Vec::with_capacity(all.len());
    loop {
        let order = match (known.peek(), fresh.peek()) {
            (Some(a), Some(b)) => a.0.total_cmp(&b.0),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (None, None) => break,
        };
        let (a, b) = (
            if order.is_le() { known.next() } else { None },
            if order.is_ge() { fresh.next() } else { None },
        );
        merged.extend(a.or(b).map(|one| (one.0, a.map_or(0, |a| a.1) + b.map_or(0, |b| b.1))));
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn whole_numbers_that_are_near_need_no_order() {
        assert_eq!(counted(&[5.0, 3.0, 5.0, 4.0]), Some(vec![(3.0, 1), (4.0, 1), (5.0, 2)]));
        for apart in [&[][..], &[0.5, 1.0, 0.0], &[0.0, 9.0], &[f64::NAN; 3]] {
            assert_eq!(counted(apart), None, "{apart:?}");
        }
        let dense = Levels::of((0..500).map(|n| f64::from(n % 90 * 2)), 500);
        assert_eq!((dense.places.len(), dense.place(178.0), dense.place(7.0)), (179, 89, 4));
    }

    #[test]
    fn by_hand() {
        let levels = Levels::of([2.0, 7.0, 2.0, 1.0, -0.0, 0.0], 6);
        assert_eq!(levels.all(), [(0.0, 2), (1.0, 1), (2.0, 2), (7.0, 1)]);
        assert_eq!((levels.median(), levels.at(5), levels.at(6)), (Some(1.5), Some(7.0), None));
        assert_eq!([0.0, 2.0, 7.0].map(|value| levels.midrank(value)), [1.5, 4.5, 6.0]);
        assert_eq!((Levels::of([], 0).median(), Levels::of([], 0).at(0)), (None, None));
    }

    proptest! {
        #[test]
        fn counting_is_sorting(
            values in proptest::collection::vec(
                prop_oneof![
                    8 => (0i32..40).prop_map(f64::from),
                    1 => (-40i32..40).prop_map(|n| f64::from(n) / 4.0),
                    1 => any::<f64>(),
                ],
                0..90,
            ),
            base in prop_oneof![Just(0.0), Just(0.3), Just(1e15), Just(-9e18), any::<f64>()],
        ) {
            let mut values: Vec<f64> = values.into_iter().map(|value| value + base + 0.0).collect();
            let alike = |levels: &[(f64, u64)]| -> Vec<(u64, u64)> {
                levels.iter().map(|one| (one.0.to_bits(), one.1)).collect()
            };
            let counted = counted(&values);
            let sorted = sorted(&mut values);
            if let Some(counted) = counted {
                prop_assert_eq!(alike(&counted), alike(&sorted));
            }
            let levels = Levels::of(values.iter().copied(), values.len());
            for value in values {
                let place = levels.all.partition_point(|level| level.0.total_cmp(&value).is_lt());
                prop_assert_eq!(levels.place(value), place);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn as_a_sorted_list(seed in 1u64..1_000, n in 1usize..60_000, different in 1u64..5_000) {
            let value = |at: usize| (at as u64).wrapping_mul(seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
            let values: Vec<f64> = (0..n).map(|at| (value(at) % different) as f64).collect();
            let levels = Levels::of(values.iter().copied(), n);
            let mut sorted = values;
            sorted.sort_by(f64::total_cmp);
            let expected: Vec<(f64, u64)> =
                sorted.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u64)).collect();
            prop_assert_eq!(levels.all(), expected);
            for rank in [0, n / 3, n / 2, n - 1] {
                prop_assert_eq!(levels.at(rank as u64), Some(sorted[rank]));
            }
            prop_assert_eq!(levels.median(), Some((sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0));
        }
    }
}
