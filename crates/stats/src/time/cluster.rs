//! Clusters of exceedances, and their mean size.
//!
//! Runs declustering: events closer than a gap are one cluster (Coles 2001, chapter 5). The
//! extremal index theta, one over the mean cluster size, without choosing a gap: the intervals
//! estimator (Ferro and Segers 2003) and the K-gaps likelihood (Suveges and Davison 2010). Both
//! assume a stationary series.

use model::sort::CompactSort;

/// Events that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Time of the first event, ns.
    pub start_ns: i64,
    /// Time of the last event, ns.
    pub end_ns: i64,
    /// The largest event, as an index into the events given; the first of equals.
    pub peak: usize,
    pub size: usize,
}

/// Calls `each` with the largest event (time and size, both ns) of each cluster, the first of equal
/// ones; events are in order of time, and at least `gap_ns` lies between two clusters.
pub fn peaks(events: impl IntoIterator<Item = (i64, i64)>, gap_ns: i64, mut each: impl FnMut((i64, i64))) {
    let mut open: Option<((i64, i64), i64)> = None;
    for event in events {
        open = Some(match open {
            Some((peak, end)) if event.0.saturating_sub(end) < gap_ns => {
                (if event.1 > peak.1 { event } else { peak }, event.0)
            }
            done => {
                done.into_iter().for_each(|(peak, _)| each(peak));
                (event, event.0)
            }
        });
    }
    open.into_iter().for_each(|(peak, _)| each(peak));
}

/// The clusters of events (time and size, both ns, in any order): at least `gap_ns` lies between
/// two of them.
pub fn runs(events: &[(i64, i64)], gap_ns: i64) -> Vec<Cluster> {
    let mut order: Vec<usize> = (0..events.len()).collect();
    order.compact_sort_by_key(|&i| events[i].0);
    let mut clusters: Vec<Cluster> = Vec::new();
    for i in order {
        let (time, size) = events[i];
        match clusters.last_mut() {
            Some(last) if time.saturating_sub(last.end_ns) < gap_ns => {
                last.end_ns = time;
                last.size += 1;
                if size > events[last.peak].1 {
                    last.peak = i;
                }
            }
            _ => clusters.push(Cluster { start_ns: time, end_ns: time, peak: i, size: 1 }),
        }
    }
    clusters
}

/// The intervals estimate of the extremal index from the ascending indices of exceedances; None
/// below three.
pub fn theta_intervals(exceedances: &[u64]) -> Option<f64> {
    let gaps = gaps(exceedances)?;
    let n = gaps.len() as f64;
    let sum = |f: &dyn Fn(f64) -> f64| gaps.iter().map(|&gap| f(gap)).sum::<f64>();
    let largest = gaps.iter().copied().fold(0.0, f64::max);
    let (first, second) = if largest <= 2.0 {
        (sum(&|t| t), sum(&|t| t * t))
    } else {
        (sum(&|t| t - 1.0), sum(&|t| (t - 1.0) * (t - 2.0)))
    };
    Some((2.0 * first * first / (n * second)).min(1.0))
}

/// The K-gaps estimate of the extremal index; `share` is the share of samples that exceed. None
/// below three.
///
/// The likelihood is `2 C ln theta + (N - C) ln(1 - theta) - theta A`, C of the N gaps being longer
/// than K and A their sum beyond K in units of the mean gap.
pub fn theta_k_gaps(exceedances: &[u64], share: f64, k: u64) -> Option<f64> {
    let gaps = gaps(exceedances)?;
    let beyond = gaps.iter().map(|&gap| share * (gap - k as f64).max(0.0));
    let (long, sum) = beyond.fold((0.0, 0.0), |(c, a), s| (c + f64::from(u8::from(s > 0.0)), a + s));
    let b = sum + gaps.len() as f64 + long;
    // The smaller root of A theta^2 - b theta + 2 C = 0, in the form that stays exact for a small
    // A.
    let root = (b * b - 8.0 * sum * long).max(0.0).sqrt();
    let theta = 4.0 * long / (b + root);
    theta.is_finite().then(|| theta.clamp(0.0, 1.0))
}

/// Distances between neighbours, without those of zero.
fn gaps(exceedances: &[u64]) -> Option<Vec<f64>> {
    let gaps: Vec<f64> = exceedances
        .windows(2)
        .filter(|pair| pair[1] > pair[0])
        .map(|pair| (pair[1] - pair[0]) as f64)
        .collect();
    (gaps.len() >= 2).then_some(gaps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn estimates_by_hand() {
        // Gaps 1 1 2: 2 * 4^2 / (3 * 6) is above 1. Gaps 1 9 1 9: 2 * 16^2 / (4 * 112).
        assert_eq!(theta_intervals(&[0, 1, 2, 4]), Some(1.0));
        assert_eq!(theta_intervals(&[0, 1, 10, 11, 20]), Some(1.0));
        // Gaps 1 1 1 9: 2 * 8^2 / (4 * 56).
        assert_eq!(theta_intervals(&[0, 1, 2, 3, 12]), Some(128.0 / 224.0));
        // K = 1, share 1/4: one long gap, A = 2, b = 7, (7 - sqrt(33)) / 4.
        let theta = theta_k_gaps(&[0, 1, 2, 3, 12], 0.25, 1).unwrap_or(f64::NAN);
        assert!((theta - (7.0 - 33f64.sqrt()) / 4.0).abs() < 1e-12, "{theta}");
    }

    #[test]
    fn runs_keep_the_peak() {
        let events = [(100, 5), (10, 1), (12, 9), (19, 9), (40, 2)];
        let found = runs(&events, 10);
        let cluster = |start_ns, end_ns, peak, size| Cluster { start_ns, end_ns, peak, size };
        assert_eq!(found, [cluster(10, 19, 2, 3), cluster(40, 40, 4, 1), cluster(100, 100, 0, 1)]);
        assert_eq!(runs(&[], 10), []);
        assert_eq!(runs(&[(i64::MIN, 0), (i64::MAX, 0)], i64::MAX).len(), 2);
    }

    proptest! {
        #[test]
        fn clusters_divide_the_events(events in proptest::collection::vec((0i64..1000, 0i64..9), 0..60), gap in 1i64..50) {
            let found = runs(&events, gap);
            prop_assert_eq!(found.iter().map(|cluster| cluster.size).sum::<usize>(), events.len());
            prop_assert!(found.windows(2).all(|pair| pair[1].start_ns - pair[0].end_ns >= gap));
        }

        #[test]
        fn theta_is_a_share(mut at in proptest::collection::vec(any::<u64>(), 0..30), share in 0.0f64..1.0, k in 0u64..9) {
            at.sort_unstable();
            for theta in [theta_intervals(&at), theta_k_gaps(&at, share, k)].into_iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&theta), "{}", theta);
            }
        }
    }
}
