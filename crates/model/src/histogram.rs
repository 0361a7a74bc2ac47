//! The log-linear histogram: 64 rows per octave of nanoseconds, no overflow, no lost value.
//!
//! A row's index follows from the leading zeros and a shift, the same on every architecture. Below
//! 128 ns a row is 1 ns wide, above at most 1/64 (1.57 %) of its lower edge. Row 0 holds the early
//! wake-ups, whatever their size.

use crate::units::Nanos;

const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;

/// The row of early wake-ups (negative latencies).
pub const EARLY_ROW: usize = 0;

/// The number of rows: every non-negative `i64` has one.
pub const ROWS: usize = 1 + row_of_unsigned(i64::MAX as u64) + 1;

/// The row of a latency.
#[inline(always)]
pub const fn row_of(latency: Nanos) -> usize {
    if latency.0 < 0 { EARLY_ROW } else { 1 + row_of_unsigned(latency.0 as u64) }
}

#[inline(always)]
const fn row_of_unsigned(ns: u64) -> usize {
    // Or-ing SUB makes the small values, which are their own row, take the same path: no branch.
    let shift = (63 - (ns | SUB).leading_zeros()) - SUB_BITS;
    ((ns >> shift) + ((shift as u64) << SUB_BITS)) as usize
}

/// The half-open edges `[lower, upper)` of a row.
///
/// The early row's lower edge is not fixed: [`fill_rows`] puts the minimum there.
pub const fn edges_of(row: usize) -> (Nanos, Nanos) {
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

/// One non-empty row as it is kept and shown: `[lower, upper)` and how many samples fell into it.
pub type Row = (Nanos, Nanos, u64);

/// A dense histogram: a count per row up to the highest that was needed.
#[derive(Clone, Default)]
pub struct Counts {
    rows: Vec<u64>,
    /// No row before this one was ever needed.
    first: usize,
}

impl Counts {
    /// Adds samples to a row.
    pub fn add(&mut self, row: usize, count: u64) {
        if self.rows.is_empty() {
            self.first = row;
        }
        if row >= self.rows.len() {
            self.rows.resize(row + 1, 0);
        }
        self.first = self.first.min(row);
        self.rows[row] += count;
    }

    /// The count of a row.
    pub fn get(&self, row: usize) -> u64 {
        self.rows.get(row).copied().unwrap_or(0)
    }

    /// How many samples lie in rows whose lower edge is at or above the level; exact where the level is a row's edge.
    pub fn at_or_above(&self, level: Nanos) -> u64 {
        self.rows.iter().skip(row_of(level)).sum()
    }
}

/// The non-empty rows of the sum of histograms, in ascending order, put into a list that is used again;
/// `min` becomes the lower edge of the early row.
pub fn fill_rows(into: &mut Vec<Row>, histograms: &[&Counts], min: Nanos) {
    into.clear();
    let rows = histograms.iter().map(|counts| counts.rows.len()).max().unwrap_or(0);
    let first = histograms.iter().filter(|counts| !counts.rows.is_empty()).map(|counts| counts.first).min();
    for row in first.unwrap_or(0)..rows {
        let count: u64 = histograms.iter().map(|counts| counts.get(row)).sum();
        if count > 0 {
            let (lower, upper) = edges_of(row);
            into.push((if row == EARLY_ROW { min } else { lower }, upper, count));
        }
    }
}

/// The non-empty rows of one histogram, see [`fill_rows`].
pub fn rows_of(counts: &Counts, min: Nanos) -> Vec<Row> {
    let mut rows = Vec::new();
    fill_rows(&mut rows, &[counts], min);
    rows
}

/// The lowest edge of a row at or above the span: levels on edges can be counted exactly from rows.
pub fn edge_at_or_above(span: Nanos) -> Nanos {
    let (lower, upper) = edges_of(row_of(span));
    if lower == span { lower } else { upper }
}

/// How many of the rows' samples there are.
pub fn total_of(rows: &[Row]) -> u64 {
    rows.iter().map(|row| row.2).sum()
}

/// The nearest-rank quantile, given as the upper edge of its row, or as the largest sample where that is known and less;
/// `None` without samples.
///
/// `per_million` is the quantile: 999 900 for p99.99. The rank is the smallest whole number that is
/// at least n * q, and at least one (Hyndman and Fan 1996, definition 1).
pub fn quantile(rows: &[Row], max: Option<Nanos>, per_million: u64) -> Option<Nanos> {
    let total = u128::from(total_of(rows));
    let rank = (total * u128::from(per_million)).div_ceil(1_000_000).max(1);
    let mut seen = 0u128;
    rows.iter().find_map(|&(_, upper, n)| {
        seen += u128::from(n);
        (seen >= rank).then_some(max.map_or(upper, |max| upper.min(max)))
    })
}

/// As [`quantile`], of rows and of samples that lie beyond them: None where its rank is among those.
pub fn quantile_below(rows: &[Row], beyond: u64, per_million: u64) -> Option<Nanos> {
    let mut all = rows.to_vec();
    let end = rows.last().map_or(Nanos(0), |row| row.1);
    all.push((end, Nanos(i64::MAX), beyond));
    quantile(&all, None, per_million).filter(|&edge| edge < Nanos(i64::MAX))
}

/// Adds two histograms row by row; rows with the same upper edge are the same row (the lower edge of the
/// early row is its minimum). None where a count leaves its range.
pub fn merge(a: &[Row], b: &[Row]) -> Option<Vec<Row>> {
    let mut rows: Vec<Row> = a.iter().chain(b).copied().collect();
    rows.sort_by_key(|row| row.1);
    let mut merged: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        match merged.last_mut() {
            Some(last) if last.1 == row.1 => {
                last.0 = last.0.min(row.0);
                last.2 = last.2.checked_add(row.2)?;
            }
            _ => merged.push(row),
        }
    }
    Some(merged)
}

/// The mean, rounded half away from zero. `count` must not be 0.
pub fn mean(sum: i128, count: u64) -> Nanos {
    let (count, half) = (i128::from(count), i128::from(count / 2));
    Nanos(((sum + if sum < 0 { -half } else { half }) / count) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_row_begins_where_the_last_one_ended() {
        for row in 1..ROWS - 1 {
            assert_eq!(edges_of(row).1, edges_of(row + 1).0);
            assert_eq!(row_of(edges_of(row).0), row);
            assert_eq!(row_of(Nanos(edges_of(row).1.0 - 1)), row);
        }
        assert_eq!(row_of(Nanos(i64::MAX)), ROWS - 1);
        assert_eq!(row_of(Nanos(-1)), EARLY_ROW);
    }

    #[test]
    fn rows_are_at_most_one_nanosecond_or_16_permille_wide() {
        for row in 1..ROWS {
            let (lower, upper) = edges_of(row);
            let width = upper.0 - lower.0;
            assert!(width <= 1 || (width as f64) <= 0.016 * lower.0 as f64, "{lower:?} {upper:?}");
        }
    }

    #[test]
    fn means_round_to_the_nearest() {
        assert_eq!((mean(5, 2), mean(-5, 2), mean(4, 3)), (Nanos(3), Nanos(-3), Nanos(1)));
    }

    proptest! {
        #[test]
        fn merging_is_counting_together(
            a in proptest::collection::vec(-9i64..9_000, 1..50), b in proptest::collection::vec(-9i64..9_000, 1..50),
        ) {
            let rows = |samples: &[i64]| {
                let mut counts = Counts::default();
                samples.iter().for_each(|&ns| counts.add(row_of(Nanos(ns)), 1));
                rows_of(&counts, Nanos(*samples.iter().min().expect("not empty")))
            };
            let both: Vec<i64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(merge(&rows(&a), &rows(&b)), Some(rows(&both)));
        }

        #[test]
        fn quantiles_agree_with_sorting(
            samples in proptest::collection::vec(-50i64..20_000_000, 1..300),
            per_million in 0u64..=1_000_000,
        ) {
            let mut counts = Counts::default();
            for &ns in &samples {
                counts.add(row_of(Nanos(ns)), 1);
            }
            let mut sorted = samples.clone();
            sorted.sort_unstable();
            let rows = rows_of(&counts, Nanos(sorted[0]));
            prop_assert_eq!(total_of(&rows), samples.len() as u64);
            let rank = ((samples.len() as u128 * per_million as u128).div_ceil(1_000_000) as usize).max(1);
            let exact = Nanos(sorted[rank - 1]);
            let edge = edges_of(row_of(exact)).1;
            prop_assert_eq!(quantile(&rows, None, per_million), Some(edge));
            let max = Nanos(sorted[sorted.len() - 1]);
            prop_assert_eq!(quantile(&rows, Some(max), per_million), Some(edge.min(max)));
            prop_assert!(quantile(&rows, Some(max), per_million) >= Some(Nanos(sorted[0])));
        }

        #[test]
        fn quantiles_of_a_cut_histogram_are_those_of_the_whole_or_none(
            samples in proptest::collection::vec(0i64..200, 2..100), per_million in 0u64..=1_000_000, end in 1i64..200,
        ) {
            let rows_of = |samples: &[i64]| {
                let mut rows: Vec<Row> = Vec::new();
                for &ns in samples {
                    match rows.last_mut() {
                        Some(row) if row.0.0 == ns => row.2 += 1,
                        _ => rows.push((Nanos(ns), Nanos(ns + 1), 1)),
                    }
                }
                rows
            };
            let mut sorted = samples;
            sorted.sort_unstable();
            let held = sorted.partition_point(|&ns| ns < end);
            let beyond = (sorted.len() - held) as u64;
            let whole = quantile(&rows_of(&sorted), None, per_million);
            let cut = quantile_below(&rows_of(&sorted[..held]), beyond, per_million);
            prop_assert_eq!(cut, whole.filter(|&edge| edge.0 <= end));
        }

        #[test]
        fn levels_on_edges_count_exactly(samples in proptest::collection::vec(0i64..2_000_000, 0..200), span in 0i64..2_000_000) {
            let level = edge_at_or_above(Nanos(span));
            prop_assert!(level >= Nanos(span));
            let mut counts = Counts::default();
            for &ns in &samples {
                counts.add(row_of(Nanos(ns)), 1);
            }
            prop_assert_eq!(counts.at_or_above(level), samples.iter().filter(|&&ns| ns >= level.0).count() as u64);
        }
    }
}
