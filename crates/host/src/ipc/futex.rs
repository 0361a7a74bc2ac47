//! Futexes: a word that a thread waits on, and a lock with priority inheritance (futex(2)).

use std::io;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use model::units::Nanos;
use rustix::io::Errno;
use rustix::thread::futex;

use crate::clock;

/// A word that one thread changes and another waits on.
#[derive(Default)]
pub struct FutexWord(AtomicU32);

impl FutexWord {
    /// Current value.
    #[inline(always)]
    pub fn value(&self) -> u32 {
        self.0.load(Acquire)
    }

    /// Stores a value and wakes the waiting thread.
    #[inline(always)]
    pub fn set(&self, value: u32) {
        self.put(value);
        self.wake();
    }

    #[inline(always)]
    fn wake(&self) {
        // It fails only for an invalid address.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    /// Stores a value and wakes no thread.
    #[inline(always)]
    pub fn put(&self, value: u32) {
        self.0.store(value, Release);
    }

    /// Waits while the word holds `value`; an error if a signal comes first.
    #[inline(always)]
    pub fn wait_while(&self, value: u32) -> io::Result<()> {
        while self.value() == value {
            match futex::wait(&self.0, futex::Flags::PRIVATE, value, None) {
                Ok(()) | Err(Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits while the word holds `value`, until that time of CLOCK_MONOTONIC at the latest; an
    /// error of the kind `TimedOut` then. Signals do not end the wait.
    pub fn wait_while_until(&self, value: u32, latest: Nanos) -> io::Result<()> {
        let (timeout, all) = (clock::timespec_of(latest), std::num::NonZeroU32::MAX);
        while self.value() == value {
            match futex::wait_bitset(&self.0, futex::Flags::PRIVATE, value, Some(&timeout), all) {
                Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Lock without priority inheritance: 0 free, 1 held, 2 held and waited for.
#[derive(Default)]
pub struct PlainFutex(FutexWord);

impl PlainFutex {
    /// Takes the lock, until that time of CLOCK_MONOTONIC at the latest.
    pub fn lock_until(&self, latest: Nanos) -> io::Result<()> {
        if self.0.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok() {
            return Ok(());
        }
        while self.0.0.swap(2, Acquire) != 0 {
            self.0.wait_while_until(2, latest)?;
        }
        Ok(())
    }

    /// Releases the lock.
    pub fn unlock(&self) {
        if self.0.0.swap(0, Release) == 2 {
            self.0.wake();
        }
    }
}

/// Lock with priority inheritance: its owner inherits the priority of its waiters.
///
/// The word holds the thread number of the owner; the kernel is called only to wait or to wake
/// ("PI-futex" in the kernel's Documentation/locking/pi-futex.rst).
#[derive(Default)]
pub struct PiFutex(AtomicU32);

impl PiFutex {
    /// Takes the lock for the calling thread, whose number is `thread`.
    #[inline(always)]
    pub fn lock(&self, thread: u32) -> io::Result<()> {
        if self.0.compare_exchange(0, thread, Acquire, Relaxed).is_ok() {
            return Ok(());
        }
        Ok(futex::lock_pi(&self.0, futex::Flags::PRIVATE, None)?)
    }

    /// Takes the lock for the calling thread, until that time of CLOCK_MONOTONIC at the latest.
    #[inline(always)]
    pub fn lock_until(&self, thread: u32, latest: Nanos) -> io::Result<()> {
        pi_lock_until(&self.0, futex::Flags::PRIVATE, thread, latest)
    }

    /// Releases the lock.
    #[inline(always)]
    pub fn unlock(&self, thread: u32) -> io::Result<()> {
        pi_unlock(&self.0, futex::Flags::PRIVATE, thread)
    }
}

/// Takes a lock with priority inheritance, until that time at the latest.
///
/// FUTEX_LOCK_PI restarts after a signal, so that only its time-out ends a wait for an owner that
/// never runs. Its time is CLOCK_REALTIME; FUTEX_LOCK_PI2 (5.14) takes CLOCK_MONOTONIC.
#[inline(always)]
pub(super) fn pi_lock_until(
    word: &AtomicU32,
    flags: futex::Flags,
    thread: u32,
    latest: Nanos,
) -> io::Result<()> {
    if word.compare_exchange(0, thread, Acquire, Relaxed).is_ok() {
        return Ok(());
    }
    match futex::lock_pi2(word, flags, Some(&clock::timespec_of(latest))) {
        Err(Errno::NOSYS) => {
            let timeout = clock::timespec_of(latest + clock::wall_offset());
            Ok(futex::lock_pi(word, flags, Some(&timeout))?)
        }
        locked => Ok(locked?),
    }
}

/// Releases a lock with priority inheritance.
#[inline(always)]
pub(super) fn pi_unlock(word: &AtomicU32, flags: futex::Flags, thread: u32) -> io::Result<()> {
    if word.compare_exchange(thread, 0, SeqCst, Relaxed).is_ok() {
        return Ok(());
    }
    Ok(futex::unlock_pi(word, flags)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_that_is_held_is_waited_for_until_its_time() {
        let (plain, inheriting) = (PlainFutex::default(), PiFutex::default());
        let soon = || clock::monotonic() + Nanos::MILLI;
        let own = crate::rt::thread_id() as u32;
        plain.lock_until(soon()).unwrap();
        inheriting.lock_until(own, soon()).unwrap();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                let own = crate::rt::thread_id() as u32;
                let waited = [plain.lock_until(soon()), inheriting.lock_until(own, soon())];
                waited.map(|locked| locked.unwrap_err().kind())
            });
            assert_eq!(other.join().unwrap(), [io::ErrorKind::TimedOut; 2]);
        });
        plain.unlock();
        inheriting.unlock(own).unwrap();
        plain.lock_until(soon()).unwrap();
        inheriting.lock_until(own, soon()).unwrap();
    }
}
