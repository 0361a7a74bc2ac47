//! Re-binning: rows of any width become the equal columns of a plot, and no sample is lost.
//!
//! Rows are 1.6 % wide, so on a linear axis their widths differ; drawn as they are, a wide row
//! would look fuller than its narrow neighbours at the same density. So a row is spread over the
//! columns it covers, in proportion, by rounding the cumulative count at each edge: whole samples,
//! the same total, and a lone sample stays one sample in one column. The first and the last row are
//! first cut to the exact extremes, so that nothing is drawn beyond the true maximum.

use super::axis::nice_at_or_above;
use super::line::PlotLine;
use crate::words::span;
use model::histogram::{Bucket, quantile};
use model::units::Nanos;

/// No plot has more columns.
pub const MAX_COLUMNS: usize = 300;

/// The columns of a plot: column `i` is `[edges[i], edges[i + 1])`.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns {
    /// Ascending, at least two.
    pub edges: Vec<i64>,
    /// Whether the columns are equal in ratio, or in width.
    pub log: bool,
    /// Whether the first column holds what came before its time.
    pub early: bool,
}

impl Columns {
    /// Columns of equal width from 0 to the largest value, with a little room beyond it.
    ///
    /// `early` adds a first column below 0, wide enough to be seen.
    pub fn linear(hi: i64, at_least: i64, early: bool) -> Columns {
        let step = nice_at_or_above((hi as f64 / 240.0).max(at_least as f64)).max(1.0) as i64;
        let count = (hi / step).clamp(0, MAX_COLUMNS as i64 * 9 / 10) + 1;
        let room = count / 32;
        let mut edges: Vec<i64> = (0..=count + room).map(|i| i.saturating_mul(step)).collect();
        // At the end of time, the edges would be equal.
        edges.dedup();
        if early {
            edges.insert(0, -(count / 16).max(1).saturating_mul(step));
        }
        Columns { edges, log: false, early }
    }

    /// Columns of equal ratio between two positive values; where that is below a nanosecond, of
    /// one.
    pub fn log(lo: i64, hi: i64, early: bool) -> Columns {
        let (lo, hi) = (lo.max(1), hi.max(lo.max(1)).min(i64::MAX - 1));
        // Narrower than a row, columns would show the rows' edges and not the samples.
        let ratio = (hi as f64 * 1.05 / lo as f64).powf(1.0 / 240.0).max(1.016);
        let mut edges = vec![lo];
        let mut ideal = lo as f64;
        while edges.len() < MAX_COLUMNS - 1 && edges[edges.len() - 1] as f64 <= hi as f64 * 1.03 {
            let last = edges[edges.len() - 1];
            ideal = (ideal * ratio).max(last as f64 + 1.0);
            edges.push((ideal as i64).max(last.saturating_add(1)));
            if edges[edges.len() - 1] == i64::MAX {
                break;
            }
        }
        if early && lo > 1 {
            edges.insert(0, ((lo as f64 / ratio.powi(12)) as i64).clamp(1, lo - 1));
        }
        Columns { edges, log: true, early }
    }

    /// How many columns there are.
    pub fn len(&self) -> usize {
        self.edges.len() - 1
    }

    /// Never: there is always a column.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// What one column is, in words for the axis.
    pub fn words(&self) -> String {
        let last = self.edges.len() - 1;
        if self.log {
            let ratio = self.edges[last] as f64 / self.edges[last - 1] as f64;
            return format!("{:.1} % of latency", (ratio - 1.0) * 100.0);
        }
        span(Nanos(self.edges[2.min(last)] - self.edges[2.min(last) - 1]))
    }

    /// The counts of a line's rows. Early samples go to the first column.
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
        // onbeat writes no row across zero; such a row's samples are put above.
        let (lower, upper) = (lower.0.max(0) as u64, upper.0 as u64);
        let width = u128::from(upper.saturating_sub(lower).max(1));
        let mut given = 0u64;
        let first = self.edges.partition_point(|&edge| edge <= lower as i64).saturating_sub(1).min(last);
        for (column, count) in counts.iter_mut().enumerate().skip(first) {
            let edge = if column == last { upper } else { (self.edges[column + 1].max(0) as u64).min(upper) };
            // Cumulative and rounded: what is given up to the row's end is all of it. A count below
            // 2^64 times a width below 2^63 fits.
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

/// A row cut to the exact least and largest value, where these lie in it.
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

/// The columns that show the lines best: linear while that shows the bulk, else logarithmic.
///
/// With the largest value far beyond the bulk, a linear axis would press everything else into a few
/// columns at the left.
pub fn choose(lines: &[PlotLine], lo: i64, hi: i64) -> Columns {
    let bulk = lines.iter().filter_map(|line| bulk_end(line)).max().unwrap_or(hi);
    let early = lines.iter().any(|line| line.early > 0);
    if hi / bulk.max(1) < 20 {
        let finest =
            |line: &PlotLine| line.rows.iter().map(|row| row.upper.0.saturating_sub(row.lower.0)).min();
        return Columns::linear(hi, lines.iter().filter_map(finest).max().unwrap_or(1), early);
    }
    // A little room on the left: samples below the scale would be put into its first column.
    Columns::log((lo as f64 / 1.15) as i64, hi, early)
}

/// Where a line's bulk ends: nine samples of ten lie before.
fn bulk_end(line: &PlotLine) -> Option<i64> {
    quantile(&line.rows, None, 900_000).map(|end| end.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
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
        }
    }

    #[test]
    fn a_wide_row_is_spread_and_a_lone_sample_is_not() {
        let columns = Columns { edges: vec![0, 10, 20, 30], log: false, early: false };
        let rows = [Bucket::new(Nanos(0), Nanos(20), 10), Bucket::new(Nanos(20), Nanos(30), 1)];
        assert_eq!(columns.count(&line(&rows)), [5, 5, 1]);
        assert_eq!(columns.count(&line(&[Bucket::new(Nanos(5), Nanos(30), 1)])).iter().sum::<u64>(), 1);
    }

    #[test]
    fn quiet_runs_are_linear_and_spiky_ones_logarithmic() {
        for (sample, log) in [(fixture::quiet(), false), (fixture::noisy(), true), (fixture::spike(), true)] {
            let lines = crate::plot::line::of_run(&sample.run);
            let (lo, hi) = crate::plot::line::extent(&lines).unwrap();
            assert_eq!(choose(&lines, lo, hi).log, log, "{}", sample.title);
        }
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
            for columns in [choose(std::slice::from_ref(&line), lo, hi), Columns::linear(hi, 1, true), Columns::log(lo, hi, true), Columns::log(1, 2, false)] {
                prop_assert!(columns.len() < MAX_COLUMNS);
                prop_assert!(columns.edges.windows(2).all(|pair| pair[0] < pair[1]), "{columns:?}");
                prop_assert_eq!(columns.count(&line).iter().sum::<u64>(), total);
            }
        }
    }
}
