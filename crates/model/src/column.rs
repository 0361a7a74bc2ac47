//! Millions of integers in the space of their differences.

use std::ops::Range;

/// Count of numbers in a part; each part has its own minimum.
const PART: usize = 1 << 12;

/// A full part: its smallest number, and the offsets of the others from it.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Same(i64),
    /// Minimum, step, and offsets in steps: times on the grid of an interval take two bytes each.
    Short(i64, i64, Box<[u16]>),
    Middle(i64, Box<[u32]>),
    Long(Box<[i64]>),
}

impl Part {
    fn of(values: &[i64]) -> Part {
        let least = values.iter().copied().min().unwrap_or(0);
        let beyond = |value: &i64| value.wrapping_sub(least) as u64;
        let most = values.iter().map(beyond).max().unwrap_or(0);
        let step = match most {
            0 => return Part::Same(least),
            _ if most <= u64::from(u16::MAX) => 1,
            _ => common_step(values.iter().map(beyond)),
        };
        match most {
            _ if most / step <= u64::from(u16::MAX) => {
                let short = |value: &i64| (beyond(value) / step) as u16;
                Part::Short(least, step as i64, values.iter().map(short).collect())
            }
            most if most <= u64::from(u32::MAX) => {
                Part::Middle(least, values.iter().map(|value| beyond(value) as u32).collect())
            }
            _ => Part::Long(values.into()),
        }
    }

    #[inline]
    fn get(&self, at: usize) -> i64 {
        match self {
            Part::Same(least) => *least,
            Part::Short(least, step, beyond) => least.wrapping_add(step.wrapping_mul(i64::from(beyond[at]))),
            Part::Middle(least, beyond) => least.wrapping_add(i64::from(beyond[at])),
            Part::Long(values) => values[at],
        }
    }

    /// Appends the numbers at the given places.
    fn read<T>(&self, places: Range<usize>, into: &mut Vec<T>, of: impl Fn(i64) -> T) {
        match self {
            Part::Same(least) => into.extend(places.map(|_| of(*least))),
            Part::Short(least, step, beyond) => into.extend(
                beyond[places].iter().map(|&far| of(least.wrapping_add(step.wrapping_mul(i64::from(far))))),
            ),
            Part::Middle(least, beyond) => {
                into.extend(beyond[places].iter().map(|&far| of(least.wrapping_add(i64::from(far)))));
            }
            Part::Long(values) => into.extend(values[places].iter().map(|&value| of(value))),
        }
    }
}

/// Greatest common divisor; 1 if all are 0.
fn common_step(values: impl Iterator<Item = u64>) -> u64 {
    let mut step = 0;
    for mut value in values {
        while value > 0 {
            (step, value) = (value, step % value);
        }
        if step == 1 {
            break;
        }
    }
    step.max(1)
}

/// A list of integers that grows at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    full: Vec<Part>,
    open: Vec<i64>,
}

impl Column {
    #[inline]
    pub fn push(&mut self, value: i64) {
        self.open.push(value);
        if self.open.len() == PART {
            self.full.push(Part::of(&self.open));
            self.open.clear();
        }
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.full.len() * PART + self.open.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number at a place, which must exist.
    #[inline]
    pub fn get(&self, at: usize) -> i64 {
        self.full.get(at / PART).map_or_else(|| self.open[at % PART], |part| part.get(at % PART))
    }

    /// Appends the numbers at the given places, which must exist, each mapped by `of`.
    pub fn read<T>(&self, places: Range<usize>, into: &mut Vec<T>, of: impl Fn(i64) -> T) {
        let mut at = places.start;
        while at < places.end {
            let (part, from) = (at / PART, at % PART);
            let until = (places.end - part * PART).min(PART);
            match self.full.get(part) {
                Some(part) => part.read(from..until, into, &of),
                None => into.extend(self.open[from..until].iter().map(|&value| of(value))),
            }
            at = part * PART + until;
        }
    }

    /// All values, in order.
    pub fn iter(&self) -> impl Iterator<Item = i64> + '_ {
        let full = self.full.iter().flat_map(|part| (0..PART).map(move |at| part.get(at)));
        full.chain(self.open.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn parts_take_the_room_of_their_differences() {
        let of = |values: &[i64]| Part::of(values);
        assert!(matches!(of(&[7; 9]), Part::Same(7)));
        assert!(matches!(of(&[-5, 65_530]), Part::Short(-5, 1, _)));
        assert!(matches!(of(&[9, 1_000_009, 3_000_000_009]), Part::Short(9, 1_000_000, _)));
        assert!(matches!(of(&[9, 1_000_009, 3_000_000_010]), Part::Middle(9, _)));
        assert!(matches!(of(&[i64::MIN, i64::MIN + 1, i64::MIN + 65_536]), Part::Middle(..)));
        assert!(matches!(of(&[i64::MIN, 0, i64::MAX]), Part::Long(_)));
    }

    proptest! {
        #[test]
        fn values_are_returned_as_pushed(seeds in proptest::collection::vec((any::<i64>(), 0u32..64), 1..6)) {
            let values: Vec<i64> =
                seeds.iter().flat_map(|&(base, bits)| (0..3_000i64).map(move |n| base ^ (n.wrapping_mul(n) << bits))).collect();
            let mut column = Column::default();
            values.iter().for_each(|&value| column.push(value));
            prop_assert_eq!(column.len(), values.len());
            let (from, mut read) = (values.len() / 3, Vec::new());
            column.read(from..values.len(), &mut read, |value| value);
            prop_assert_eq!(&read, &values[from..]);
            prop_assert!(column.iter().eq(values));
        }
    }
}
