//! Pipes and sockets between the tasks of one load.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

/// End of a pipe or of a socket.
pub struct Stream(File);

/// Creates a pipe: the reading and the writing end.
pub fn pipe() -> io::Result<(Stream, Stream)> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    Ok((Stream::of(read), Stream::of(write)))
}

/// Creates a stream socket: its two ends.
pub fn socket_pair() -> io::Result<(Stream, Stream)> {
    let (one, other) = UnixStream::pair()?;
    Ok((Stream::of(one.into()), Stream::of(other.into())))
}

impl Stream {
    fn of(fd: OwnedFd) -> Stream {
        Stream(File::from(fd))
    }

    /// Writes all bytes.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.0).write_all(bytes)
    }

    /// Fills the buffer.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<()> {
        (&self.0).read_exact(buffer)
    }
}
