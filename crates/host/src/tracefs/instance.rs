//! Tracing instance of onbeat: buffers, events and triggers that do not affect other tracing.
//!
//! Source: Documentation/trace/ftrace.rst ("Instances"), __remove_instance in kernel/trace/trace.c.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::below;
use super::names::Stats;
use model::units::{Cpu, Nanos};

/// Attempts at removing an instance, and the interval: a reader may be leaving the kernel.
const TRIES: usize = 20;
const BETWEEN: Nanos = Nanos(10_000_000);

/// Tracing instance, removed after it and all its pipes were dropped, in any order.
pub struct Instance {
    made: Arc<Made>,
}

struct Made {
    name: String,
    /// Directory that contains it.
    instances: OwnedFd,
    dir: OwnedFd,
    /// Its `tracing_on`, which keeps other processes from removing the instance while it is open
    /// (trace_array_get).
    held: Option<OwnedFd>,
}

impl Instance {
    pub(super) fn make(instances: OwnedFd, name: String) -> io::Result<Instance> {
        rustix::fs::mkdirat(&instances, &name, Mode::from_raw_mode(0o700))?;
        let opened = below::open_dir(&instances, &name)
            .and_then(|dir| Ok((below::open(&dir, "tracing_on", OFlags::WRONLY)?, dir)));
        match opened {
            Ok((held, dir)) => {
                let made = Made { name, instances, dir, held: Some(held) };
                Ok(Instance { made: Arc::new(made) })
            }
            Err(errno) => {
                let _ = below::remove_dir(&instances, &name);
                Err(errno.into())
            }
        }
    }

    /// Reads a text by its path in the instance.
    pub fn read(&self, path: &str) -> io::Result<String> {
        below::read(&self.made.dir, path)
    }

    /// Writes a text; lists of events and triggers add it to their content.
    pub fn write(&self, path: &str, text: &str) -> io::Result<()> {
        below::write(&self.made.dir, path, text)
    }

    /// True if the instance has such a file or directory.
    pub fn exists(&self, path: &str) -> bool {
        below::exists(&self.made.dir, path)
    }

    /// Opens a CPU's buffer as raw pages.
    pub fn pipe(&self, cpu: Cpu) -> io::Result<RawPipe> {
        let path = format!("per_cpu/cpu{}/trace_pipe_raw", cpu.0);
        Ok(RawPipe { file: below::open(&self.made.dir, &path, OFlags::RDONLY)?, _of: Arc::clone(&self.made) })
    }

    /// Contents and losses of a CPU's buffer.
    pub fn stats(&self, cpu: Cpu) -> io::Result<Stats> {
        let text = self.read(&format!("per_cpu/cpu{}/stats", cpu.0))?;
        Stats::parse(&text).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))
    }
}

impl Drop for Made {
    /// Disables all events and removes the instance, and with it its triggers
    /// (event_trace_del_tracer). If that fails, the next run removes it.
    fn drop(&mut self) {
        // Uses open descriptors: the privileges may have been dropped since.
        let _ = self.held.as_ref().map(|held| rustix::io::write(held, b"0"));
        let _ = below::write(&self.dir, "events/enable", "0");
        self.held.take();
        for _ in 0..TRIES {
            match below::remove_dir(&self.instances, &self.name) {
                Err(Errno::BUSY) => crate::clock::sleep_for(BETWEEN),
                _ => return,
            }
        }
    }
}

/// Raw pages of a CPU's buffer, read without waiting.
pub struct RawPipe {
    /// Closed before the instance is removed, which an open file would prevent.
    file: OwnedFd,
    _of: Arc<Made>,
}

impl RawPipe {
    /// Reads the next page into `buf`, which has the size of a page of the ring buffer; none if
    /// there is no event.
    ///
    /// A smaller `buf` gets a page in parts.
    pub fn read_page(&mut self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match rustix::io::read(&self.file, &mut *buf) {
                Ok(0) | Err(Errno::AGAIN) => return Ok(None),
                Ok(length) => return Ok(Some(length)),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
