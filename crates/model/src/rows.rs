//! Histogram of a record that lasts for months: 32 rows per octave, kept as runs of numbers.
//!
//! Row 0 holds the early wake-ups; below 64 ns a row is 1 ns wide, above at most 1/32 of its lower
//! edge. Each row is the union of whole [`histogram`](crate::histogram) buckets, so that nothing is
//! lost. As bytes, runs follow each other: the gap of empty rows, the length less one, the counts;
//! all of them LEB128 (DWARF 5, section 7.6). As text that is base64 without padding (RFC 4648).

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::histogram::bucket_edges;
use crate::units::Nanos;

/// Name of this numbering in documents.
pub const LAYOUT: &str = "log32";

const SUB_BITS: u32 = 5;
const SUB: u64 = 1 << SUB_BITS;

/// The row of early wake-ups.
pub const EARLY_ROW: usize = 0;

/// The number of rows: every `i64` has one.
pub const ROWS: usize = 1 + row_of_unsigned(i64::MAX as u64) + 1;

/// Maximum length of a histogram's text: a number takes at most ten bytes, and a row at most one
/// run.
pub const HIST_LIMIT: usize = ROWS * 30;

/// Row of a latency.
pub const fn row_of(latency: Nanos) -> usize {
    if latency.0 < 0 { EARLY_ROW } else { 1 + row_of_unsigned(latency.0 as u64) }
}

const fn row_of_unsigned(ns: u64) -> usize {
    let shift = (63 - (ns | SUB).leading_zeros()) - SUB_BITS;
    ((ns >> shift) + ((shift as u64) << SUB_BITS)) as usize
}

/// Half-open edges `[lower, upper)` of a row; the early row has no lower one.
pub const fn row_edges(row: usize) -> (Nanos, Nanos) {
    if row == EARLY_ROW {
        return (Nanos(i64::MIN), Nanos(0));
    }
    (Nanos(lower_edge(row - 1)), Nanos(lower_edge(row)))
}

const fn lower_edge(row: usize) -> i64 {
    let row = row as u64;
    if row < 2 * SUB {
        return row as i64;
    }
    let shift = row / SUB - 1;
    let edge = ((row % SUB + SUB) as u128) << shift;
    if edge > i64::MAX as u128 { i64::MAX } else { edge as i64 }
}

/// Row that contains a bucket of 64 per octave.
pub const fn row_of_bucket(bucket: usize) -> usize {
    row_of(bucket_edges(bucket).0)
}

/// Reason why a text or its bytes are not a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsError {
    /// Letters other than those of base64, or a text cut within one.
    Base64,
    /// An end in the middle of a number or of a run.
    Cut,
    /// A number of more than 64 bits.
    Number,
    /// A row beyond the last, or empty at an end of its run.
    Row,
    /// More samples than can be counted.
    Total,
}

impl fmt::Display for RowsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RowsError::Base64 => "not base64 without padding",
            RowsError::Cut => "cut short",
            RowsError::Number => "a number of more than 64 bits",
            RowsError::Row => "a row that does not exist",
            RowsError::Total => "more samples than can be counted",
        })
    }
}

impl std::error::Error for RowsError {}

/// The counts of a histogram's rows, as compact in memory as they are on the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RowCounts {
    /// Valid by construction.
    runs: Vec<u8>,
}

impl RowCounts {
    /// Adds up counts per row, in any order; rows may be named more than once.
    pub fn of_rows(rows: impl IntoIterator<Item = (usize, u64)>) -> RowCounts {
        let mut sums = RowSums::default();
        rows.into_iter().for_each(|(row, count)| sums.add(row, count));
        sums.counts()
    }

    /// Adds up counts per bucket of 64 per octave.
    pub fn of_buckets(buckets: impl IntoIterator<Item = (usize, u64)>) -> RowCounts {
        RowCounts::of_rows(buckets.into_iter().map(|(bucket, count)| (row_of_bucket(bucket), count)))
    }

    /// Parses and checks bytes.
    pub fn of_bytes(bytes: &[u8]) -> Result<RowCounts, RowsError> {
        let mut sums = RowSums::default();
        let mut total = 0u64;
        let mut runs = Runs::of(bytes);
        while let Some((row, count)) = runs.next_count()? {
            total = total.checked_add(count).ok_or(RowsError::Total)?;
            sums.add(row, count);
        }
        // Encoded again, so that equal histograms have equal bytes.
        Ok(sums.counts())
    }

    /// Parses the text of a document.
    pub fn of_text(text: &str) -> Result<RowCounts, RowsError> {
        if text.len() > HIST_LIMIT.div_ceil(3) * 4 {
            return Err(RowsError::Row);
        }
        RowCounts::of_bytes(&STANDARD_NO_PAD.decode(text).map_err(|_| RowsError::Base64)?)
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.runs
    }

    /// Text for a document.
    pub fn text(&self) -> String {
        STANDARD_NO_PAD.encode(&self.runs)
    }

    /// The rows that have samples, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let mut runs = Runs::of(&self.runs);
        std::iter::from_fn(move || runs.next_count().ok().flatten()).filter(|&(_, count)| count > 0)
    }

    /// The number of samples.
    pub fn total(&self) -> u64 {
        self.iter().fold(0, |sum, (_, count)| sum.saturating_add(count))
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Difference to another histogram; `None` if the other has more in a row.
    pub fn without(&self, other: &RowCounts) -> Option<RowCounts> {
        let mut left = RowSums::default();
        left.add_all(self);
        other.iter().try_for_each(|(row, count)| left.take(row, count))?;
        Some(left.counts())
    }
}

impl Serialize for RowCounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for RowCounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RowCounts, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        RowCounts::of_text(&text).map_err(serde::de::Error::custom)
    }
}

/// Sum of histograms, dense: one is enough to add up any number of them.
#[derive(Clone, Debug, Default)]
pub struct RowSums {
    rows: Vec<u64>,
}

impl RowSums {
    /// Adds samples to a row; rows beyond the last count there.
    pub fn add(&mut self, row: usize, count: u64) {
        let row = row.min(ROWS - 1);
        if count > 0 && row >= self.rows.len() {
            self.rows.resize(row + 1, 0);
        }
        if let Some(sum) = self.rows.get_mut(row) {
            *sum = sum.saturating_add(count);
        }
    }

    /// Adds a histogram.
    pub fn add_all(&mut self, counts: &RowCounts) {
        counts.iter().for_each(|(row, count)| self.add(row, count));
    }

    fn take(&mut self, row: usize, count: u64) -> Option<()> {
        let sum = self.rows.get_mut(row)?;
        *sum = sum.checked_sub(count)?;
        Some(())
    }

    /// The rows that have samples, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        self.rows.iter().copied().enumerate().filter(|&(_, count)| count > 0)
    }

    /// Compact form; a single empty row is cheaper within a run than between two.
    pub fn counts(&self) -> RowCounts {
        let mut runs = Vec::new();
        let mut next = 0;
        while let Some(gap) = self.rows[next..].iter().position(|&count| count > 0) {
            let first = next + gap;
            let rest = &self.rows[first..];
            let mut length = 1;
            while rest.get(length).is_some_and(|&count| count > 0)
                || rest.get(length + 1).is_some_and(|&count| count > 0)
            {
                length += 1;
            }
            put_number(&mut runs, gap as u64);
            put_number(&mut runs, length as u64 - 1);
            rest[..length].iter().for_each(|&count| put_number(&mut runs, count));
            next = first + length;
        }
        RowCounts { runs }
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.rows.clear();
    }
}

/// Reads runs, count by count.
struct Runs<'a> {
    rest: &'a [u8],
    row: usize,
    /// Number of counts left in this run.
    left: usize,
}

impl<'a> Runs<'a> {
    fn of(bytes: &'a [u8]) -> Runs<'a> {
        Runs { rest: bytes, row: 0, left: 0 }
    }

    fn next_count(&mut self) -> Result<Option<(usize, u64)>, RowsError> {
        if self.left == 0 {
            if self.rest.is_empty() {
                return Ok(None);
            }
            let gap = take_number(&mut self.rest)?;
            let length = take_number(&mut self.rest)?.checked_add(1).ok_or(RowsError::Row)?;
            let room = (ROWS - self.row) as u64;
            if gap > room || length > room - gap {
                return Err(RowsError::Row);
            }
            (self.row, self.left) = (self.row + gap as usize, length as usize);
        }
        let count = take_number(&mut self.rest)?;
        (self.row, self.left) = (self.row + 1, self.left - 1);
        Ok(Some((self.row - 1, count)))
    }
}

fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn take_number(from: &mut &[u8]) -> Result<u64, RowsError> {
    let mut number = 0u64;
    for at in 0..10u32 {
        let (&byte, rest) = from.split_first().ok_or(RowsError::Cut)?;
        *from = rest;
        let bits = u64::from(byte & 0x7f);
        let shifted = bits << (7 * at);
        if shifted >> (7 * at) != bits {
            return Err(RowsError::Number);
        }
        number |= shifted;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(RowsError::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{BUCKETS, bucket_of};
    use proptest::prelude::*;

    #[test]
    fn rows_are_numbered_as_the_contract_says() {
        assert_eq!([-1, 0, 1, 63, 64, 65, 66].map(|ns| row_of(Nanos(ns))), [0, 1, 2, 64, 65, 65, 66]);
        assert_eq!((row_of(Nanos(i64::MAX)), row_of(Nanos(i64::MIN))), (ROWS - 1, EARLY_ROW));
        for row in 1..ROWS - 1 {
            let (lower, upper) = row_edges(row);
            assert_eq!(upper, row_edges(row + 1).0);
            assert_eq!((row_of(lower), row_of(Nanos(upper.0 - 1))), (row, row));
            let width = upper.0 - lower.0;
            assert!(width <= 1 || width * 32 <= lower.0, "{lower:?} {upper:?}");
        }
    }

    #[test]
    fn each_row_is_the_union_of_whole_buckets() {
        for bucket in 1..BUCKETS {
            let (lower, upper) = bucket_edges(bucket);
            let row = row_of_bucket(bucket);
            assert_eq!((row_of(lower), row_of(Nanos(upper.0 - 1))), (row, row));
        }
        assert_eq!(row_of_bucket(0), EARLY_ROW);
    }

    #[test]
    fn a_known_histogram_is_these_bytes() {
        // Rows 3, 4, 6 and 200: a run with an empty row in it, a gap of 193, a run of one.
        let counts = RowCounts::of_rows([(3, 1), (4, 300), (6, 2), (200, 1)]);
        assert_eq!(counts.bytes(), [3, 3, 1, 0xac, 2, 0, 2, 0xc1, 1, 0, 1]);
        assert_eq!(counts.text(), "AwMBrAIAAsEBAAE");
        assert_eq!(serde_json::to_string(&counts).unwrap(), "\"AwMBrAIAAsEBAAE\"");
        assert_eq!((counts.total(), RowCounts::default().text().as_str()), (304, ""));
    }

    #[test]
    fn what_is_no_histogram_is_refused() {
        let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        for (bytes, wanted) in [
            (&[0x80][..], RowsError::Cut),
            (&[0, 1, 5], RowsError::Cut),
            (&[0], RowsError::Cut),
            (&[0xff; 11], RowsError::Number),
            (&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2], RowsError::Number),
            (&[0xff, 0xff, 3, 0, 1], RowsError::Row),
            (&[&[0][..], &huge].concat(), RowsError::Row),
            (&[&huge[..], &[0, 1]].concat(), RowsError::Row),
            (&[&[0, 1][..], &huge, &huge].concat(), RowsError::Total),
        ] {
            assert_eq!(RowCounts::of_bytes(bytes), Err(wanted), "{bytes:?}");
        }
        for text in ["A", "AA==", "A A", "\u{e4}\u{e4}"] {
            assert_eq!(RowCounts::of_text(text), Err(RowsError::Base64), "{text}");
        }
        assert!(RowCounts::of_text(&"A".repeat(1 << 20)).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(rows in proptest::collection::vec((0..ROWS, 0u64..1 << 40), 0..400)) {
            let counts = RowCounts::of_rows(rows.iter().copied());
            let mut sums = RowSums::default();
            rows.iter().for_each(|&(row, count)| sums.add(row, count));
            prop_assert_eq!(sums.iter().collect::<Vec<_>>(), counts.iter().collect::<Vec<_>>());
            prop_assert_eq!(counts.total(), rows.iter().map(|row| row.1).sum::<u64>());
            prop_assert_eq!(RowCounts::of_text(&counts.text()), Ok(counts.clone()));
            prop_assert!(counts.bytes().len() <= HIST_LIMIT);
        }

        #[test]
        fn damage_is_refused_or_is_another_histogram(
            rows in proptest::collection::vec((0..ROWS, 1u64..1 << 20), 1..99),
            at in 0usize..999,
            to: u8,
            cut in 0usize..999,
        ) {
            let mut bytes = RowCounts::of_rows(rows).bytes().to_vec();
            let length = bytes.len();
            bytes[at % length] = to;
            bytes.truncate(cut % (length + 1));
            if let Ok(counts) = RowCounts::of_bytes(&bytes) {
                prop_assert_eq!(RowCounts::of_bytes(counts.bytes()), Ok(counts));
            }
        }

        #[test]
        fn finer_buckets_become_rows_without_a_loss(
            samples in proptest::collection::vec(-9i64..i64::MAX, 1..99),
        ) {
            let direct = RowCounts::of_rows(samples.iter().map(|&ns| (row_of(Nanos(ns)), 1)));
            let by_buckets = RowCounts::of_buckets(samples.iter().map(|&ns| (bucket_of(Nanos(ns)), 1)));
            prop_assert_eq!(direct, by_buckets);
        }

        #[test]
        fn adding_histograms_is_counting_together(
            a in proptest::collection::vec((0..ROWS, 1u64..99), 0..99),
            b in proptest::collection::vec((0..ROWS, 1u64..99), 0..99),
        ) {
            let mut sums = RowSums::default();
            sums.add_all(&RowCounts::of_rows(a.iter().copied()));
            sums.add_all(&RowCounts::of_rows(b.iter().copied()));
            prop_assert_eq!(sums.counts(), RowCounts::of_rows(a.into_iter().chain(b)));
        }
    }
}
