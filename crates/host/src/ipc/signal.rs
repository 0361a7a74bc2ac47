//! Signal to one thread, which waits for it (sigwaitinfo(2)).

#![allow(unsafe_code)]

use std::io;

use crate::rt::sigset::{SignalSet, change_mask, wait_for};

/// Signal that is blocked in the thread that waits for it.
pub struct ThreadSignal {
    signal: libc::c_int,
    set: SignalSet,
}

impl ThreadSignal {
    pub fn new() -> ThreadSignal {
        let signal = libc::SIGRTMIN();
        ThreadSignal { signal, set: SignalSet::from_iter([signal]) }
    }

    /// Blocks it in the calling thread, which it would kill otherwise.
    pub fn block(&self) -> io::Result<()> {
        change_mask(libc::SIG_BLOCK, self.set).map(drop)
    }

    /// Sends it to a thread of this process.
    #[inline(always)]
    pub fn send(&self, thread: u32) -> io::Result<()> {
        let process = rustix::process::getpid().as_raw_pid();
        // SAFETY: tgkill takes integers.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, process, thread, self.signal) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits for it; an error if another signal comes first.
    #[inline(always)]
    pub fn wait(&self) -> io::Result<()> {
        if wait_for(&self.set, None) == self.signal { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    }
}

impl Default for ThreadSignal {
    fn default() -> ThreadSignal {
        ThreadSignal::new()
    }
}
