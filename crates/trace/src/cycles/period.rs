//! Estimate of a period from the expiries of a thread's timers.

use model::units::Nanos;

/// Number of intervals kept.
const KEPT: usize = 31;
/// Least number of intervals for an estimate.
const LEAST: usize = 7;

/// Tolerance of a schedule: this fraction of the period, but at least the error between two clocks
/// in ns.
const SAME: i64 = 1_000;
const LEAST_TOLERANCE: i64 = 1_000;

/// Tolerance in ns of precomputed expiry times, which differ only by rounding; those of time-outs
/// vary with the start of the wait.
const EXACT: i64 = 100;

/// Last intervals between expiries.
#[derive(Clone, Debug, Default)]
pub(super) struct PeriodEstimate {
    last: Option<Nanos>,
    distances: Vec<i64>,
    next: usize,
    found: Option<Nanos>,
    scheduled: bool,
    exact: bool,
}

impl PeriodEstimate {
    /// Adds an expiry that released the thread; returns the interval since the previous one.
    pub fn expired(&mut self, due: Nanos) -> Option<Nanos> {
        let distance = due - self.last.replace(due)?;
        if distance.0 <= 0 {
            return None;
        }
        if self.distances.len() < KEPT {
            self.distances.push(distance.0);
        } else {
            self.distances[self.next] = distance.0;
        }
        self.next = (self.next + 1) % KEPT;
        self.found = self.look();
        let tolerance = |period: Nanos| (period.0 / SAME).max(LEAST_TOLERANCE);
        self.scheduled = self.found.is_some_and(|period| self.keeps(period, tolerance(period)));
        self.exact = self.found.is_some_and(|period| self.keeps(period, EXACT));
        Some(distance)
    }

    /// Last expiry.
    pub fn last(&self) -> Option<Nanos> {
        self.last
    }

    /// Median interval, if three of four are within a quarter of it.
    pub fn found(&self) -> Option<Nanos> {
        self.found
    }

    /// True if the expiries follow a schedule: timers set relative to the end of the work drift
    /// with it.
    pub fn scheduled(&self) -> bool {
        self.scheduled
    }

    /// True if the expiry times were precomputed, to the nanosecond; also false if that is unknown
    /// (for a clock other than the trace's).
    pub fn exact(&self) -> bool {
        self.exact
    }

    fn keeps(&self, period: Nanos, tolerance: i64) -> bool {
        let off = |distance: &i64| {
            let over = distance % period.0;
            over.min(period.0 - over)
        };
        let matches = self.distances.iter().filter(|distance| off(distance) <= tolerance).count();
        4 * matches >= 3 * self.distances.len()
    }

    /// Forgets the last expiry, because lost events may contain expiries.
    pub fn forget(&mut self) {
        self.last = None;
    }

    fn look(&self) -> Option<Nanos> {
        if self.distances.len() < LEAST {
            return None;
        }
        let mut sorted = self.distances.clone();
        sorted.sort_unstable();
        let median = sorted[sorted.len() / 2];
        let near = sorted.iter().filter(|distance| (*distance - median).abs() <= median / 4).count();
        (4 * near >= 3 * sorted.len()).then_some(Nanos(median))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(distances: &[i64]) -> Option<i64> {
        let (mut estimate, mut at) = (PeriodEstimate::default(), 1_000);
        estimate.expired(Nanos(at));
        for distance in distances {
            at += distance;
            estimate.expired(Nanos(at));
        }
        estimate.found().map(|period| period.0)
    }

    #[test]
    fn a_schedule_is_told_from_sleeps_after_work() {
        let scheduled = |distance: fn(i64) -> i64| {
            let (mut estimate, mut at) = (PeriodEstimate::default(), 0);
            for n in 0..40 {
                at += distance(n);
                estimate.expired(Nanos(at));
            }
            estimate.scheduled()
        };
        assert!(scheduled(|_| 2_000_000) && scheduled(|n| if n % 9 == 0 { 6_000_000 } else { 2_000_000 }));
        assert!(!scheduled(|n| 2_000_000 + n * 7_919 % 40_000), "it drifts");
    }

    #[test]
    fn times_reckoned_ahead_are_told_from_time_outs() {
        let exact = |distance: fn(i64) -> i64| {
            let mut estimate = PeriodEstimate::default();
            (0..40).map(distance).scan(0, |at, next| Some(std::mem::replace(at, *at + next))).for_each(
                |at| {
                    estimate.expired(Nanos(at));
                },
            );
            estimate.exact()
        };
        assert!(exact(|n| if n % 9 == 0 { 6_000_000 } else { 2_000_000 }) && exact(|n| 2_000_000 + n % 2));
        assert!(!exact(|n| 2_000_000 + n * 7_919 % 1_500), "as near as that by chance");
    }

    #[test]
    fn a_period_is_what_most_distances_are() {
        assert_eq!(of(&[1_000; 6]), None, "too few");
        assert_eq!(of(&[1_000; 7]), Some(1_000));
        assert_eq!(of(&[1_000, 1_000, 2_000, 1_000, 1_010, 990, 1_000, 1_000]), Some(1_000));
        assert_eq!(of(&[100, 900, 100, 900, 100, 900, 100, 900]), None, "two sleeps in a cycle");
        assert_eq!(of(&[[1_000; 40].as_slice(), &[500; 40]].concat()), Some(500), "it may change");
    }
}
