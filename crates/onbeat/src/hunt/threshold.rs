//! Automatic latency threshold of a spike, if the user gives none. Pure.

use model::histogram::{self, Counts, fill_buckets, total_of};
use model::text::several;
use model::units::Nanos;

/// Factor from which the 99.5 % quantile counts as far above the 90 % quantile.
const FAR: i64 = 8;

/// Nearest-rank quantile of counted wake-ups, upper edge of its row; per million as in
/// [`histogram::quantile`].
pub fn quantile(counts: &Counts, per_million: u64) -> Option<Nanos> {
    let mut rows = Vec::new();
    fill_buckets(&mut rows, &[counts], Nanos(0));
    histogram::quantile(&rows, None, per_million)
}

/// Error of the median of these wake-ups by chance: half its 95 % interval by order statistics.
pub fn median_noise(counts: &Counts) -> Option<Nanos> {
    let mut rows = Vec::new();
    fill_buckets(&mut rows, &[counts], Nanos(0));
    let spread = (980_000.0 / (total_of(&rows) as f64).sqrt()).min(499_999.0) as u64;
    let at = |per_million| histogram::quantile(&rows, None, per_million);
    let (low, high) = (at(500_000 - spread)?, at(500_000 + spread)?);
    Some(Nanos((high.0 - low.0 + 1) / 2))
}

/// The latency that one wake-up in two hundred exceeded, and at least twice the median. If it is
/// far above the latest of 90 %, one cause delays more than one in two hundred, and a threshold
/// above that cause would omit it: the threshold is the geometric mean of both.
///
/// In nanoseconds, rounded up to two digits, with the reason as a sentence; 100 us without any
/// wake-up.
pub fn automatic(counts: &Counts) -> (Nanos, String) {
    let [median, most, late] = [500_000, 900_000, 995_000].map(|per_million| quantile(counts, per_million));
    let (Some(median), Some(most), Some(late)) = (median, most, late) else {
        return (Nanos(100_000), "100 us, because no first wake-up was recorded".to_owned());
    };
    let is_apart = late.0 / FAR >= most.0.max(1);
    let late = if is_apart { Nanos((late.0 as f64 * most.0.max(1) as f64).sqrt() as i64) } else { late };
    let wanted = late.max(Nanos(2 * median.0)).max(Nanos(1_000));
    let unit = 10i64.pow(wanted.0.ilog10() - 1);
    let over = Nanos((wanted.0 + unit - 1) / unit * unit);
    let mut rows = Vec::new();
    fill_buckets(&mut rows, &[counts], Nanos(0));
    let count = several(total_of(&rows), "wake-up", "wake-ups");
    let of = if late.0 < 2 * median.0 {
        "twice their median"
    } else if is_apart {
        "between the 90 % and 99.5 % quantiles, which are far apart"
    } else {
        "one in 200 was later"
    };
    (over, format!("from {count} with events armed before the run: {of}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::histogram::{bucket_edges, bucket_of};

    fn counts(latencies: &[(i64, u64)]) -> Counts {
        let mut counts = Counts::default();
        latencies.iter().for_each(|&(ns, count)| counts.add(bucket_of(Nanos(ns)), count));
        counts
    }

    #[test]
    fn the_median_of_more_wake_ups_is_less_noisy() {
        let spread = |count: i64| (0..count).map(|n| (1_000 + 10_000 * n / count, 1)).collect::<Vec<_>>();
        let noise = |count| median_noise(&counts(&spread(count))).expect("wake-ups").0;
        assert!((900..=1_100).contains(&noise(100)), "{}", noise(100));
        assert!((80..=150).contains(&noise(10_000)), "{}", noise(10_000));
        assert_eq!(median_noise(&Counts::default()), None);
    }

    #[test]
    fn it_is_the_late_ones_or_twice_the_median() {
        let (over, why) = automatic(&counts(&[(5_000, 850), (20_000, 140), (80_000, 10)]));
        assert!(over.0 >= 80_000 && over.0 <= 82_000 && why.contains("one in 200"), "{over} {why}");
        let (over, why) = automatic(&counts(&[(5_000, 1_000)]));
        assert!(over.0 >= 10_000 && over.0 <= 11_000 && why.contains("twice"), "{over} {why}");
        assert_eq!(automatic(&Counts::default()).0, Nanos(100_000));
    }

    #[test]
    fn a_cause_of_many_late_ones_is_above_it() {
        let (over, why) = automatic(&counts(&[(60_000, 900), (100_000, 70), (2_500_000, 30)]));
        assert!((400_000..600_000).contains(&over.0) && why.contains("far apart"), "{over} {why}");
    }

    #[test]
    fn quantiles_are_nearest_rank() {
        let counts = counts(&[(300, 1), (100, 1), (200, 2)]);
        assert_eq!(quantile(&counts, 500_000), Some(bucket_edges(bucket_of(Nanos(200))).1));
        assert_eq!(quantile(&counts, 1_000_000), Some(bucket_edges(bucket_of(Nanos(300))).1));
        assert_eq!(quantile(&counts, 0), Some(bucket_edges(bucket_of(Nanos(100))).1));
        assert_eq!(quantile(&Counts::default(), 500_000), None);
    }
}
