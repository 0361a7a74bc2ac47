//! Number of blocks per hour that reach a latency, as a curve of bounded length that is never below
//! the truth.

use super::axis::Scale;
use super::svg::PathData;
use stats::blocks::Blocks;
use stats::bounds::CONFIDENCE;
use stats::count::rate;
use stats::levels::Levels;
use stats::series::Series;

/// Limit of blocks with a step each; above it, one step per 3 %.
const SINGLE: u64 = 40;
const HOUR: f64 = 3600.0;

/// Rate of blocks that reach a latency.
pub struct Curve {
    /// Latencies with the largest number of blocks beyond them; counts descend to zero.
    pub steps: Vec<(f64, u64)>,
    hours: f64,
}

impl Curve {
    /// Curve of all blocks of the series, full or not; none without a positive latency or without a
    /// length.
    pub fn of(series: &[&Series]) -> Option<Curve> {
        let blocks = || series.iter().flat_map(|series| [&series.blocks, &series.partial]);
        let n: usize = blocks().map(Blocks::len).sum();
        let maxima = blocks().flat_map(Blocks::maxima);
        let levels = Levels::of(maxima.map(|max| max.0.max(1) as f64), n);
        let hours = series.iter().map(|series| series.observed.as_secs()).sum::<f64>() / HOUR;
        let (n, lowest) = (n as u64, levels.at(0)?);
        if hours <= 0.0 {
            return None;
        }
        let mut steps = vec![(lowest, n)];
        let mut count = n;
        while count > 0 {
            // Between two steps the count of the earlier one holds: never below the truth.
            count = if count > SINGLE { (count as f64 / 1.03) as u64 } else { count - 1 };
            steps.push((levels.at(n - 1 - count).unwrap_or(lowest), count));
        }
        Some(Curve { steps, hours })
    }

    /// Least and largest latency.
    pub fn extent(&self) -> (f64, f64) {
        (self.steps[0].0, self.steps[self.steps.len() - 1].0)
    }

    /// Number of all blocks, per hour.
    pub fn most(&self) -> f64 {
        self.steps[0].1 as f64 / self.hours
    }

    /// Rate of a single block, per hour.
    pub fn one(&self) -> f64 {
        1.0 / self.hours
    }

    /// Descending steps, with a rate for each count; zero is the floor.
    pub fn path(&self, x: &Scale, y: &Scale, rate: impl Fn(u64) -> f64) -> PathData {
        let mut path = PathData::default();
        path.go(x.at(x.lo()), y.at(rate(self.steps[0].1)));
        for &(latency, count) in &self.steps[1..] {
            path.across(x.at(latency));
            path.down(y.at(rate(count)));
        }
        path
    }

    /// Observed rate of a count.
    pub fn observed(&self) -> impl Fn(u64) -> f64 {
        let hours = self.hours;
        move |count| count as f64 / hours
    }

    /// Largest rate that counting allows for a count.
    pub fn allowed(&self) -> impl Fn(u64) -> f64 {
        let hours = self.hours;
        move |count| rate::upper(count, CONFIDENCE) / hours
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::units::Nanos;
    use stats::series::BLOCK;

    #[test]
    fn counts_fall_by_one_at_the_end_and_never_below_what_was_seen() {
        let list: Vec<Option<Nanos>> = (1..=500).map(|us| Some(Nanos(us * 1_000))).collect();
        let curve = Curve::of(&[&Series::of_list(&list, BLOCK, Nanos(1))]).unwrap();
        assert_eq!(curve.extent(), (1_000.0, 500_000.0));
        let tail: Vec<u64> = curve.steps.iter().rev().take(4).map(|step| step.1).collect();
        assert_eq!(tail, [0, 1, 2, 3]);
        assert!(curve.steps.len() < 150);
        for pair in curve.steps.windows(2) {
            // This number reaches a latency just beyond the earlier step.
            assert_eq!(pair[0].1, 500 - (pair[0].0 / 1_000.0) as u64 + u64::from(pair[0].1 == 500));
            assert!(pair[0].1 > pair[1].1 && pair[0].0 <= pair[1].0);
        }
        assert!(Curve::of(&[&Series::default()]).is_none());
    }
}
