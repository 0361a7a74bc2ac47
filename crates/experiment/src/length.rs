//! Length of a segment: enough late wake-ups to tell a fifth of them from all, and much longer than
//! the dependence between blocks.

use model::units::Nanos;

/// Number of late wake-ups that a segment without the change should have.
const WANTED: f64 = 10.0;

/// Limits of a segment's length, unless it is given.
pub const LEAST: Nanos = Nanos(10_000_000_000);
pub const MOST: Nanos = Nanos(60_000_000_000);

/// Least length of a segment, in times of the dependence between blocks.
const MEMORIES: f64 = 10.0;

/// Length for this rate of late wake-ups without the change, and a dependence of `memory_s`
/// seconds.
pub fn segment_length(late_per_second: f64, memory_s: usize) -> Nanos {
    let seconds = if late_per_second > 0.0 {
        (WANTED / late_per_second).max(MEMORIES * memory_s as f64)
    } else {
        f64::INFINITY
    };
    Nanos(seconds.ceil().clamp(LEAST.as_secs(), MOST.as_secs()) as i64 * Nanos::SECOND.0)
}

/// Lag from which the maxima of blocks are independent as far as visible: the first with an
/// autocorrelation within that of white noise. Few blocks show nothing.
pub fn memory(maxima: &[f64]) -> usize {
    let n = maxima.len();
    let mean = maxima.iter().sum::<f64>() / n.max(1) as f64;
    let covariance = |lag: usize| -> f64 {
        maxima.iter().zip(&maxima[lag..]).map(|(one, other)| (one - mean) * (other - mean)).sum()
    };
    let white = 2.0 / (n.max(1) as f64).sqrt();
    let variance = if n > 0 { covariance(0) } else { 0.0 };
    let is_seen = |lag: &usize| covariance(*lag) > white * variance;
    (1..=n / 2).find(|lag| !is_seen(lag)).unwrap_or(1.max(n / 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::rng::Rng;

    #[test]
    fn a_segment_has_enough_late_wake_ups_within_reason() {
        let seconds = |late, memory| segment_length(late, memory).0 / Nanos::SECOND.0;
        assert_eq!([seconds(0.5, 1), seconds(0.3, 1), seconds(100.0, 1)], [20, 34, 10]);
        assert_eq!([seconds(0.0, 1), seconds(0.001, 1), seconds(100.0, 3)], [60, 60, 30]);
        assert_eq!([seconds(f64::NAN, 1), seconds(f64::INFINITY, 0), seconds(1.0, usize::MAX)], [60, 10, 60]);
    }

    #[test]
    fn memory_is_that_of_the_blocks() {
        let mut rng = Rng::new(3);
        let white: Vec<f64> = (0..400).map(|_| rng.exponential()).collect();
        assert!(memory(&white) <= 2);
        let mut level = 0.0;
        let slow: Vec<f64> = (0..400)
            .map(|_| {
                level = 0.9 * level + rng.normal();
                level
            })
            .collect();
        assert!((8..60).contains(&memory(&slow)), "{}", memory(&slow));
        assert_eq!([memory(&[]), memory(&[1.0]), memory(&[5.0; 30]), memory(&[f64::NAN; 9])], [1, 1, 1, 1]);
    }
}
