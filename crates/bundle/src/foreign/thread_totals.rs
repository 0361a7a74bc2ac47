//! Totals of a thread that grow while it runs: if they fall, another run begins.

/// Totals of one thread as one line states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ThreadTotals {
    /// 0 until the thread runs.
    pub id: u64,
    pub cycles: u64,
    pub min: i128,
    pub max: i128,
}

impl ThreadTotals {
    /// True if a later line of the same run can have these totals: neither the count nor the
    /// maximum falls in a run, the minimum does not rise, and neither changes without a wake-up.
    pub(super) fn goes_on_to(&self, later: &ThreadTotals) -> bool {
        // cyclictest compares without the sign: a negative maximum is above all others.
        let unsigned = |max: i128| if max < 0 { max + (1 << 64) } else { max };
        (self.id == later.id || self.id == 0)
            && self.cycles <= later.cycles
            && (self.cycles == 0 || self.min >= later.min && unsigned(self.max) <= unsigned(later.max))
            && (self.cycles == 0
                || self.cycles < later.cycles
                || (self.min, self.max) == (later.min, later.max))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_that_fall_are_another_run() {
        let first = ThreadTotals { id: 7, cycles: 100, min: 5, max: 900 };
        assert!(first.goes_on_to(&first));
        assert!(first.goes_on_to(&ThreadTotals { cycles: 200, min: 4, max: 901, ..first }));
        assert!(first.goes_on_to(&ThreadTotals { cycles: 101, max: -3, ..first }), "an early wake-up");
        assert!(ThreadTotals { id: 0, cycles: 0, min: 0, max: 0 }.goes_on_to(&first));
        for other in [
            ThreadTotals { id: 8, ..first },
            ThreadTotals { cycles: 99, ..first },
            ThreadTotals { max: 901, ..first },
            ThreadTotals { cycles: 500, min: 6, ..first },
            ThreadTotals { cycles: 500, max: 21, ..first },
        ] {
            assert!(!first.goes_on_to(&other), "{other:?}");
        }
    }
}
