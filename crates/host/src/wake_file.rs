//! Descriptor by which a thread wakes another one that waits in poll(2).

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// Event descriptor (eventfd(2)).
pub struct WakeFile(OwnedFd);

impl WakeFile {
    pub fn open() -> io::Result<WakeFile> {
        Ok(WakeFile(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Wakes the thread that waits.
    pub fn wake(&self) {
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }

    /// Forgets the wakings so far.
    pub fn clear(&self) {
        let _ = rustix::io::read(&self.0, &mut [0u8; 8][..]);
    }
}

impl AsFd for WakeFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
