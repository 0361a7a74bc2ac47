//! Clocks of timers compared with that of a trace: the offsets to add to their times.
//!
//! Source: Documentation/trace/ftrace.rst, "trace_clock"; `hrtimer_expire_entry` in
//! include/trace/events/timer.h, whose `now` is read once per interrupt, before its timers'
//! functions are called.

use model::units::Nanos;

/// Largest offset within one clock: no interrupt takes longer, and distinct clocks of the kernel
/// differ by more.
const SAME_CLOCK: i64 = 1_000_000_000;

/// Largest offset at which an unknown clock of a trace counts as that of the timers.
const SAME_AS_TRACE: i64 = 20_000;

/// Time for which an offset is valid: clocks drift apart by some 50 ns in a millisecond.
const EPOCH: i64 = 20_000_000;

/// Limit of clocks; the kernel has four for timers.
const MAX_CLOCKS: usize = 8;

/// Offset of one clock: the least one in this epoch and in the one before, because functions of
/// other timers only increase it.
#[derive(Clone, Copy, Debug)]
struct TimerClock {
    began: i64,
    least: i64,
    before: i64,
}

/// Offsets of timers' clocks from the trace's.
#[derive(Clone, Debug, Default)]
pub struct TimerClocks {
    /// True if the trace may be on any clock; else it is on CLOCK_MONOTONIC.
    any: bool,
    clocks: Vec<TimerClock>,
}

impl TimerClocks {
    /// Offsets for a trace whose clock is unknown, or differs from the timers'.
    pub fn of_any_trace() -> TimerClocks {
        TimerClocks { any: true, clocks: Vec::new() }
    }

    /// Offset to add to the times of a timer's clock, if an expiry at `time` has read `now`.
    pub fn offset(&mut self, time: Nanos, now: Nanos) -> i64 {
        let seen = time.0.wrapping_sub(now.0);
        if !self.any {
            return if (0..=SAME_CLOCK).contains(&seen) { 0 } else { seen };
        }
        let near = |clock: &&mut TimerClock| clock.least.wrapping_sub(seen).saturating_abs() <= SAME_CLOCK;
        let Some(clock) = self.clocks.iter_mut().find(near) else {
            if self.clocks.len() == MAX_CLOCKS {
                self.clocks.remove(0);
            }
            self.clocks.push(TimerClock { began: time.0, least: seen, before: i64::MAX });
            return snapped(seen);
        };
        if time.0.wrapping_sub(clock.began) > EPOCH {
            *clock = TimerClock { began: time.0, least: seen, before: clock.least };
        }
        clock.least = clock.least.min(seen);
        snapped(clock.least.min(clock.before))
    }
}

fn snapped(offset: i64) -> i64 {
    if (0..=SAME_AS_TRACE).contains(&offset) { 0 } else { offset }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn on_another_clock_the_least_lag_is_the_offset() {
        let mut clocks = TimerClocks::of_any_trace();
        let ahead = 26_000_000;
        assert_eq!(clocks.offset(Nanos(ahead + 1_002), Nanos(1_000)), ahead + 2);
        assert_eq!(clocks.offset(Nanos(ahead + 2_900), Nanos(2_000)), ahead + 2, "behind other timers");
        // CLOCK_REALTIME is another clock, and does not affect the first.
        let wall = -1_700_000_000_000_000_000;
        assert_eq!(clocks.offset(Nanos(3_000), Nanos(3_000 - wall)), wall);
        assert_eq!(clocks.offset(Nanos(ahead + 4_005), Nanos(4_000)), ahead + 2);
        // It drifts: an offset of two epochs ago is not valid any more.
        for epoch in 1..4 {
            let now = epoch * 2 * EPOCH;
            clocks.offset(Nanos(now + ahead + 500), Nanos(now));
        }
        assert_eq!(clocks.offset(Nanos(7 * EPOCH + ahead + 500), Nanos(7 * EPOCH)), ahead + 500);
    }

    #[test]
    fn a_trace_on_the_timers_clock_has_no_offset() {
        for mut clocks in [TimerClocks::default(), TimerClocks::of_any_trace()] {
            assert_eq!(clocks.offset(Nanos(1_000_900), Nanos(1_000_000)), 0);
            assert_eq!(clocks.offset(Nanos(1_090_000), Nanos(1_000_000)), 0, "behind other timers");
        }
    }
}
