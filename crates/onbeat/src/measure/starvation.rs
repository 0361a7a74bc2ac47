//! Guard that ends a run that starves the machine: a measuring thread never pauses, and the
//! housekeeping thread gets no time to run.
//!
//! A real-time thread that is always behind its schedule keeps all others off its CPU, including
//! the shell that could stop it (sched(7)). Checked at the end of each block, once a second, never
//! per cycle. Pure.

use model::units::Nanos;

/// Number of consecutive full seconds that end the run.
const MAX_SECONDS: u32 = 3;

/// Share of a full second, 90 %: the rest is less than a switch to another thread and back takes.
const FULL_SHARE: (i64, i64) = (90, 100);

/// Maximum length of a second that counts: a longer one means that the process (Ctrl-Z) or the
/// whole machine was stopped. The thread's CPU clock may have advanced with the wall clock then (a
/// virtual machine without steal time).
const MAX_SPAN: Nanos = Nanos(2_000_000_000);

/// Minimum length of a second that counts.
const MIN_SPAN: Nanos = Nanos(500_000_000);

/// Observations of one measuring thread about itself and the housekeeping thread.
#[derive(Clone, Copy, Debug)]
pub struct StarvationGuard {
    at: Nanos,
    used: Nanos,
    taken: u32,
    full: u32,
}

impl StarvationGuard {
    /// A guard that starts at `now`; `used` is the thread's CPU time.
    pub fn new(now: Nanos, used: Nanos) -> StarvationGuard {
        StarvationGuard { at: now, used, taken: 0, full: 0 }
    }

    /// True if the run has to end after this block. `taken` is the number of blocks that the
    /// housekeeping thread has taken.
    pub fn must_end(&mut self, now: Nanos, used: Nanos, taken: u32) -> bool {
        let (span, ran) = (now - self.at, used - self.used);
        let full = span >= MIN_SPAN && span <= MAX_SPAN && ran.0 * FULL_SHARE.1 > span.0 * FULL_SHARE.0;
        self.full = if full && taken == self.taken { self.full + 1 } else { 0 };
        *self = StarvationGuard { at: now, used, taken, full: self.full };
        self.full >= MAX_SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Seconds as their length, the thread's part of it in ms, and whether a block was taken.
    fn must_end_after(seconds: &[(i64, i64, bool)]) -> Option<usize> {
        let (mut now, mut used, mut taken) = (Nanos(5), Nanos(7), 0);
        let mut starvation = StarvationGuard::new(now, used);
        seconds.iter().position(|&(span, ran, took)| {
            (now, used) = (Nanos(now.0 + span * 1_000_000), Nanos(used.0 + ran * 1_000_000));
            taken += u32::from(took);
            starvation.must_end(now, used, taken)
        })
    }

    #[test]
    fn three_full_seconds_without_housekeeping_end_the_run() {
        assert_eq!(must_end_after(&[(1_000, 950, false); 9]), Some(2));
        assert_eq!(must_end_after(&[(1_000, 900, false); 9]), None, "not over 90 %");
        assert_eq!(must_end_after(&[(1_000, 1_000, true); 9]), None, "the housekeeping thread runs");
        let now_and_then = [(1_000, 999, false), (1_000, 999, false), (1_000, 999, true)];
        assert_eq!(must_end_after(&now_and_then.repeat(4)), None);
        assert_eq!(
            must_end_after(&[
                (1_000, 10, true),
                (1_000, 999, false),
                (1_000, 999, false),
                (1_000, 999, false)
            ]),
            Some(3)
        );
    }

    #[test]
    fn a_stopped_or_delayed_process_is_not_starved() {
        // Ctrl-Z for 10 s; then a virtual machine that was stopped for 10 s in the middle of a
        // cycle, three times.
        assert_eq!(must_end_after(&[(10_000, 3, false); 9]), None);
        assert_eq!(
            must_end_after(&[(10_000, 9_999, false), (10_000, 9_999, false), (10_000, 9_999, false)]),
            None
        );
        // Load on the housekeeping CPU: no block is taken, and the thread sleeps as always.
        assert_eq!(must_end_after(&[(1_000, 300, false); 60]), None);
        // Blocks that end in quick succession do not count as seconds.
        assert_eq!(must_end_after(&[(10, 10, false); 90]), None);
    }
}
