//! Lock with priority inheritance between processes: its word is in memory that processes can
//! share, and the kernel finds it by that memory instead of by the address (get_futex_key in
//! kernel/futex/core.c).

#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::thread::futex::Flags;

use super::futex::{pi_lock_until, pi_unlock};
use crate::work::page_size;
use model::units::Nanos;

/// Lock in a page of shared memory.
pub struct SharedPiFutex(NonNull<AtomicU32>);

impl SharedPiFutex {
    /// A free lock in a new page.
    pub fn new() -> io::Result<SharedPiFutex> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address.
        let page =
            unsafe { mmap_anonymous(std::ptr::null_mut(), page_size(), protection, MapFlags::SHARED)? };
        let word = NonNull::new(page.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(SharedPiFutex(word))
    }

    fn word(&self) -> &AtomicU32 {
        // SAFETY: the page is mapped, aligned and filled with zeros until `self` is dropped, and it
        // is used as this word only.
        unsafe { self.0.as_ref() }
    }

    /// Takes the lock for the calling thread, until that time of CLOCK_MONOTONIC at the latest.
    #[inline(always)]
    pub fn lock_until(&self, thread: u32, latest: Nanos) -> io::Result<()> {
        pi_lock_until(self.word(), Flags::empty(), thread, latest)
    }

    /// Releases the lock.
    #[inline(always)]
    pub fn unlock(&self, thread: u32) -> io::Result<()> {
        pi_unlock(self.word(), Flags::empty(), thread)
    }
}

impl Drop for SharedPiFutex {
    fn drop(&mut self) {
        // SAFETY: no reference outlives `self`.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), page_size()) };
    }
}

// SAFETY: an atomic word in memory of the process, which any of its threads may use.
unsafe impl Send for SharedPiFutex {}
// SAFETY: as above.
unsafe impl Sync for SharedPiFutex {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;
    use crate::rt::thread_id;

    #[test]
    fn a_held_lock_is_passed_on_and_waited_for_until_its_time() {
        let lock = SharedPiFutex::new().unwrap();
        let soon = || clock::monotonic() + Nanos::MILLI;
        let own = thread_id() as u32;
        lock.lock_until(own, soon()).unwrap();
        std::thread::scope(|scope| {
            let refused = scope.spawn(|| lock.lock_until(thread_id() as u32, soon()));
            let late = refused.join().unwrap().unwrap_err();
            assert_eq!(late.kind(), io::ErrorKind::TimedOut);
            let waits = scope.spawn(|| {
                let its = thread_id() as u32;
                lock.lock_until(its, clock::monotonic() + Nanos(60_000_000_000))?;
                lock.unlock(its)
            });
            lock.unlock(own).unwrap();
            waits.join().unwrap().unwrap();
        });
    }
}
