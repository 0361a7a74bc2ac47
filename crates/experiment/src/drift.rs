//! Drift of the machine without the change, from the first pair to the last.

use model::units::Nanos;

use crate::tally::CountedPair;

/// Median wake-ups of A in the first and the last pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExperimentDrift {
    pub first: Nanos,
    pub last: Nanos,
}

/// Reciprocal of the share by which a median must move to count, in addition to a microsecond.
const SHARE: i64 = 10;

impl ExperimentDrift {
    /// Drift of the pairs; none with fewer than two.
    pub fn of(pairs: &[CountedPair]) -> Option<ExperimentDrift> {
        let [first, .., last] = pairs else { return None };
        Some(ExperimentDrift { first: first.a.p50_ns?, last: last.a.p50_ns? })
    }

    /// True if it is worth a note. It favours no arm: the coin decides the order in each pair.
    pub fn is_large(self) -> bool {
        let moved = self.last.0.saturating_sub(self.first.0).saturating_abs();
        moved > Nanos::MICRO.0 && moved.saturating_mul(SHARE) > self.first.0.saturating_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_and_a_microsecond_are_a_drift() {
        let large = |first, last| ExperimentDrift { first: Nanos(first), last: Nanos(last) }.is_large();
        assert!(large(10_000, 12_000) && large(12_000, 10_000));
        assert!(!large(10_000, 10_900) && !large(2_000, 2_900) && !large(i64::MAX, i64::MAX - 9));
        assert!(large(0, i64::MAX) && !large(i64::MIN, i64::MAX), "no overflow");
        assert_eq!(ExperimentDrift::of(&[]), None);
    }
}
