//! Finds the gaps between reads of a clock. Pure.

use model::units::Nanos;

/// Gap between two reads that are further apart than the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockGap {
    /// Last read before it.
    pub before: Nanos,
    /// First read after it.
    pub after: Nanos,
}

impl ClockGap {
    /// Length of the gap.
    pub fn length(self) -> Nanos {
        self.after - self.before
    }
}

/// Account of the time from the first read to the last.
#[derive(Clone, Copy, Debug)]
pub struct GapFinder {
    over: Nanos,
    last: Nanos,
    /// Time in gaps.
    pub lost: Nanos,
    /// Time in which onbeat did other work and did not read the clock.
    pub own: Nanos,
    pub gaps: u64,
}

impl GapFinder {
    /// A finder of gaps from that length, starting with the first read.
    pub fn new(over: Nanos, first: Nanos) -> GapFinder {
        GapFinder { over, last: first, lost: Nanos(0), own: Nanos(0), gaps: 0 }
    }

    /// Takes the next read; returns the gap before it, if there is one.
    #[inline(always)]
    pub fn read(&mut self, now: Nanos) -> Option<ClockGap> {
        let before = std::mem::replace(&mut self.last, now);
        if now.0 - before.0 < self.over.0 {
            return None;
        }
        self.lost.0 += now.0 - before.0;
        self.gaps += 1;
        Some(ClockGap { before, after: now })
    }

    /// Takes the first read after other work.
    pub fn resume(&mut self, now: Nanos) {
        self.own.0 += now.0 - self.last.0;
        self.last = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn gaps_own_time_and_the_rest_are_the_time_that_passed(
            steps in proptest::collection::vec((0i64..3_000, any::<bool>()), 0..200), over in 1i64..2_000,
        ) {
            let first = Nanos(77);
            let (mut now, mut finder) = (first, GapFinder::new(Nanos(over), first));
            let (mut rest, mut found) = (Nanos(0), Vec::new());
            for (step, reads) in steps {
                let before = now;
                now = now + Nanos(step);
                match reads.then(|| finder.read(now)) {
                    None => finder.resume(now),
                    Some(None) => rest = rest + Nanos(step),
                    Some(Some(gap)) => {
                        prop_assert_eq!(gap, ClockGap { before, after: now });
                        prop_assert!(step >= over);
                        found.push(gap.length());
                    }
                }
            }
            let sum: i64 = found.iter().map(|gap| gap.0).sum();
            prop_assert_eq!((finder.lost.0, finder.gaps), (sum, found.len() as u64));
            prop_assert_eq!(finder.lost.0 + finder.own.0 + rest.0, now.0 - first.0);
        }
    }
}
