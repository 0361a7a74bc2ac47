//! The ratio of two tools over interleaved pairs of runs, with an interval that assumes nothing
//! about its distribution: order statistics of the pairs' ratios, exact, without a seed.

/// The median ratio and its interval.
#[derive(Debug, PartialEq)]
pub struct Ratio {
    /// The median of the pairs' ratios.
    pub median: f64,
    /// Interval of at least 95 %; `None` with fewer than six pairs, which do not suffice for one.
    pub interval: Option<(f64, f64)>,
}

/// The ratio of each pair's first to its second.
pub fn of_pairs(pairs: &[(f64, f64)]) -> Option<Ratio> {
    let mut ratios: Vec<f64> = pairs.iter().map(|(ours, peer)| ours / peer).collect();
    if ratios.is_empty() || ratios.iter().any(|ratio| !ratio.is_finite()) {
        return None;
    }
    ratios.sort_by(f64::total_cmp);
    let n = ratios.len();
    let median = (ratios[(n - 1) / 2] + ratios[n / 2]) / 2.0;
    let interval = rank(n).map(|rank| (ratios[rank - 1], ratios[n - rank]));
    Some(Ratio { median, interval })
}

/// The largest rank r for which fewer than r of n fair coins show heads with at most 2.5 %: the
/// r-th smallest and r-th largest then enclose the median with at least 95 %.
fn rank(n: usize) -> Option<usize> {
    let (mut below, mut term, mut rank) = (0.0, 0.5f64.powi(i32::try_from(n).ok()?), 0);
    for k in 0..n {
        below += term;
        if below > 0.025 {
            break;
        }
        rank = k + 1;
        term *= (n - k) as f64 / (k + 1) as f64;
    }
    (rank > 0).then_some(rank)
}

/// The value that this share of the samples does not exceed, by nearest rank.
pub fn quantile(rows: &[(i64, u64)], share: f64) -> Option<i64> {
    let total: u64 = rows.iter().map(|row| row.1).sum();
    let rank = ((total as f64 * share).ceil() as u64).max(1);
    let mut seen = 0;
    rows.iter()
        .find(|row| {
            seen += row.1;
            seen >= rank
        })
        .map(|row| row.0)
}

/// The median of some numbers.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    of_pairs(&values.into_iter().map(|value| (value, 1.0)).collect::<Vec<_>>()).map(|ratio| ratio.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_sign_test() {
        // Tables of the binomial distribution: n = 6 gives the extremes, n = 20 the 6th, n = 100
        // the 40th.
        assert_eq!(
            [5, 6, 8, 9, 20, 25, 100].map(rank),
            [None, Some(1), Some(1), Some(2), Some(6), Some(8), Some(40)]
        );
    }

    #[test]
    fn a_ratio_has_its_interval() {
        let pairs: Vec<(f64, f64)> = (1..=20).map(|n| (f64::from(n), 10.0)).collect();
        let ratio = of_pairs(&pairs).unwrap();
        assert!((ratio.median - 1.05).abs() < 1e-12);
        assert_eq!(ratio.interval, Some((0.6, 1.5)));
        assert_eq!(of_pairs(&pairs[..3]).unwrap().interval, None);
        assert_eq!(of_pairs(&[]), None);
        assert_eq!(of_pairs(&[(1.0, 0.0)]), None);
    }

    #[test]
    fn quantiles_by_nearest_rank() {
        let rows = [(1, 50), (2, 49), (9, 1)];
        assert_eq!(
            [0.5, 0.51, 0.99, 1.0].map(|share| quantile(&rows, share)),
            [Some(1), Some(2), Some(2), Some(9)]
        );
        assert_eq!(quantile(&[], 0.5), None);
    }
}
