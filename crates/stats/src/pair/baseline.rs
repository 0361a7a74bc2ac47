//! Test of a new run against past runs of the same machine: the baseline's spread decides.
//!
//! With enough past runs the rank of the new one among them, exact for exchangeable runs; with
//! fewer, a prediction bound by Student's t for one further value (Hahn 1969), which assumes that
//! the statistic, on its log scale, is about normal from run to run. One-sided: large is bad.

use crate::law;

/// Number of past runs from which a spread is estimated.
const MIN_PAST_RUNS: usize = 5;

/// Result for a new run, given past ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Standing {
    /// There are too few past runs, or they are all equal: no baseline spread yet.
    NoSpread {
        /// The minimum number of past runs for a comparison.
        needed: usize,
    },
    /// Result by rank: (1 + past runs at least as large) / (past runs + 1).
    Rank {
        /// One-sided p.
        p: f64,
    },
    /// Result by the t prediction bound.
    Bound {
        /// One-sided p.
        p: f64,
        /// Bound that the next run stays below with probability 1 - alpha, on the input's scale.
        bound: f64,
    },
}

impl Standing {
    /// True if the new run is a regression at this level.
    pub fn is_regression(&self, alpha: f64) -> bool {
        match *self {
            Standing::NoSpread { .. } => false,
            Standing::Rank { p } | Standing::Bound { p, .. } => p <= alpha,
        }
    }
}

/// Judges a new run by past ones; the statistic is one number per run on a log scale, large is bad.
///
/// By rank from the number of past runs on that can reach alpha (19 for 0.05), by the bound from 5
/// on.
///
/// `least` is the standard deviation that a value has by counting alone, 0 for none: past runs that
/// happen to be equal are not assumed to have no spread.
pub fn standing(past: &[f64], new: f64, least: f64, alpha: f64) -> Standing {
    let runs = past.len() as f64;
    if 1.0 / (runs + 1.0) <= alpha {
        let as_large = past.iter().filter(|&&value| value >= new).count();
        return Standing::Rank { p: (1.0 + as_large as f64) / (runs + 1.0) };
    }
    if past.len() < MIN_PAST_RUNS {
        return Standing::NoSpread { needed: MIN_PAST_RUNS };
    }
    let mean = past.iter().sum::<f64>() / runs;
    let variance = past.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (runs - 1.0);
    let variance = variance.max(least * least);
    let scale = (variance * (1.0 + 1.0 / runs)).sqrt();
    // Equal values up to rounding have no spread to judge by.
    let spread = scale.is_finite() && scale > 1e-12 * mean.abs();
    if !spread || !new.is_finite() {
        return Standing::NoSpread { needed: past.len() + 1 };
    }
    let t = (new - mean) / scale;
    let tail = 0.5 * law::student_two_sided(t, runs - 1.0);
    let p = if t > 0.0 { tail } else { 1.0 - tail };
    Standing::Bound { p, bound: mean + law::student_quantile(1.0 - alpha, runs - 1.0) * scale }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn nineteen_past_runs_rank_the_new_one() {
        let past: Vec<f64> = (1..=19).map(f64::from).collect();
        assert_eq!(standing(&past, 20.0, 0.0, 0.05), Standing::Rank { p: 0.05 });
        assert!(standing(&past, 20.0, 0.0, 0.05).is_regression(0.05));
        assert_eq!(standing(&past, 19.0, 0.0, 0.05), Standing::Rank { p: 0.1 });
        assert!(!standing(&past, 19.0, 0.0, 0.05).is_regression(0.05));
    }

    #[test]
    fn fewer_past_runs_bound_it() {
        // Mean 3, s = sqrt(2.5), t(0.95; 4) = 2.131846786.
        let past = [1.0, 2.0, 3.0, 4.0, 5.0];
        let expected = 3.0 + 2.131_846_786 * (2.5f64 * 1.2).sqrt();
        let Standing::Bound { p, bound } = standing(&past, expected, 0.0, 0.05) else { panic!("no bound") };
        assert!((bound - expected).abs() < 1e-8 && (p - 0.05).abs() < 1e-9);
        let Standing::Bound { p, .. } = standing(&past, 3.0, 0.0, 0.05) else { panic!("no bound") };
        assert!((p - 0.5).abs() < 1e-12);
    }

    #[test]
    fn without_spread_there_is_no_verdict() {
        assert_eq!(standing(&[1.0; 4], 9.0, 0.0, 0.05), Standing::NoSpread { needed: 5 });
        assert_eq!(standing(&[0.1; 6], 9.0, 0.0, 0.05), Standing::NoSpread { needed: 7 });
        assert_eq!(standing(&[], 9.0, 0.0, 0.05), Standing::NoSpread { needed: 5 });
        assert!(!standing(&[1.0, f64::NAN, 1.0, 2.0, 3.0], 9.0, 0.0, 0.05).is_regression(0.05));
    }

    #[test]
    fn a_run_like_the_past_is_rarely_a_regression() {
        let mut rng = Rng::new(12);
        for (runs, allowed) in [(6, 40), (19, 40)] {
            let alarms = (0..400).filter(|_| {
                let past: Vec<f64> = (0..runs).map(|_| rng.normal()).collect();
                standing(&past, rng.normal(), 0.0, 0.05).is_regression(0.05)
            });
            let alarms = alarms.count();
            // 20 of 400 are expected; three standard deviations are 13.
            assert!((7..allowed).contains(&alarms), "{alarms}");
        }
    }
}
