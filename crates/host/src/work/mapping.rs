//! Memory that a load maps, works on, and unmaps.

#![allow(unsafe_code)]

use std::io;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap};

/// Size of a page of memory in bytes.
pub fn page_size() -> usize {
    rustix::param::page_size()
}

/// Anonymous memory of this process; pages are allocated at their first write.
pub struct Mapping {
    memory: NonNull<u8>,
    bytes: usize,
}

impl Mapping {
    pub fn new(bytes: usize) -> io::Result<Mapping> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address.
        let memory = unsafe { mmap_anonymous(std::ptr::null_mut(), bytes, protection, MapFlags::PRIVATE)? };
        let memory = NonNull::new(memory.cast()).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        Ok(Mapping { memory, bytes })
    }

    /// Requests huge pages if available, for memory not written to yet: then copying waits for the
    /// memory, not for address translation (Documentation/admin-guide/mm/transhuge.rst).
    pub fn prefer_large_pages(&mut self) {
        // SAFETY: the whole mapping is ours, and its content stays. A refusal changes nothing.
        let _ = unsafe { madvise(self.memory.as_ptr().cast(), self.bytes, Advice::LinuxHugepage) };
    }

    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped for reading and writing as long as `self` lives, which is borrowed.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_ptr(), self.bytes) }
    }

    /// Removes and restores write permission: each makes every CPU on which this process runs drop
    /// its address translations (mprotect(2)).
    pub fn toggle_protection(&mut self) -> io::Result<()> {
        for flags in [MprotectFlags::READ, MprotectFlags::READ | MprotectFlags::WRITE] {
            // SAFETY: the whole mapping is ours, and writable again before `bytes` can be called.
            unsafe { mprotect(self.memory.as_ptr().cast(), self.bytes, flags)? };
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: no reference outlives `self`.
        let _ = unsafe { munmap(self.memory.as_ptr().cast(), self.bytes) };
    }
}

// SAFETY: it is memory of the process, which any of its threads may use.
unsafe impl Send for Mapping {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_zero_and_can_be_written() {
        let mut mapping = Mapping::new(3 * 4096).unwrap();
        assert!(mapping.bytes().iter().all(|byte| *byte == 0));
        mapping.bytes()[5000] = 1;
        mapping.toggle_protection().unwrap();
        mapping.bytes()[5000] += 1;
        assert_eq!(mapping.bytes()[5000], 2);
    }
}
