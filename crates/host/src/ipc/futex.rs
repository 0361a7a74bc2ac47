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
    /// What it holds.
    #[inline(always)]
    pub fn value(&self) -> u32 {
        self.0.load(Acquire)
    }

    /// Changes it, and wakes the thread that waits for it.
    #[inline(always)]
    pub fn set(&self, value: u32) {
        self.put(value);
        // It fails for an address that is none.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    /// Changes it, and wakes no thread.
    #[inline(always)]
    pub fn put(&self, value: u32) {
        self.0.store(value, Release);
    }

    /// Waits until it no longer holds a value; an error where a signal came first.
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

/// A lock that hands the priority of who waits for it to who holds it.
///
/// It holds the thread number of its owner; the kernel is asked where a thread has to wait
/// or to wake ("PI-futex" in the kernel's Documentation/locking/pi-futex.rst).
#[derive(Default)]
pub struct PiFutex(AtomicU32);

impl PiFutex {
    /// Takes the lock, for the calling thread, whose number this is.
    #[inline(always)]
    pub fn lock(&self, thread: u32) -> io::Result<()> {
        if self.0.compare_exchange(0, thread, Acquire, Relaxed).is_ok() {
            return Ok(());
        }
        Ok(futex::lock_pi(&self.0, futex::Flags::PRIVATE, None)?)
    }

    /// Gives it back.
    #[inline(always)]
    pub fn unlock(&self, thread: u32) -> io::Result<()> {
        if self.0.compare_exchange(thread, 0, SeqCst, Relaxed).is_ok() {
            return Ok(());
        }
        Ok(futex::unlock_pi(&self.0, futex::Flags::PRIVATE)?)
    }
}
