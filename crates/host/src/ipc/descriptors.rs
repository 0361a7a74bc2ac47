//! Pipes, sockets and eventfds: one end is written, the other is read.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use rustix::event::EventfdFlags;

/// Pair of descriptors: one thread writes, another reads.
pub struct Descriptors {
    read: OwnedFd,
    write: OwnedFd,
    /// Length of a message in bytes.
    length: usize,
}

impl Descriptors {
    /// Writes a message.
    #[inline(always)]
    pub fn write(&self) -> io::Result<()> {
        // An eventfd takes a number of this machine's byte order.
        Ok(rustix::io::write(&self.write, &1u64.to_ne_bytes()[..self.length]).map(drop)?)
    }

    /// Waits for a message and reads it.
    #[inline(always)]
    pub fn read(&self) -> io::Result<()> {
        Ok(rustix::io::read(&self.read, &mut [0u8; 8][..self.length]).map(drop)?)
    }
}

/// Creates a pipe, with messages of one byte.
pub fn pipe() -> io::Result<Descriptors> {
    // SAFETY: the call writes two numbers to the array that it is given.
    let (read, write) = two(|ends| unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    Ok(Descriptors { read, write, length: 1 })
}

/// Creates a pair of connected UNIX stream sockets, with messages of one byte.
pub fn socket_pair() -> io::Result<Descriptors> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: the call writes two numbers to the array that it is given.
    let (read, write) = two(|ends| unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) })?;
    Ok(Descriptors { read, write, length: 1 })
}

/// Creates an eventfd, a counter that is added to and reset by reads.
pub fn eventfd() -> io::Result<Descriptors> {
    let read = rustix::event::eventfd(0, EventfdFlags::CLOEXEC)?;
    let write = read.try_clone()?;
    Ok(Descriptors { read, write, length: 8 })
}

/// Both descriptors that a call creates.
pub(super) fn two(call: impl FnOnce(&mut [libc::c_int; 2]) -> libc::c_int) -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    if call(&mut ends) != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has made both, and this is their only owner.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}
