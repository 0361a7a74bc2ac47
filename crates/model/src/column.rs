//! Millions of integers in the space of their differences.

/// Numbers of a part, each part with its own minimum.
const PART: usize = 1 << 12;

/// A part that is full: its smallest number, and what the others are beyond it.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Same(i64),
    Short(i64, Box<[u16]>),
    Middle(i64, Box<[u32]>),
    Long(Box<[i64]>),
}

impl Part {
    fn of(values: &[i64]) -> Part {
        let least = values.iter().copied().min().unwrap_or(0);
        let beyond = |value: &i64| value.wrapping_sub(least) as u64;
        match values.iter().map(beyond).max().unwrap_or(0) {
            0 => Part::Same(least),
            most if most <= u64::from(u16::MAX) => {
                Part::Short(least, values.iter().map(|value| beyond(value) as u16).collect())
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
            Part::Short(least, beyond) => least.wrapping_add(i64::from(beyond[at])),
            Part::Middle(least, beyond) => least.wrapping_add(i64::from(beyond[at])),
            Part::Long(values) => values[at],
        }
    }
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

    /// How many there are.
    pub fn len(&self) -> usize {
        self.full.len() * PART + self.open.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number at a place that there is.
    #[inline]
    pub fn get(&self, at: usize) -> i64 {
        self.full.get(at / PART).map_or_else(|| self.open[at % PART], |part| part.get(at % PART))
    }

    /// All of them, in order.
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
        assert!(matches!(of(&[-5, 65_530]), Part::Short(-5, _)));
        assert!(matches!(of(&[i64::MIN, i64::MIN + 65_536]), Part::Middle(..)));
        assert!(matches!(of(&[i64::MIN, i64::MAX]), Part::Long(_)));
    }

    proptest! {
        #[test]
        fn values_are_returned_as_pushed(seeds in proptest::collection::vec((any::<i64>(), 0u32..64), 1..6)) {
            let values: Vec<i64> =
                seeds.iter().flat_map(|&(base, bits)| (0..3_000i64).map(move |n| base ^ (n.wrapping_mul(n) << bits))).collect();
            let mut column = Column::default();
            values.iter().for_each(|&value| column.push(value));
            prop_assert_eq!(column.len(), values.len());
            prop_assert!(column.iter().eq(values));
        }
    }
}
