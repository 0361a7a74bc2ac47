//! Time differences between events that are more frequent than by chance.
//!
//! The pair-difference histogram, in astronomy and geology the two-point correlation of a point
//! process: under events that fall independently and evenly into a span T, the number of pairs
//! whose difference lies in a bin of width w at lag tau is Poisson with mean N(N-1) w (T - tau) /
//! T^2. Bins of four widths overlap by half; the level of the test is shared evenly by the widths
//! and, within one, by all its bins (Bonferroni).
//!
//! If the density of differences near the lag is above that mean, it replaces the mean:
//! events that are merely more frequent for some time are not periodic.

use crate::law;

/// Number of bins of one width that are skipped at lag zero, for the rest of declustered bursts.
const SKIPPED_BINS: i64 = 6;
/// The minimum number of pairs in the surroundings of a lag, if pairs were spread evenly.
const SURROUNDING_PAIRS: f64 = 40.0;
/// Widths above the finest are tried while an event has at most this many others in a bin: pair
/// counts in wider ones vary more than Poisson counts, because the pairs at both ends of the span
/// weigh less.
const CROWDED: f64 = 0.2;

/// A lag that is more frequent than chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lag {
    /// The mean of the differences in the bin, ns.
    pub lag_ns: f64,
    /// The width of the bin, ns.
    pub width_ns: i64,
    /// Number of pairs that differ by it.
    pub pairs: usize,
    /// Number expected by chance.
    pub expected: f64,
    /// Probability of this number of pairs by chance in any bin, at most 1.
    pub p: f64,
    /// The logarithm of the likelihood ratio of the count against chance.
    pub strength: f64,
}

/// All differences between sorted times, up to the longest and in ascending order, ns.
pub fn pair_lags(sorted: &[i64], longest: i64) -> Vec<i64> {
    let mut lags = Vec::new();
    for (i, &early) in sorted.iter().enumerate() {
        lags.extend(sorted[i + 1..].iter().map(|&late| late - early).take_while(|&lag| lag <= longest));
    }
    lags.sort_unstable();
    lags
}

/// Finest bin, ns: a whole number of time stamp steps, so that lags on a lattice fill bins evenly.
pub fn finest_width(resolution_ns: i64) -> i64 {
    const HALF_MILLI: i64 = 500_000;
    let step = resolution_ns.clamp(1, i64::MAX / 16);
    2 * step * ((HALF_MILLI + step - 1) / step)
}

/// The lags up to `longest` that are more frequent than chance at this level, one per peak and
/// width.
///
/// `lags` are the sorted differences of `n` events in a span of `span_ns`, see [`pair_lags`].
pub fn significant(
    lags: &[i64],
    n: usize,
    span_ns: i64,
    longest: i64,
    resolution_ns: i64,
    alpha: f64,
) -> Vec<Lag> {
    let finest = finest_width(resolution_ns);
    let useful = |&w: &i64| {
        let crowded = n as f64 * w as f64 / span_ns as f64 > CROWDED;
        w <= longest / (2 * SKIPPED_BINS) && (w == finest || !crowded)
    };
    let widths: Vec<i64> =
        [1i64, 10, 100, 1000].iter().map(|&by| finest.saturating_mul(by)).filter(useful).collect();
    let share = alpha / widths.len().max(1) as f64;
    let scan = |&width: &i64| {
        let bins = 2.0 * (longest / width - SKIPPED_BINS) as f64;
        Scan { lags, pairs: n as f64 * (n as f64 - 1.0), span: span_ns as f64, longest, width, bins }
            .peaks(resolution_ns / 2, share / bins)
    };
    let mut found: Vec<Lag> = widths.iter().flat_map(scan).collect();
    for lag in &mut found {
        lag.p = (lag.p * widths.len() as f64).min(1.0);
    }
    found
}

/// One pass over the differences with bins of one width.
struct Scan<'a> {
    lags: &'a [i64],
    pairs: f64,
    span: f64,
    longest: i64,
    width: i64,
    bins: f64,
}

impl Scan<'_> {
    fn peaks(&self, round: i64, level: f64) -> Vec<Lag> {
        let half = self.width / 2;
        let mut critical = Critical { level, known: Vec::new() };
        let mut peaks: Vec<(i64, Lag)> = Vec::new();
        let mut from = self.lags.partition_point(|&lag| (lag + round) / half < 2 * SKIPPED_BINS);
        while from < self.lags.len() {
            let bin = (self.lags[from] + round) / half;
            if (bin + 2) * half > self.longest {
                break;
            }
            let next = self.end_of(from, (bin + 1) * half - round);
            let to = self.end_of(next, (bin + 2) * half - round);
            if let Some(lag) = self.test(from, to, &mut critical) {
                match peaks.last_mut() {
                    Some((last, peak)) if bin - *last <= 2 => {
                        *last = bin;
                        if lag.strength > peak.strength {
                            *peak = lag;
                        }
                    }
                    _ => peaks.push((bin, lag)),
                }
            }
            from = next;
        }
        let with_p = |(_, lag): (i64, Lag)| Lag {
            p: law::poisson_at_least(lag.pairs as u64, lag.expected) * self.bins,
            ..lag
        };
        peaks.into_iter().map(with_p).collect()
    }

    /// The first difference at or above the edge; bins hold few, so a walk is faster than a search.
    fn end_of(&self, from: usize, edge: i64) -> usize {
        from + self.lags[from..].iter().take_while(|&&lag| lag < edge).count()
    }

    /// Tests the bin that holds the differences `from..to`.
    fn test(&self, from: usize, to: usize, critical: &mut Critical) -> Option<Lag> {
        let pairs = to - from;
        let lag = self.lags[from] as f64;
        let by_chance = self.pairs * self.width as f64 * (self.span - lag).max(0.0) / (self.span * self.span);
        if pairs < critical.count(by_chance) {
            return None;
        }
        let inside = &self.lags[from..to];
        let origin = inside[0];
        let mean =
            origin as f64 + inside.iter().map(|&lag| (lag - origin) as f64).sum::<f64>() / pairs as f64;
        let expected = by_chance.max(self.surroundings(mean));
        if pairs < critical.count(expected) {
            return None;
        }
        let k = pairs as f64;
        let strength = k * (k / expected).ln() - (k - expected);
        Some(Lag { lag_ns: mean, width_ns: self.width, pairs, expected, p: 1.0, strength })
    }

    /// Mean of a bin from its surroundings, without the peak itself.
    fn surroundings(&self, lag: f64) -> f64 {
        let width = self.width as f64;
        let reach = (8.0 * width).max(SURROUNDING_PAIRS / 2.0 * self.span / self.pairs.max(1.0));
        let (low, high) = ((lag - reach).max(0.0), (lag + reach).min(self.longest as f64));
        let own = (lag - 1.5 * width, lag + 1.5 * width);
        let count = |from: f64, to: f64| {
            let below = |edge: f64| self.lags.partition_point(|&lag| (lag as f64) < edge);
            below(to).saturating_sub(below(from)) as f64
        };
        let length = (own.0 - low).max(0.0) + (high - own.1).max(0.0);
        if length <= width { 0.0 } else { (count(low, own.0) + count(own.1, high)) * width / length }
    }
}

/// The counts that are significant at one level, remembered by the mean in steps of 1 %.
struct Critical {
    level: f64,
    known: Vec<(i32, usize)>,
}

impl Critical {
    fn count(&mut self, mean: f64) -> usize {
        let step = (mean.clamp(1e-12, 1e12).ln() / 0.01).ceil() as i32;
        match self.known.binary_search_by_key(&step, |entry| entry.0) {
            Ok(at) => self.known[at].1,
            Err(at) => {
                let count = critical_count((f64::from(step) * 0.01).exp(), self.level);
                self.known.insert(at, (step, count));
                count
            }
        }
    }
}

/// Smallest count that a Poisson variable reaches with at most this probability.
fn critical_count(mean: f64, level: f64) -> usize {
    let (mut low, mut high) = (mean as u64, (mean + 40.0 * mean.sqrt() + 400.0) as u64);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if law::poisson_at_least(middle, mean) <= level { high = middle } else { low = middle }
    }
    high as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000_000;

    #[test]
    fn ten_of_twelve_events_a_minute_apart_have_the_published_probability() {
        let mut times: Vec<i64> = (0..10).map(|i| (i * 60 + 7) * SECOND).collect();
        times.extend([111 * SECOND, 401 * SECOND]);
        times.sort_unstable();
        let (span, longest) = (600 * SECOND, 100 * SECOND);
        let found = significant(&pair_lags(&times, longest), 12, span, longest, SECOND, 0.01);
        let Some(lag) = found.iter().find(|lag| (lag.lag_ns / 1e9 - 60.0).abs() < 1e-6) else {
            panic!("no lag of 60 s in {found:?}")
        };
        assert_eq!((lag.pairs, lag.width_ns), (9, 2 * SECOND));
        assert!((lag.expected - 0.396).abs() < 1e-9, "{lag:?}");
        // 4.63e-10 in one bin, and there are 88 of them.
        assert!((lag.p / 88.0 / 4.63e-10 - 1.0).abs() < 0.01, "{lag:?}");
    }

    #[test]
    fn bins_are_whole_steps_and_at_least_a_millisecond() {
        for (step, width) in
            [(1, 1_000_000), (1_000_000, 2_000_000), (300_000, 1_200_000), (SECOND, 2 * SECOND)]
        {
            assert_eq!(finest_width(step), width, "{step}");
        }
        assert!(finest_width(i64::MAX) > 0 && finest_width(-5) > 0);
    }

    #[test]
    fn critical_counts_are_the_smallest() {
        for mean in [1e-6, 0.01, 0.4, 3.0, 250.0, 1e5] {
            for level in [1e-3, 1e-9] {
                let count = critical_count(mean, level) as u64;
                assert!(law::poisson_at_least(count, mean) <= level, "{mean} {level}");
                assert!(law::poisson_at_least(count - 1, mean) > level, "{mean} {level}");
            }
        }
    }
}
