//! Absolute schedule: the exact expected time of each slot, however late the thread is.

use model::rng::SplitMix64;
use model::units::Nanos;

/// Expected times of slots 1, 2, 3, ... of one CPU; slot 0 is its start.
///
/// Without dither, slot k is expected at `start + k * interval`. With dither, each interval is
/// drawn within 5 % of that, and the differences add up: the phase moves through the whole period
/// of any tick, which would otherwise always be hit at the same point or never.
#[derive(Clone, Debug)]
pub struct Schedule<const DITHER: bool> {
    next: Nanos,
    interval: Nanos,
    random: SplitMix64,
}

impl<const DITHER: bool> Schedule<DITHER> {
    /// A schedule that starts at an instant; `seed` makes a dithered one repeatable.
    pub fn new(start: Nanos, interval: Nanos, seed: u64) -> Self {
        Schedule { next: start, interval, random: SplitMix64::new(seed) }
    }

    /// Expected time of the present slot.
    #[inline(always)]
    pub fn expected(&self) -> Nanos {
        self.next
    }

    /// Advances to the next slot.
    #[inline(always)]
    pub fn advance(&mut self) {
        self.next.0 += if DITHER { self.drawn_interval() } else { self.interval.0 };
    }

    /// True if the slot after the present one may be expected at or before `now`.
    #[inline(always)]
    pub fn may_be_past(&self, now: Nanos) -> bool {
        let least = if DITHER { self.interval.0 - self.interval.0 / 20 } else { self.interval.0 };
        now.0 - self.next.0 >= least
    }

    /// Skips the slots that are expected at or before `now`; passes each run of equally spaced ones
    /// to `skipped` as (lateness of the first, spacing, count). Returns their number.
    pub fn skip_past(&mut self, now: Nanos, mut skipped: impl FnMut(Nanos, Nanos, u64)) -> u64 {
        if !DITHER {
            let count = (now.0 - self.next.0) / self.interval.0;
            if count > 0 {
                skipped(Nanos(now.0 - self.next.0 - self.interval.0), self.interval, count as u64);
                self.next.0 += count * self.interval.0;
            }
            return count as u64;
        }
        let mut count = 0;
        loop {
            let before = (self.next, self.random);
            self.advance();
            if self.next > now {
                (self.next, self.random) = before;
                return count;
            }
            skipped(now - self.next, self.interval, 1);
            count += 1;
        }
    }

    #[inline(always)]
    fn drawn_interval(&mut self) -> i64 {
        let span = (self.interval.0 / 10) as u64 + 1;
        let drawn = ((u128::from(self.random.next_u64()) * u128::from(span)) >> 64) as i64;
        self.interval.0 - self.interval.0 / 20 + drawn
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_plain_schedule_is_a_multiplication() {
        let mut schedule = Schedule::<false>::new(Nanos(500), Nanos(1_000), 0);
        for k in 1..100 {
            schedule.advance();
            assert_eq!(schedule.expected(), Nanos(500 + k * 1_000));
        }
    }

    #[test]
    fn a_seed_gives_the_same_schedule_for_ever() {
        let mut schedule = Schedule::<true>::new(Nanos(0), Nanos(1_000_000), 7);
        let mut next = || {
            schedule.advance();
            schedule.expected().0
        };
        assert_eq!([next(), next(), next()], [988_983, 1_940_661, 2_980_737]);
    }

    #[test]
    fn a_dithered_schedule_stays_within_five_percent_and_sweeps_the_period() {
        let mut schedule = Schedule::<true>::new(Nanos(0), Nanos(1_000_000), 7);
        let mut phases = [0u32; 10];
        for _ in 0..100_000 {
            let before = schedule.expected();
            schedule.advance();
            let step = schedule.expected().0 - before.0;
            assert!((950_000..=1_050_000).contains(&step), "{step}");
            phases[(schedule.expected().0 % 1_000_000 / 100_000) as usize] += 1;
        }
        assert!(phases.iter().all(|&n| n > 2_000), "{phases:?}");
    }

    proptest! {
        #[test]
        fn skipping_is_advancing_while_late(late in 0i64..50_000_000, seed: u64) {
            fn check<const DITHER: bool>(late: i64, seed: u64) -> Result<(), TestCaseError> {
                let mut skipping = Schedule::<DITHER>::new(Nanos(0), Nanos(100_000), seed);
                let mut walking = skipping.clone();
                let mut lateness = Vec::new();
                let count = skipping.skip_past(Nanos(late), |first, spacing, n| {
                    lateness.extend((0..n as i64).map(|j| first.0 - j * spacing.0));
                });
                let mut walked = Vec::new();
                loop {
                    let mut next = walking.clone();
                    next.advance();
                    if next.expected().0 > late { break; }
                    walking = next;
                    walked.push(late - walking.expected().0);
                }
                prop_assert_eq!(count, walked.len() as u64);
                prop_assert_eq!(lateness, walked);
                prop_assert_eq!(skipping.expected(), walking.expected());
                Ok(())
            }
            check::<false>(late, seed)?;
            check::<true>(late, seed)?;
        }
    }
}
