//! `tail`: the blocks since the last checkpoint, in full, so that a killed run loses none of them.
//!
//! Binary, because it is written every second and read only after a kill: 64-bit little-endian
//! words, each record its length in words, then the fields of [`Tail`] in order, then the sum of
//! them all. A record that was cut short or damaged ends the file.

use model::units::{Cpu, Nanos};

/// A block with all data that a checkpoint would have added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    pub cpu: Cpu,
    /// CLOCK_MONOTONIC of the block's start.
    pub start: Nanos,
    /// CLOCK_MONOTONIC of its end.
    pub end: Nanos,
    /// CLOCK_REALTIME minus CLOCK_MONOTONIC.
    pub wall_offset: Nanos,
    /// Sum of the latencies.
    pub sum: i64,
    /// The least latency; meaningless in a block without wake-ups.
    pub min: Nanos,
    pub missed: u64,
    /// Numbers of the histogram's rows, with their wake-ups.
    pub rows: Vec<(usize, u64)>,
    /// Numbers of rows, with the missed slots of that lateness.
    pub missed_rows: Vec<(usize, u64)>,
    /// Latency, cycle and time of the worst, largest first.
    pub worst: Vec<(Nanos, u64, Nanos)>,
}

/// Maximum length of a record: two full histograms and the other fields.
const WORDS_LIMIT: usize = 1 << 15;

impl Tail {
    pub fn encode(&self, into: &mut Vec<u8>) {
        let begin = into.len();
        let mut sum = 0u64;
        let mut put = |word: u64| {
            sum = sum.wrapping_add(word);
            into.extend_from_slice(&word.to_le_bytes());
        };
        put(0);
        for word in [self.start.0, self.end.0, self.wall_offset.0, self.sum, self.min.0] {
            put(word as u64);
        }
        put(u64::from(self.cpu.0));
        put(self.missed);
        for rows in [&self.rows, &self.missed_rows] {
            put(rows.len() as u64);
            rows.iter().for_each(|&(row, count)| {
                put(row as u64);
                put(count);
            });
        }
        put(self.worst.len() as u64);
        self.worst.iter().for_each(|&(latency, cycle, time)| {
            put(latency.0 as u64);
            put(cycle);
            put(time.0 as u64);
        });
        into.extend_from_slice(&sum.to_le_bytes());
        let words = ((into.len() - begin) / 8) as u64;
        into[begin..begin + 8].copy_from_slice(&words.to_le_bytes());
    }

    /// Takes the first record off the bytes; `None` at their end, or if a record is incomplete.
    pub fn decode(bytes: &mut &[u8]) -> Option<Tail> {
        let length = usize::try_from(word_at(bytes, 0)?).ok().filter(|&words| words <= WORDS_LIMIT)?;
        let record = bytes.get(8..length.checked_mul(8)?)?;
        let (fields, sum) = record.split_at_checked(record.len().checked_sub(8)?)?;
        let words: Vec<u64> = fields.chunks_exact(8).filter_map(|word| word_at(word, 0)).collect();
        if words.iter().fold(0, |sum: u64, &word| sum.wrapping_add(word)) != word_at(sum, 0)? {
            return None;
        }
        *bytes = bytes.get(length * 8..)?;
        let mut words = words.into_iter();
        let mut next = || words.next();
        Some(Tail {
            start: Nanos(next()? as i64),
            end: Nanos(next()? as i64),
            wall_offset: Nanos(next()? as i64),
            sum: next()? as i64,
            min: Nanos(next()? as i64),
            cpu: Cpu::try_from(u32::try_from(next()?).ok()?).ok()?,
            missed: next()?,
            rows: pairs(&mut next)?,
            missed_rows: pairs(&mut next)?,
            worst: {
                let count = next()?.min(WORDS_LIMIT as u64);
                let mut three = || Some((Nanos(next()? as i64), next()?, Nanos(next()? as i64)));
                (0..count).map(|_| three()).collect::<Option<_>>()?
            },
        })
    }
}

fn pairs(next: &mut impl FnMut() -> Option<u64>) -> Option<Vec<(usize, u64)>> {
    let count = next()?.min(WORDS_LIMIT as u64);
    (0..count).map(|_| Some((usize::try_from(next()?).ok()?, next()?))).collect()
}

fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tail() -> Tail {
        Tail {
            cpu: Cpu(3),
            start: Nanos(10),
            end: Nanos(20),
            wall_offset: Nanos(-5),
            sum: -7,
            min: Nanos(-9),
            missed: 1,
            rows: vec![(0, 1), (500, 8)],
            missed_rows: vec![(400, 1)],
            worst: vec![(Nanos(99), 4, Nanos(18)), (Nanos(7), 2, Nanos(12))],
        }
    }

    #[test]
    fn no_cpu_of_a_record_is_beyond_those_that_linux_has() {
        let of = |cpu| {
            let mut bytes = Vec::new();
            Tail { cpu: Cpu(cpu), ..tail() }.encode(&mut bytes);
            Tail::decode(&mut &bytes[..]).map(|tail| tail.cpu)
        };
        assert_eq!((of(8_191), of(8_192), of(99_999_999)), (Some(Cpu(8_191)), None, None));
    }

    #[test]
    fn records_come_back_one_by_one() {
        let mut bytes = Vec::new();
        tail().encode(&mut bytes);
        Tail::default().encode(&mut bytes);
        let mut rest = &bytes[..];
        assert_eq!(Tail::decode(&mut rest), Some(tail()));
        assert_eq!(Tail::decode(&mut rest), Some(Tail::default()));
        assert_eq!(Tail::decode(&mut rest), None);
    }

    #[test]
    fn a_record_cut_anywhere_ends_the_file() {
        let mut bytes = Vec::new();
        tail().encode(&mut bytes);
        for length in 0..bytes.len() {
            assert_eq!(Tail::decode(&mut &bytes[..length]), None, "{length}");
        }
    }

    #[test]
    fn a_damaged_record_is_noticed() {
        let mut bytes = Vec::new();
        tail().encode(&mut bytes);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert_eq!(Tail::decode(&mut &damaged[..]), None, "{at}");
        }
    }

    proptest! {
        #[test]
        fn decoding_is_total(bytes in proptest::collection::vec(any::<u8>(), 0..600), words in 0u64..80) {
            let mut bytes = bytes;
            if bytes.len() >= 8 {
                bytes[..8].copy_from_slice(&words.to_le_bytes());
            }
            let _ = Tail::decode(&mut &bytes[..]);
        }
    }
}
