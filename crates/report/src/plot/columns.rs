//! Re-binning: rows of any width become the columns of a plot, the same ones for every run, and no
//! sample is lost.
//!
//! A row is spread over the columns that it covers, in proportion, by rounding the cumulative count
//! at each edge: whole samples, the same total, and a single sample stays in one column. The first
//! and the last row are cut to the exact extremes first, so that nothing is drawn beyond the true
//! maximum.

use super::line::PlotLine;
use model::histogram::Bucket;
use model::units::Nanos;

/// Limit of the columns of a picture over time.
pub const MAX_COLUMNS: usize = 300;

/// Bins of a decade: 4.7 % of latency each, wider than a row of a histogram, whose steps would
/// otherwise show.
const BINS: usize = 50;
/// Latencies that every plot includes: 1 us to 10 ms. Others add whole decades, so that the plots
/// of two runs can be compared side by side.
pub const ALWAYS: (i64, i64) = (1_000, 10_000_000);
/// Width of the column of early samples, in bins.
const EARLY: usize = 12;

/// Columns of a plot: column `i` is `[edges[i], edges[i + 1])`.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// Edges, ascending, at least two.
    pub edges: Vec<i64>,
    /// True if the first column holds early samples.
    pub early: bool,
}

/// Decades from the lower value to the upper one, as whole powers of ten, including those that
/// every plot has.
pub fn decades(lo: i64, hi: i64) -> (i64, i64) {
    // At the end of an axis there is no room for the largest value and its name.
    let lo = 10i64.pow(lo.max(1).ilog10()).min(ALWAYS.0);
    let above = hi.max(1).saturating_add(hi.max(1) / 10);
    let hi = 10i64.checked_pow(above.ilog10() + 1).unwrap_or(i64::MAX);
    (lo, hi.max(ALWAYS.1))
}

impl Columns {
    /// Columns of equal ratio in whole decades that include two values; at least a nanosecond wide.
    pub fn of(lo: i64, hi: i64, early: bool) -> Columns {
        let (lo, hi) = decades(lo, hi);
        let mut edges = vec![lo];
        for decade in lo.ilog10().. {
            let start = 10f64.powi(decade as i32);
            for bin in 1..=BINS {
                let edge = (start * 10f64.powf(bin as f64 / BINS as f64)).round().min(hi as f64) as i64;
                if edge > edges[edges.len() - 1] {
                    edges.push(edge);
                }
            }
            if edges[edges.len() - 1] >= hi || decade > 18 {
                break;
            }
        }
        if early && lo > 1 {
            let before = lo as f64 / 10f64.powf(EARLY as f64 / BINS as f64);
            edges.insert(0, (before as i64).clamp(1, lo - 1));
        }
        Columns { edges, early: early && lo > 1 }
    }

    /// Number of columns.
    pub fn len(&self) -> usize {
        self.edges.len() - 1
    }

    /// Always false: there is at least one column.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Counts of a line's rows. Early samples go to the first column.
    pub fn count(&self, line: &PlotLine) -> Vec<u64> {
        let mut counts = vec![0u64; self.len()];
        for &row in line.rows.iter() {
            self.spread(cut(row, line), &mut counts);
        }
        counts
    }

    fn spread(&self, Bucket { lower, upper, count: n }: Bucket, counts: &mut [u64]) {
        let last = counts.len() - 1;
        if upper.0 <= 0 {
            counts[0] = counts[0].saturating_add(n);
            return;
        }
        // onbeat writes no row across zero; samples of such a row are put above it.
        let (lower, upper) = (lower.0.max(0) as u64, upper.0 as u64);
        let width = u128::from(upper.saturating_sub(lower).max(1));
        let mut given = 0u64;
        let first = self.edges.partition_point(|&edge| edge <= lower as i64).saturating_sub(1).min(last);
        for (column, count) in counts.iter_mut().enumerate().skip(first) {
            let edge = if column == last { upper } else { (self.edges[column + 1].max(0) as u64).min(upper) };
            // Cumulative and rounded: at the row's end all samples are placed. A count below 2^64
            // times a width below 2^63 fits.
            let due = (u128::from(n) * u128::from(edge.saturating_sub(lower)) + width / 2) / width;
            let due = u64::try_from(due).unwrap_or(n).min(n);
            *count = count.saturating_add(due.saturating_sub(given));
            given = given.max(due);
            if edge >= upper {
                break;
            }
        }
    }
}

/// Row cut to the exact least and largest value, if these are in it.
fn cut(Bucket { lower, upper, count }: Bucket, line: &PlotLine) -> Bucket {
    let (mut from, mut to) = (lower, upper);
    if let Some(min) = line.min.filter(|&min| lower <= min && min < upper) {
        from = min;
    }
    if let Some(max) = line.max.filter(|&max| from <= max && max < upper) {
        to = Nanos(max.0 + 1);
    }
    Bucket { lower: from, upper: to, count }
}

/// Columns for some lines between their least and their largest value.
pub fn choose(lines: &[PlotLine], lo: i64, hi: i64) -> Columns {
    Columns::of(lo, hi, lines.iter().any(|line| line.early > 0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::borrow::Cow;

    fn line(rows: &[Bucket]) -> PlotLine<'_> {
        let max = rows.last().map(|row| Nanos(row.upper.0 - 1));
        PlotLine {
            name: String::new(),
            detail: String::new(),
            rows: Cow::Borrowed(rows),
            deadline: None,
            min: rows.first().map(|row| row.lower),
            max,
            overflows: 0,
            beyond_from: None,
            early: 0,
            counted: "wake-ups",
        }
    }

    #[test]
    fn a_wide_row_is_spread_and_a_lone_sample_is_not() {
        let columns = Columns { edges: vec![0, 10, 20, 30], early: false };
        let rows = [Bucket::new(Nanos(0), Nanos(20), 10), Bucket::new(Nanos(20), Nanos(30), 1)];
        assert_eq!(columns.count(&line(&rows)), [5, 5, 1]);
        assert_eq!(columns.count(&line(&[Bucket::new(Nanos(5), Nanos(30), 1)])).iter().sum::<u64>(), 1);
    }

    #[test]
    fn two_runs_have_the_same_bins_where_both_have_any() {
        let (quiet, late) = (Columns::of(2_000, 41_000, false), Columns::of(1_500, 80_000_000, true));
        assert_eq!((quiet.edges[0], quiet.edges[quiet.len()]), ALWAYS);
        assert_eq!(quiet.len(), 4 * BINS);
        assert_eq!(late.edges[late.len()], 100_000_000);
        assert!(quiet.edges.iter().all(|edge| late.edges.contains(edge)));
        assert!(late.early && late.edges[0] < 1_000);
        assert_eq!(decades(999, 10_000_000), (100, 100_000_000));
        assert_eq!(decades(0, i64::MAX), (1, i64::MAX));
    }

    proptest! {
        #[test]
        fn no_sample_is_lost(samples in proptest::collection::vec((-9i64..i64::MAX, 0u32..62, 1u64..1_000_000), 1..60)) {
            let mut counts = model::histogram::Counts::default();
            for &(ns, shift, n) in &samples {
                counts.add(model::histogram::bucket_of(Nanos(ns >> shift)), n);
            }
            let rows = model::histogram::buckets_of(&counts, Nanos(-9));
            let line = line(&rows);
            let (lo, hi) = crate::plot::line::extent(std::slice::from_ref(&line)).unwrap();
            let total: u64 = samples.iter().map(|s| s.2).sum();
            for columns in [choose(std::slice::from_ref(&line), lo, hi), Columns::of(lo, hi, true), Columns::of(1, 2, false)] {
                prop_assert!(columns.len() < 20 * BINS);
                prop_assert!(columns.edges.windows(2).all(|pair| pair[0] < pair[1]), "{columns:?}");
                prop_assert_eq!(columns.count(&line).iter().sum::<u64>(), total);
            }
        }
    }
}
