//! From when on a wake-up is a spike, where the user does not say. Pure.

use crate::stats::histogram::edges_of;
use crate::units::Nanos;

/// Rows and counts of a round's wake-ups, of all CPUs, as blocks hold them.
pub type Rows = Vec<(usize, u64)>;

/// Adds a block's rows; sorted by row.
pub fn add(rows: &mut Rows, block: &[(usize, u64)]) {
    for &(row, count) in block {
        match rows.binary_search_by_key(&row, |&(row, _)| row) {
            Ok(at) => rows[at].1 += count,
            Err(at) => rows.insert(at, (row, count)),
        }
    }
}

/// The upper edge of the row that holds the wake-up of that rank, counted per thousand from below.
pub fn quantile(rows: &Rows, per_mille: u64) -> Option<Nanos> {
    let total: u64 = rows.iter().map(|row| row.1).sum();
    let rank = (total * per_mille).div_ceil(1_000).max(1);
    let mut below = 0;
    rows.iter()
        .find(|row| {
            below += row.1;
            below >= rank
        })
        .map(|&(row, _)| edges_of(row).1)
}

/// One wake-up in two hundred was later, and twice the median: enough spikes to learn from, not all there is.
///
/// In nanoseconds, rounded up to two digits, with the reason for people; without any wake-up 100 us.
pub fn automatic(rows: &Rows) -> (Nanos, String) {
    let (Some(median), Some(late)) = (quantile(rows, 500), quantile(rows, 995)) else {
        return (Nanos(100_000), "100 us, because the first wake-ups told nothing".to_owned());
    };
    let wanted = late.max(Nanos(2 * median.0)).max(Nanos(1_000));
    let unit = 10i64.pow(wanted.0.ilog10() - 1);
    let over = Nanos((wanted.0 + unit - 1) / unit * unit);
    let count: u64 = rows.iter().map(|row| row.1).sum();
    let of = match late.0 >= 2 * median.0 {
        true => "one in 200 was later",
        false => "twice their median",
    };
    (over, format!("from {count} wake-ups with events armed before the run: {of}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::histogram::row_of;

    fn rows(latencies: &[(i64, u64)]) -> Rows {
        let mut rows = Rows::new();
        latencies.iter().for_each(|&(ns, count)| add(&mut rows, &[(row_of(Nanos(ns)), count)]));
        rows
    }

    #[test]
    fn it_is_the_late_ones_or_twice_the_median() {
        let (over, why) = automatic(&rows(&[(5_000, 990), (80_000, 10)]));
        assert!(over.0 >= 80_000 && over.0 <= 82_000 && why.contains("one in 200"), "{over} {why}");
        let (over, why) = automatic(&rows(&[(5_000, 1_000)]));
        assert!(over.0 >= 10_000 && over.0 <= 11_000 && why.contains("twice"), "{over} {why}");
        assert_eq!(automatic(&Rows::new()).0, Nanos(100_000));
    }

    #[test]
    fn quantiles_are_nearest_rank() {
        let rows = rows(&[(300, 1), (100, 1), (200, 2)]);
        assert_eq!(quantile(&rows, 500), Some(edges_of(row_of(Nanos(200))).1));
        assert_eq!(quantile(&rows, 1_000), Some(edges_of(row_of(Nanos(300))).1));
        assert_eq!(quantile(&rows, 0), Some(edges_of(row_of(Nanos(100))).1));
        assert_eq!(quantile(&Rows::new(), 500), None);
    }
}
