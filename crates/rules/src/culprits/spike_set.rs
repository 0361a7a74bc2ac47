//! Set of the spikes that a culprit took part in, by number: a bit each, in bounded memory.

/// Limit of words: 64 consecutive spikes share one, spikes that are further apart take one each.
const WORDS: usize = 1024;

#[derive(Clone, Default)]
pub struct SpikeSet {
    /// Index of each word, and its bits; ascending.
    words: Vec<(u64, u64)>,
    last: Option<u64>,
    /// Numbers without room. Two of them may be equal after `merge`: then the count is an upper
    /// bound.
    beyond: u64,
}

impl SpikeSet {
    /// Adds a number not smaller than those before; true if it is new.
    pub fn add(&mut self, number: u64) -> bool {
        if self.last == Some(number) {
            return false;
        }
        self.last = Some(number);
        let (word, bit) = (number / 64, 1 << (number % 64));
        let room = self.words.len() < WORDS;
        match self.words.last_mut() {
            Some((last, bits)) if *last == word => *bits |= bit,
            _ if room => self.words.push((word, bit)),
            _ => self.beyond += 1,
        }
        true
    }

    /// Adds the numbers of another set, each once.
    pub fn merge(&mut self, other: &SpikeSet) {
        self.words.extend(&other.words);
        self.words.sort_unstable();
        self.words.dedup_by(|next, previous| {
            let same = next.0 == previous.0;
            previous.1 |= if same { next.1 } else { 0 };
            same
        });
        let cut = self.words.drain(WORDS.min(self.words.len())..);
        let cut: u64 = cut.map(|(_, bits)| u64::from(bits.count_ones())).sum();
        self.beyond += other.beyond + cut;
        self.last = self.last.max(other.last);
    }

    /// Number of spikes.
    pub fn count(&self) -> u64 {
        self.words.iter().map(|(_, bits)| u64::from(bits.count_ones())).sum::<u64>() + self.beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn of(numbers: impl IntoIterator<Item = u64>) -> SpikeSet {
        let mut set = SpikeSet::default();
        numbers.into_iter().for_each(|number| assert!(set.add(number)));
        set
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let sparse = of((0..3_000).map(|n| n * 64));
        assert_eq!((sparse.count(), sparse.words.len()), (3_000, WORDS));
        let mut joined = of(0..64 * 1_024);
        joined.merge(&sparse);
        assert_eq!((joined.count(), joined.words.len()), (64 * 1_024 + 3_000 - 1_024, WORDS));
    }

    proptest! {
        #[test]
        fn merged_they_are_a_set(
            a in prop::collection::btree_set(0u64..5_000, 0..200),
            b in prop::collection::btree_set(0u64..5_000, 0..200),
        ) {
            let mut joined = of(a.iter().copied());
            prop_assert_eq!(joined.count(), a.len() as u64);
            joined.merge(&of(b.iter().copied()));
            let both: BTreeSet<u64> = a.union(&b).copied().collect();
            prop_assert_eq!(joined.count(), both.len() as u64);
        }
    }
}
