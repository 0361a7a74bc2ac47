//! What the machine without the change altered by from the first pair to the last.

use model::units::Nanos;

use crate::tally::CountedPair;

/// The median wake-up of A at both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExperimentDrift {
    pub first: Nanos,
    pub last: Nanos,
}

/// A median that moved by less is none: a tenth, and a microsecond.
const SHARE: i64 = 10;

impl ExperimentDrift {
    /// None where there are no two pairs.
    pub fn of(pairs: &[CountedPair]) -> Option<ExperimentDrift> {
        let [first, .., last] = pairs else { return None };
        Some(ExperimentDrift { first: first.a.p50_ns?, last: last.a.p50_ns? })
    }

    /// Whether it is worth a word. It favours no arm: the coin decides which of a pair comes first.
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
