//! Page of counters shared by a load's processes and their starter.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::thread::futex;

/// Counters of one load process. No two share a cache line on any machine that Linux runs on, and
/// the hot counter shares none with seldom-written fields.
#[repr(C, align(256))]
#[derive(Default)]
struct CounterSlot {
    done: AtomicU64,
    seldom: SeldomWritten,
}

#[repr(C, align(128))]
#[derive(Default)]
struct SeldomWritten {
    /// Number of child processes that it watches.
    watched: AtomicU32,
    /// Number of those that are stopped or have ended.
    idle: AtomicU32,
    /// 1 once it may work.
    open: AtomicU32,
}

/// Distance between two counters in bytes.
const STRIDE: usize = size_of::<CounterSlot>();

/// Counters in memory shared by all processes that map the same file.
pub struct Counters {
    memory: NonNull<CounterSlot>,
    count: usize,
    file: OwnedFd,
}

// SAFETY: the memory is shared, and only accessed as atomic numbers.
unsafe impl Send for Counters {}
// SAFETY: as above.
unsafe impl Sync for Counters {}

/// Reference to one of the counters.
#[derive(Clone, Copy)]
pub struct Counter<'a>(&'a CounterSlot);

impl Counters {
    /// Creates counters, all 0, in an unnamed file (memfd_create(2)).
    pub fn create(count: usize) -> io::Result<Counters> {
        let file = rustix::fs::memfd_create("onbeat-load", rustix::fs::MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, (count.max(1) * STRIDE) as u64)?;
        Counters::map(file, count.max(1))
    }

    /// Counters in the file on standard input.
    pub fn inherited() -> io::Result<Counters> {
        let file = io::stdin().as_fd().try_clone_to_owned()?;
        let bytes = usize::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or(0);
        match bytes / STRIDE {
            0 => Err(io::Error::from_raw_os_error(libc::EINVAL)),
            count => Counters::map(file, count),
        }
    }

    fn map(file: OwnedFd, count: usize) -> io::Result<Counters> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address, and the file is as long as the mapping.
        let memory =
            unsafe { mmap(std::ptr::null_mut(), count * STRIDE, protection, MapFlags::SHARED, &file, 0)? };
        let memory = NonNull::new(memory.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Counters { memory, count, file })
    }

    /// File of the counters, for another process's standard input.
    pub fn file(&self) -> io::Result<File> {
        Ok(File::from(self.file.try_clone()?))
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Lets all waiting processes begin to work.
    pub fn open(&self) {
        for counter in (0..self.count).filter_map(|index| self.get(index)) {
            counter.0.seldom.open.store(1, Ordering::Release);
            // If the call is not available, no process waits either.
            let _ = futex::wake(&counter.0.seldom.open, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    /// Counter at an index; `None` beyond the last.
    pub fn get(&self, index: usize) -> Option<Counter<'_>> {
        // SAFETY: it lies within the mapping, which lives as long as `self`; every access is
        // atomic.
        (index < self.count).then(|| Counter(unsafe { self.memory.add(index).as_ref() }))
    }
}

impl Drop for Counters {
    fn drop(&mut self) {
        // SAFETY: no reference outlives `self`.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.count * STRIDE) };
    }
}

impl Counter<'_> {
    pub fn add(self, n: u64) {
        self.0.done.fetch_add(n, Ordering::Relaxed);
    }

    pub fn value(self) -> u64 {
        self.0.done.load(Ordering::Relaxed)
    }

    /// Waits until all processes of all loads have started: with early ones at work, the others
    /// would start slowly.
    pub fn wait_until_open(self) {
        let open = &self.0.seldom.open;
        while open.load(Ordering::Acquire) == 0 {
            if let Err(rustix::io::Errno::NOSYS) = futex::wait(open, futex::Flags::empty(), 0, None) {
                return;
            }
        }
    }

    /// Stores the number of watched child processes, and of those that are stopped or have ended.
    pub fn tell_tasks(self, watched: u32, idle: u32) {
        self.0.seldom.watched.store(watched, Ordering::Relaxed);
        self.0.seldom.idle.store(idle, Ordering::Relaxed);
    }

    /// Numbers last stored by [`Counter::tell_tasks`].
    pub fn tasks(self) -> (u32, u32) {
        (self.0.seldom.watched.load(Ordering::Relaxed), self.0.seldom.idle.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_shared_by_all_that_map_the_file() {
        let counters = Counters::create(3).unwrap();
        let again = Counters::map(counters.file().unwrap().into(), 3).unwrap();
        counters.get(2).unwrap().add(7);
        counters.get(2).unwrap().tell_tasks(40, 1);
        assert_eq!((again.get(2).unwrap().value(), again.get(1).unwrap().value()), (7, 0));
        assert_eq!((again.get(2).unwrap().tasks(), again.get(1).unwrap().tasks()), ((40, 1), (0, 0)));
        let waiting = std::thread::scope(|scope| {
            let waits = scope.spawn(|| again.get(1).unwrap().wait_until_open());
            counters.open();
            waits.join()
        });
        assert!(waiting.is_ok());
        assert!(again.get(3).is_none() && again.len() == 3);
    }
}
