//! Sleep of a measuring thread until a slot: one type per kernel mechanism.

use std::sync::atomic::AtomicU32;

use host::{clock, rt};
use model::units::Nanos;

/// Outcome of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// Lasted until its instant.
    Full,
    /// Ended early by a signal.
    Interrupted,
}

impl Sleep {
    #[inline(always)]
    fn of(full: bool) -> Sleep {
        if full { Sleep::Full } else { Sleep::Interrupted }
    }
}

/// Mechanism to sleep until an instant of CLOCK_MONOTONIC, and the clock read after it.
pub trait Wake {
    /// True if a skipped slot counts as a missing sample.
    const COUNTS_MISSED: bool = true;

    /// Sleeps until the instant, or until a signal arrives.
    fn sleep_until(&mut self, instant: Nanos) -> Sleep;

    /// Time of the wake-up.
    #[inline(always)]
    fn now(&self, _expected: Nanos) -> Nanos {
        clock::monotonic()
    }

    /// Sample of a wake-up at that time.
    #[inline(always)]
    fn latency(&self, expected: Nanos, now: Nanos) -> Nanos {
        Nanos(now.0 - expected.0)
    }

    /// CPU time that the measurement has taken of its CPU: that of the calling thread. 0 if that
    /// clock cannot be read.
    fn used(&self) -> Nanos {
        clock::thread_cpu().unwrap_or_default()
    }
}

/// clock_nanosleep with an absolute time, as cyclictest does.
pub struct Nanosleep;

impl Wake for Nanosleep {
    #[inline(always)]
    fn sleep_until(&mut self, instant: Nanos) -> Sleep {
        Sleep::of(clock::nanosleep_until(instant))
    }
}

/// A timerfd armed with an absolute time, then read.
impl Wake for clock::TimerFd {
    #[inline(always)]
    fn sleep_until(&mut self, instant: Nanos) -> Sleep {
        Sleep::of(clock::TimerFd::sleep_until(self, instant))
    }
}

/// A POSIX timer armed with an absolute time, then sigwaitinfo.
impl Wake for rt::SignalTimer {
    #[inline(always)]
    fn sleep_until(&mut self, instant: Nanos) -> Sleep {
        Sleep::of(rt::SignalTimer::sleep_until(self, instant))
    }
}

/// FUTEX_WAIT_BITSET with an absolute time-out on a word that is never woken.
pub struct Futex(AtomicU32);

impl Futex {
    /// A new word to sleep on.
    pub fn new() -> Futex {
        Futex(clock::futex_word())
    }
}

impl Default for Futex {
    fn default() -> Futex {
        Futex::new()
    }
}

impl Wake for Futex {
    #[inline(always)]
    fn sleep_until(&mut self, instant: Nanos) -> Sleep {
        Sleep::of(clock::futex_until(&self.0, instant))
    }
}

/// No sleep, and a clock read whose result is replaced by the expected time: what remains is the
/// cost of the loop.
pub struct NoSleep;

impl Wake for NoSleep {
    #[inline(always)]
    fn sleep_until(&mut self, _instant: Nanos) -> Sleep {
        Sleep::Full
    }

    #[inline(always)]
    fn now(&self, expected: Nanos) -> Nanos {
        std::hint::black_box(clock::monotonic());
        Nanos(expected.0 + 10)
    }
}
