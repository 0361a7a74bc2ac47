//! Descriptor for signals, so that one poll(2) waits for them and for keys.

#![allow(unsafe_code)]

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use super::errno::check;
use super::signal::{block_signals, screen_signals};
use super::sigset::{SignalSet, change_mask};

/// Signal of a [`SignalFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenSignal {
    /// SIGINT, SIGTERM, SIGHUP or SIGXCPU.
    Stop,
    /// The terminal has another size.
    Resize,
}

/// Stop signals and those of a terminal's size, blocked and read.
pub struct SignalFile(OwnedFd);

impl SignalFile {
    /// Blocks the signals in this thread and those that it starts later, and opens the descriptor.
    pub fn open() -> io::Result<SignalFile> {
        block_signals()?;
        let set = screen_signals();
        change_mask(libc::SIG_BLOCK, set)?;
        let (of, size) = (ptr::from_ref(&set), mem::size_of::<SignalSet>());
        let flags = libc::SFD_NONBLOCK | libc::SFD_CLOEXEC;
        // SAFETY: the kernel reads one set of the size that it is given (signalfd(2)).
        let file = check(unsafe { libc::syscall(libc::SYS_signalfd4, -1, of, size, flags) })?;
        // SAFETY: the kernel has just returned it, and nothing else owns it.
        Ok(SignalFile(unsafe { OwnedFd::from_raw_fd(file as libc::c_int) }))
    }

    /// Takes the next signal; `None` if there is none.
    pub fn take(&self) -> Option<ScreenSignal> {
        let mut info = [0u8; mem::size_of::<libc::signalfd_siginfo>()];
        let read = rustix::io::read(&self.0, &mut info[..]).ok()?;
        let number =
            info.first_chunk().filter(|_| read == info.len()).map(|bytes| i32::from_ne_bytes(*bytes))?;
        Some(if number == libc::SIGWINCH { ScreenSignal::Resize } else { ScreenSignal::Stop })
    }
}

impl AsFd for SignalFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_size_is_read_and_nothing_else_is_there() {
        std::thread::spawn(|| {
            let file = SignalFile::open().expect("signalfd");
            assert_eq!(file.take(), None);
            super::super::signal::interrupt_with(super::super::thread_id(), libc::SIGWINCH);
            assert_eq!((file.take(), file.take()), (Some(ScreenSignal::Resize), None));
        })
        .join()
        .expect("no panic");
    }
}
