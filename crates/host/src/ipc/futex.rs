//! Futexes: a word that a thread waits on, and a lock with priority inheritance (futex(2)).

use std::io;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};

use rustix::io::Errno;
use rustix::thread::futex;

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

    /// Releases the lock.
    #[inline(always)]
    pub fn unlock(&self, thread: u32) -> io::Result<()> {
        if self.0.compare_exchange(thread, 0, SeqCst, Relaxed).is_ok() {
            return Ok(());
        }
        Ok(futex::unlock_pi(&self.0, futex::Flags::PRIVATE)?)
    }
}
