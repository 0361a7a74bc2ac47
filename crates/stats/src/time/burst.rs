//! Bunching of events: the index of dispersion, and the share of events in the densest part of the
//! time.
//!
//! The index of dispersion of counts is their variance over their mean (Cox and Lewis 1966); under
//! a Poisson process of even rate, (n - 1) times it is chi-squared with n - 1 degrees of freedom.

use crate::law;
use model::sort::CompactSort;

/// Variance over mean of counts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dispersion {
    /// 1 for events at random, more for bunched, less for regular ones.
    pub index: f64,
    /// Probability of at least such an index at random.
    pub p: f64,
}

/// The busiest part of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Busiest {
    /// Share of the events in it.
    pub events: f64,
    /// Share of the time in it.
    pub time: f64,
    /// Share of the events that its windows would have at random, being picked as the fullest.
    pub by_chance: f64,
}

/// The index of dispersion of counts in equal windows; None with fewer than two windows or no
/// event.
pub fn dispersion(counts: &[u64]) -> Option<Dispersion> {
    let n = counts.len() as f64;
    let mean = counts.iter().map(|&count| count as f64).sum::<f64>() / n;
    if counts.len() < 2 || mean == 0.0 {
        return None;
    }
    let squares: f64 = counts.iter().map(|&count| (count as f64 - mean).powi(2)).sum();
    Some(Dispersion { index: squares / mean / (n - 1.0), p: law::chi2_tail(squares / mean, n - 1.0) })
}

/// The fullest windows, of the number for which the share of events exceeds that of time by most.
///
/// Neighbouring windows are joined until they hold two events on average: in short windows even
/// random events all lie in a small part of the time.
pub fn busiest(counts: &[u64]) -> Option<Busiest> {
    let total: f64 = counts.iter().map(|&count| count as f64).sum();
    if total == 0.0 {
        return None;
    }
    let together = (2.0 * counts.len() as f64 / total).ceil().clamp(1.0, counts.len() as f64) as usize;
    let sum = |windows: &[u64]| windows.iter().map(|&count| count as f64).sum::<f64>();
    // Length in windows given and events; the last part may be shorter.
    let mut parts: Vec<(f64, f64)> =
        counts.chunks(together).map(|part| (part.len() as f64, sum(part))).collect();
    parts.compact_sort_by(|a, b| (b.1 / b.0).total_cmp(&(a.1 / a.0)));
    let (mut time, mut events) = (0.0, 0.0);
    let mut best = (0.0, 0.0);
    for (length, inside) in parts {
        time += length / counts.len() as f64;
        events += inside / total;
        if events - time > best.1 - best.0 {
            best = (time, events);
        }
    }
    let (time, events) = if best.1 > 0.0 { best } else { (1.0, 1.0) };
    let mean = total * together as f64 / counts.len() as f64;
    Some(Busiest { events, time, by_chance: fullest_share(mean, time) })
}

/// The share of events that the fullest part of windows holds, the counts being Poisson.
fn fullest_share(mean: f64, part: f64) -> f64 {
    // Large counts differ little by chance, and their distribution function takes long.
    if mean > 1e6 {
        return part.min(1.0);
    }
    // The windows with at least k events have P(X >= k) of the time and P(X >= k - 1) of the
    // events.
    let at_least = |k: u64| law::poisson_at_least(k, mean);
    let (mut low, mut high) = (0u64, (mean + 40.0 * mean.sqrt() + 40.0) as u64);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if at_least(middle) >= part { low = middle } else { high = middle }
    }
    // All windows with at least `high` events, and as many with `low` as fill the part.
    ((at_least(high.max(1) - 1)) + (part - at_least(high)).max(0.0) * low as f64 / mean)
        .clamp(part.min(1.0), 1.0)
}

/// Mean number of events in a cluster, from the extremal index.
pub fn mean_cluster_size(theta: f64) -> Option<f64> {
    (theta > 0.0 && theta <= 1.0).then(|| 1.0 / theta)
}

#[cfg(test)]
mod tests {
    use super::super::fixture::poisson_counts;
    use super::*;
    use crate::rng::{Rng, SEED};
    use proptest::prelude::*;

    #[test]
    fn dispersion_by_hand() {
        // Mean 2, squares 2: index 2/2/3, chi-squared 1 with 3 degrees.
        let found = dispersion(&[1, 3, 2, 2]).expect("counts");
        assert!(
            (found.index - 1.0 / 3.0).abs() < 1e-12 && (found.p - 0.801_251_957).abs() < 1e-8,
            "{found:?}"
        );
        assert_eq!((dispersion(&[]), dispersion(&[5]), dispersion(&[0, 0])), (None, None, None));
    }

    #[test]
    fn bunched_events_come_in_little_of_the_time() {
        let mut counts = vec![0u64; 97];
        (0..76).for_each(|i| counts[i] = 1);
        counts.extend([41, 41, 42]);
        let found = busiest(&counts).expect("events");
        assert!((found.events - 0.62).abs() < 1e-9 && (found.time - 0.03).abs() < 1e-9, "{found:?}");
        assert!(found.by_chance < 0.15, "{found:?}");
    }

    #[test]
    fn events_at_random_are_as_bunched_as_chance_has_it() {
        let mut rng = Rng::new(SEED);
        for mean in [0.05, 0.7, 4.0] {
            let found = busiest(&poisson_counts(mean, 20_000, &mut rng)).expect("events");
            assert!((found.events - found.by_chance).abs() < 0.03, "{mean}: {found:?}");
        }
        // All with 3 and more of a Poisson law of mean 2: 0.3233 of the windows, 0.5940 of the
        // events.
        assert!((fullest_share(2.0, 0.323_323_58) - 0.593_994_15).abs() < 1e-6);
    }

    #[test]
    fn cluster_sizes_are_inverse() {
        assert_eq!(
            (mean_cluster_size(0.25), mean_cluster_size(0.0), mean_cluster_size(f64::NAN)),
            (Some(4.0), None, None)
        );
    }

    proptest! {
        #[test]
        fn shares_are_shares(counts in proptest::collection::vec(prop_oneof![0u64..4, any::<u64>()], 0..50)) {
            let _ = dispersion(&counts);
            if let Some(found) = busiest(&counts) {
                prop_assert!(found.events >= found.time * (1.0 - 1e-9) && found.events <= 1.0 + 1e-9, "{:?}", found);
                prop_assert!((0.0..=1.0).contains(&found.by_chance), "{:?}", found);
            }
        }
    }
}
