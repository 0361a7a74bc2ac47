//! Clocks and sleeps that need no `unsafe`: rustix makes the system calls, and finds the clock in
//! the vDSO.

mod calls;

pub use calls::utc_offset_s;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicU32;

use rustix::thread::futex;
use rustix::thread::{ClockId, NanosleepRelativeResult};
use rustix::time::{Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec};

use model::units::Nanos;

#[cfg(not(target_env = "musl"))]
#[inline(always)]
fn nanos_of(time: Timespec) -> Nanos {
    // Widened where a kernel of 32 bits has narrower fields.
    #[allow(clippy::unnecessary_cast)]
    Nanos(time.tv_sec as i64 * 1_000_000_000 + time.tv_nsec as i64)
}

#[inline(always)]
pub(crate) fn timespec_of(time: Nanos) -> Timespec {
    // Instants are never negative; unsigned division is a multiplication and a shift.
    let ns = time.0 as u64;
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// Time of CLOCK_MONOTONIC, through the vDSO if the clocksource allows it.
#[inline(always)]
pub fn monotonic() -> Nanos {
    // In a static program rustix finds no vDSO and makes a system call; musl's own function finds
    // it.
    #[cfg(target_env = "musl")]
    return calls::musl_monotonic();
    #[cfg(not(target_env = "musl"))]
    nanos_of(rustix::time::clock_gettime(rustix::time::ClockId::Monotonic))
}

/// CPU time of the calling thread; a system call, and `None` if a filter refuses it.
pub fn thread_cpu() -> Option<Nanos> {
    calls::clock_time(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of another thread of this process; `None` if there is no such thread.
pub fn cpu_of_thread(thread: i32) -> Option<Nanos> {
    // Clock of a thread by its number: MAKE_THREAD_CPUCLOCK of include/linux/posix-timers.h with
    // CPUCLOCK_SCHED.
    const PER_THREAD_SCHED: i32 = 4 | 2;
    calls::clock_time(!thread << 3 | PER_THREAD_SCHED)
}

/// Offset of CLOCK_REALTIME from CLOCK_MONOTONIC.
pub fn wall_offset() -> Nanos {
    offset_of(libc::CLOCK_REALTIME)
}

/// Offset of CLOCK_BOOTTIME from CLOCK_MONOTONIC: the time that the machine was suspended.
pub fn boot_offset() -> Nanos {
    offset_of(libc::CLOCK_BOOTTIME)
}

/// Offset of a clock from CLOCK_MONOTONIC. Reads the clock between two reads of CLOCK_MONOTONIC,
/// several times; the closest pair has the smallest error.
fn offset_of(clock: libc::clockid_t) -> Nanos {
    let mut best = (i64::MAX, Nanos(0));
    for _ in 0..5 {
        let (before, wall, after) = (monotonic(), calls::clock_time(clock), monotonic());
        let Some(wall) = wall else { continue };
        let spread = after.0 - before.0;
        if spread < best.0 {
            best = (spread, Nanos(wall.0 - before.0 - spread / 2));
        }
    }
    best.1
}

/// Sleeps until an instant of CLOCK_MONOTONIC; returns false if a signal interrupts it.
#[inline(always)]
pub fn nanosleep_until(instant: Nanos) -> bool {
    rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &timespec_of(instant)).is_ok()
}

/// Sleeps for a span; a signal ends it early.
pub fn sleep_for(span: Nanos) {
    let _: NanosleepRelativeResult =
        rustix::thread::clock_nanosleep_relative(ClockId::Monotonic, &timespec_of(span));
}

/// Sleeps on a futex that no thread wakes; returns false if a signal comes before the time-out.
#[inline(always)]
pub fn futex_until(word: &AtomicU32, instant: Nanos) -> bool {
    let timeout = timespec_of(instant);
    let all = std::num::NonZeroU32::MAX;
    matches!(
        futex::wait_bitset(word, futex::Flags::PRIVATE, 0, Some(&timeout), all),
        Err(rustix::io::Errno::TIMEDOUT)
    )
}

/// Futex word for [`futex_until`].
pub fn futex_word() -> AtomicU32 {
    AtomicU32::new(0)
}

/// A timerfd, armed for each wake-up so that it expires at exactly the scheduled time.
pub struct TimerFd(OwnedFd);

impl TimerFd {
    pub fn new() -> io::Result<TimerFd> {
        Ok(TimerFd(rustix::time::timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?))
    }

    /// Arms the timer and waits for it; returns false if a signal interrupts it.
    #[inline(always)]
    pub fn sleep_until(&self, instant: Nanos) -> bool {
        let mut expirations = [0u8; 8];
        self.arm(instant) && rustix::io::read(&self.0, &mut expirations).is_ok()
    }

    /// Arms the timer without waiting; returns false on failure.
    #[inline(always)]
    pub fn arm(&self, instant: Nanos) -> bool {
        let once = Itimerspec { it_interval: Timespec::default(), it_value: timespec_of(instant) };
        rustix::time::timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &once).is_ok()
    }
}

/// Resolution of timers: 1 ns with high-resolution timers, else a tick (clock_getres(2)); `None` if
/// a filter refuses the call.
pub fn timer_resolution() -> Option<Nanos> {
    calls::clock_resolution(libc::CLOCK_MONOTONIC)
}

/// Cost of one clock read: the least of several averages over a hundred reads.
pub fn clock_read_cost() -> Nanos {
    let average = || {
        let start = monotonic();
        for _ in 0..99 {
            std::hint::black_box(monotonic());
        }
        (monotonic().0 - start.0) / 100
    };
    Nanos((0..20).map(|_| average()).min().unwrap_or(0))
}
