//! How a measuring thread sleeps until a slot: one type per kernel mechanism.

use std::sync::atomic::AtomicU32;

use host::{clock, rt};
use model::units::Nanos;

/// The outcome of a sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// It lasted until its instant.
    Full,
    /// A signal ended it early.
    Interrupted,
}

impl Sleep {
    #[inline(always)]
    fn of(full: bool) -> Sleep {
        if full { Sleep::Full } else { Sleep::Interrupted }
    }
}

/// A way to sleep until an instant of CLOCK_MONOTONIC, and the clock read after it.
pub trait Wake {
    /// Whether a slot that was slept through is a sample that is missing.
    const COUNTS_MISSED: bool = true;

    /// Sleeps until the instant, or until a signal comes.
    fn sleep_until(&mut self, instant: Nanos) -> Sleep;

    /// The time of the wake-up.
    #[inline(always)]
    fn now(&self, _expected: Nanos) -> Nanos {
        clock::monotonic()
    }

    /// The sample of a wake-up at that time.
    #[inline(always)]
    fn latency(&self, expected: Nanos, now: Nanos) -> Nanos {
        Nanos(now.0 - expected.0)
    }

    /// CPU time that measuring has taken of the CPU so far: that of the calling thread. 0 where
    /// that clock is refused.
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
    /// A word to sleep on.
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

/// No sleep, and a clock read whose result is set to the expected time: what remains is the loop's
/// own cost.
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
