//! The door: the only code that touches the kernel.
//!
//! A live machine, a made-up tree and a captured bundle differ in a root path, not in code paths.

#![allow(clippy::disallowed_methods)] // This is the replacement that clippy.toml names.

mod beneath;
pub mod clock;
pub mod dir;
#[cfg(target_env = "musl")]
pub mod heap;
pub mod kernel_text;
mod machine;
mod output;
pub mod record;
pub mod rt;
pub mod tracefs;
mod way;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Read, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

pub use machine::{Host, NAMES_LIMIT, READ_LIMIT};
use output::open_input;
pub use output::{check_writable, write_user_file};
pub use way::Made;

/// Whether a descriptor is that of a terminal or another character device, closed or not.
pub fn is_character_device(file: impl AsFd) -> bool {
    let kind = rustix::fs::fstat(file).map(|found| rustix::fs::FileType::from_raw_mode(found.st_mode));
    kind.is_ok_and(|kind| kind.is_char_device())
}

/// A file kept open because a setting lasts as long as it: closing it, or dying, undoes the setting.
pub struct Held {
    _file: File,
}

/// A pseudo-file of the running machine that is read again and again, into the same buffer.
pub struct KeptOpen {
    file: File,
    buffer: Vec<u8>,
}

impl KeptOpen {
    /// Opens it; `bytes` of its beginning will be read.
    pub fn open(path: &str, bytes: usize) -> io::Result<KeptOpen> {
        Ok(KeptOpen { file: File::open(path)?, buffer: vec![0; bytes] })
    }

    /// Opens it; all of it will be read, and some more should it grow.
    pub fn whole(path: &str) -> io::Result<KeptOpen> {
        let mut bytes = Vec::new();
        File::open(path)?.take(READ_LIMIT).read_to_end(&mut bytes)?;
        KeptOpen::open(path, bytes.len() + bytes.len() / 4 + 4096)
    }

    /// Its beginning now.
    pub fn read(&mut self) -> io::Result<&[u8]> {
        let mut filled = 0;
        while filled < self.buffer.len() {
            match self.file.read_at(&mut self.buffer[filled..], filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(&self.buffer[..filled])
    }
}

/// The kernel's log from a point in time on (Documentation/ABI/testing/dev-kmsg).
pub struct KernelLog {
    file: File,
}

impl KernelLog {
    /// Skips what was logged so far; refused without CAP_SYSLOG where dmesg is restricted.
    pub fn from_now_on() -> io::Result<KernelLog> {
        let mut file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg")?;
        file.seek(io::SeekFrom::End(0))?;
        Ok(KernelLog { file })
    }

    /// Goes through the records that came since; at most as many as a log buffer can hold.
    pub fn each_record(&mut self, mut f: impl FnMut(&[u8])) {
        let mut record = [0u8; 8192];
        for _ in 0..100_000 {
            match self.file.read(&mut record) {
                Ok(0) => return,
                Ok(length) => f(&record[..length]),
                // Overwritten meanwhile: reading goes on with the oldest record that is left.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => return,
            }
        }
    }
}

/// Writes the bytes to a device of the running machine and keeps it open.
pub fn hold(path: &str, bytes: &[u8]) -> io::Result<Held> {
    let mut file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(path)?;
    file.write_all(bytes)?;
    Ok(Held { _file: file })
}

/// Reads a file that the user named, whatever it is called, up to a limit.
///
/// A file over the limit, or one without end, costs no more memory than the limit.
pub fn read_user_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_input(path)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!(
            "larger than the {} MiB that such a file can have",
            limit >> 20
        )));
    }
    Ok(bytes)
}

/// A long run's block records are hundreds of MiB: fewer reads.
const LINES_AT_ONCE: usize = 128 << 10;

/// Which file or folder a path is, by device and number.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// Whether the user named a folder.
pub fn is_dir(path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Ok(found) => Ok(found.is_dir()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The lines of a file that the user named, one at a time into one buffer.
pub struct Lines {
    reader: io::BufReader<File>,
    line: Vec<u8>,
    limit: usize,
    too_long: u64,
}

impl Lines {
    /// Opens the file; lines beyond `limit` bytes are skipped and counted.
    pub fn open(path: &Path, limit: usize) -> io::Result<Lines> {
        let file = open_input(path)?;
        Ok(Lines {
            reader: io::BufReader::with_capacity(LINES_AT_ONCE, file),
            line: Vec::new(),
            limit,
            too_long: 0,
        })
    }

    /// The next line without its end; none at the end of the file.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        loop {
            self.line.clear();
            let read = self.reader.by_ref().take(self.limit as u64).read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(None);
            }
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
                return Ok(Some(&self.line));
            }
            if read < self.limit {
                // The last line, without an end: cut short, or not; its parser will tell.
                return Ok(Some(&self.line));
            }
            self.too_long += 1;
            self.reader.skip_until(b'\n')?;
        }
    }

    /// How many lines were skipped because they were too long.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }
}

/// Peak resident memory of this process in KiB.
///
/// From VmHWM of /proc/self/status, because getrusage's figure outlives execve: it is that of whoever started us.
pub fn peak_memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Columns and rows of the terminal on standard error; none where it is none.
pub fn terminal_size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    Some((usize::from(size.ws_col), usize::from(size.ws_row))).filter(|size| size.0 > 0 && size.1 > 0)
}

/// Columns of a terminal; none where it is none.
pub fn columns_of(stream: impl AsFd) -> Option<usize> {
    rustix::termios::tcgetwinsize(stream)
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|&columns| columns > 0)
}

/// Whether this process is the terminal's present job: another's screen is not to be written on.
pub fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stderr()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The machine's memory, from /proc/meminfo; 0 where that cannot be read.
///
/// Not from sysinfo(2): under a filter that denies it the library's call would end the process.
pub fn memory_kib() -> u64 {
    let about = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = about.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    total.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The architecture of the running kernel, as `uname -m`.
pub fn machine() -> String {
    rustix::system::uname().machine().to_string_lossy().into_owned()
}

/// The machine's own name, for the formats that want it; no bundle holds it.
pub fn node_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Whether this process may read what only root may.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A number nobody can foresee, from the kernel (getrandom(2)).
pub fn random_u64() -> u64 {
    let mut bytes = [0u8; 8];
    // Early in boot the pool may not be ready; a clock is then unlikely enough for a name or a seed.
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK) {
        Ok(8) => u64::from_ne_bytes(bytes),
        _ => clock::monotonic().0 as u64,
    }
}
