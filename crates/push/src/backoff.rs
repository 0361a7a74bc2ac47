//! Time to wait after failures: exponential, and drawn so that boards do not retry together.

use model::units::Nanos;

/// Upper bound of the drawn part of a wait, in seconds; `LONGEST_ASKED` bounds the farm's part.
const LONGEST: i64 = 600;
const LONGEST_ASKED: i64 = 3_600;

/// Number of failures in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Resets the count after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Counts a failure; returns the wait, drawn from its whole range so that boards do not retry
    /// together ("Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
    pub fn failed(&mut self, asked_s: Option<u64>, drawn: u64) -> Nanos {
        let most = LONGEST.min(1i64 << self.failures.min(20));
        self.failures = self.failures.saturating_add(1);
        let jitter = i64::try_from(drawn % (most as u64 * 1_000)).unwrap_or(0) * 1_000_000;
        let asked = i64::try_from(asked_s.unwrap_or(0)).unwrap_or(LONGEST_ASKED).min(LONGEST_ASKED);
        Nanos(jitter + asked * Nanos::SECOND.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_an_end_and_a_farm_may_ask_for_more() {
        let mut backoff = Backoff::default();
        let longest = |backoff: &mut Backoff| backoff.failed(None, u64::MAX - u64::MAX % 600_000 - 1);
        let first = longest(&mut backoff);
        assert!(first < Nanos::SECOND);
        for _ in 0..100 {
            assert!(longest(&mut backoff) < Nanos(LONGEST * Nanos::SECOND.0));
        }
        assert_eq!(backoff.failed(None, 599_999), Nanos(599_999_000_000));
        assert_eq!(backoff.failed(Some(30), 0), Nanos(30 * Nanos::SECOND.0));
        assert_eq!(backoff.failed(Some(u64::MAX), 0), Nanos(LONGEST_ASKED * Nanos::SECOND.0));
        backoff.reset();
        assert!(longest(&mut backoff) < Nanos::SECOND);
    }
}
