//! The different values of a series and how often each is there: what ranks and ties are made of.
//!
//! Recorded latencies repeat, so that there are few; a sorted copy of the series, or the places of
//! its values in order, would take as much memory as millions of values do.

/// Values are sorted in this number of parts, which are merged.
const PARTS: usize = 16;
const PART: usize = 1 << 14;

/// Values in ascending order, each with how often it is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Levels {
    all: Vec<(f64, u64)>,
    /// Of each, how many values are smaller.
    below: Vec<u64>,
}

impl Levels {
    /// Of values in any order, of which the caller knows about how many there are. The two zeros
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
        Levels { all, below }
    }

    /// The different values, each with how often it is there.
    pub fn all(&self) -> &[(f64, u64)] {
        &self.all
    }

    /// The index of a value among the distinct ones; it must be one of them.
    pub fn place(&self, value: f64) -> usize {
        self.all.partition_point(|level| level.0.total_cmp(&(value + 0.0)).is_lt())
    }

    /// The value at a rank in ascending order, from 0 on.
    pub fn at(&self, rank: u64) -> Option<f64> {
        let at = self.below.partition_point(|&below| below <= rank).checked_sub(1)?;
        let (value, count) = *self.all.get(at)?;
        (rank - self.below[at] < count).then_some(value)
    }

    /// The mean of the ranks, from 1, of the values that are equal to this one, which is one of
    /// them.
    pub fn midrank(&self, value: f64) -> f64 {
        let at = self.place(value).min(self.all.len().saturating_sub(1));
        self.all.get(at).map_or(0.0, |level| self.below[at] as f64 + (level.1 + 1) as f64 / 2.0)
    }

    /// The median, the mean of the middle two where they are an even number.
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

/// The levels with those of the values, which are taken.
fn merged(all: &[(f64, u64)], values: &mut Vec<f64>) -> Vec<(f64, u64)> {
    values.sort_unstable_by(f64::total_cmp);
    let mut fresh =
        values.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|same| (same[0], same.len() as u64)).peekable();
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
    drop(fresh);
    values.clear();
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn by_hand() {
        let levels = Levels::of([2.0, 7.0, 2.0, 1.0, -0.0, 0.0], 6);
        assert_eq!(levels.all(), [(0.0, 2), (1.0, 1), (2.0, 2), (7.0, 1)]);
        assert_eq!((levels.median(), levels.at(5), levels.at(6)), (Some(1.5), Some(7.0), None));
        assert_eq!([0.0, 2.0, 7.0].map(|value| levels.midrank(value)), [1.5, 4.5, 6.0]);
        assert_eq!((Levels::of([], 0).median(), Levels::of([], 0).at(0)), (None, None));
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
