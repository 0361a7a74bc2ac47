//! The door: the only code that touches the kernel.
//!
//! A live machine, a made-up tree and a captured bundle differ in a root path, not in code paths.

#![allow(clippy::disallowed_methods)] // This is the replacement that clippy.toml names.

pub mod clock;
pub mod dir;
pub mod record;
pub mod rt;

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags};

use record::Recorder;

/// No kernel text that onbeat reads is larger; what is longer is refused as malformed.
pub const READ_LIMIT: u64 = 16 << 20;

/// What came of reading something: each of the four is a different statement about the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<T> {
    /// It was read and understood.
    Known(T),
    /// It does not exist here.
    Absent,
    /// It exists and may not be read; the error number.
    Refused(i32),
    /// It was read and not understood; what was wrong with it.
    Malformed(String),
}

impl<T> Fact<T> {
    /// The value, if known.
    pub fn known(&self) -> Option<&T> {
        match self {
            Fact::Known(value) => Some(value),
            _ => None,
        }
    }

    /// Goes on with a known value.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Fact<U> {
        self.then(|value| Fact::Known(f(value)))
    }

    /// Goes on with a known value where the next step has four outcomes too.
    pub fn then<U>(self, f: impl FnOnce(T) -> Fact<U>) -> Fact<U> {
        match self {
            Fact::Known(value) => f(value),
            Fact::Absent => Fact::Absent,
            Fact::Refused(errno) => Fact::Refused(errno),
            Fact::Malformed(what) => Fact::Malformed(what),
        }
    }

    /// Goes on with a known value where the next step can find it malformed.
    pub fn parse<U>(self, f: impl FnOnce(T) -> Result<U, String>) -> Fact<U> {
        self.then(|value| f(value).map_or_else(Fact::Malformed, Fact::Known))
    }
}

/// A machine to read from: `/`, or a directory that stands for one.
pub struct Host {
    root: PathBuf,
    recorder: Option<Recorder>,
}

impl Host {
    /// The machine this runs on.
    pub fn live() -> Host {
        Host { root: PathBuf::from("/"), recorder: None }
    }

    /// A tree that stands for a machine: made up for a test, or captured.
    pub fn at(root: impl Into<PathBuf>) -> Host {
        Host { root: root.into(), recorder: None }
    }

    /// Notes each access from here on; [`Host::recorded`] hands the notes out.
    pub fn recording(mut self) -> Host {
        self.recorder = Some(Recorder::default());
        self
    }

    /// What was read so far, if this host is recording.
    pub fn recorded(&self) -> Option<&Recorder> {
        self.recorder.as_ref()
    }

    /// The same machine without a recorder: for what must not go into a bundle.
    pub fn unrecorded(&self) -> Host {
        Host { root: self.root.clone(), recorder: None }
    }

    /// Whether this is the running machine.
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Reads a whole file by its absolute path on that machine.
    ///
    /// Sizes that the kernel reports for its pseudo-files are not believed; what is longer than
    /// [`READ_LIMIT`] is malformed, and what is not a plain file is not read at all.
    pub fn read(&self, path: &str) -> Fact<Vec<u8>> {
        let fact = match self.read_bytes(path) {
            Ok(bytes) if bytes.len() as u64 > READ_LIMIT => {
                Fact::Malformed(format!("{path} is longer than {READ_LIMIT} bytes"))
            }
            Ok(bytes) => Fact::Known(bytes),
            Err(error) => fact_of(error, path),
        };
        if let Some(recorder) = &self.recorder {
            recorder.note_read(path, &fact);
        }
        fact
    }

    /// Reads a whole file as text; bytes that are not UTF-8 make it malformed.
    pub fn read_text(&self, path: &str) -> Fact<String> {
        self.read(path)
            .parse(|bytes| String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8 text")))
    }

    /// The names in a directory, sorted; never whole paths.
    pub fn list(&self, path: &str) -> Fact<Vec<String>> {
        let names = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY).and_then(|dir| {
            let mut names = Vec::new();
            for entry in rustix::fs::Dir::read_from(&dir)? {
                let name = entry?.file_name().to_string_lossy().into_owned();
                if name != "." && name != ".." {
                    names.push(name);
                }
            }
            names.sort();
            Ok(names)
        });
        let fact = names.map_or_else(|error| fact_of(error, path), Fact::Known);
        if let Some(recorder) = &self.recorder {
            recorder.note_list(path, &fact);
        }
        fact
    }

    fn read_bytes(&self, path: &str) -> io::Result<Vec<u8>> {
        // Non-blocking, because a tree that stands for a machine may hold a fifo.
        let file = File::from(self.open(path, OFlags::RDONLY | OFlags::NONBLOCK)?);
        let kind = file.metadata()?.file_type();
        if kind.is_fifo() || kind.is_socket() || (!self.is_live() && !kind.is_file()) {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        let mut bytes = Vec::new();
        file.take(READ_LIMIT + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn open(&self, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
        let relative = path.trim_start_matches('/');
        if self.is_live() {
            return Ok(rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty())?);
        }
        // Somebody else's tree: neither `..` nor a link may lead out of it (openat2(2)).
        let root =
            rustix::fs::open(&self.root, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        Ok(rustix::fs::openat2(root, relative, flags | OFlags::CLOEXEC, Mode::empty(), resolve)?)
    }
}

fn fact_of<T>(error: io::Error, path: &str) -> Fact<T> {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENOTDIR | libc::ENXIO | libc::ENODEV) => Fact::Absent,
        Some(errno) => Fact::Refused(errno),
        None => Fact::Malformed(format!("{path}: {error}")),
    }
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
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a plain file"));
    }
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
pub fn is_dir(path: &Path) -> bool {
    path.is_dir()
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
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("not a plain file"));
        }
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

/// Writes a file that the user named: a new or plain file beside its place first, then by rename, so that
/// it is never half there. What is a link, a device or a pipe (/dev/stdout is a link to one) is written
/// to as it is, and stays what it is; but no link is followed in a folder that everybody may write to.
pub fn write_user_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let there = fs::symlink_metadata(path).ok();
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if there.as_ref().is_some_and(|meta| !meta.is_file()) {
        let link = there.is_some_and(|meta| meta.file_type().is_symlink());
        if link && fs::metadata(parent)?.permissions().mode() & 0o002 != 0 {
            // Anybody can have put it there, to have a root process write where it leads.
            return Err(io::Error::other("a link in a folder that everybody may write to is not followed"));
        }
        return OpenOptions::new().write(true).create(true).truncate(true).open(path)?.write_all(bytes);
    }
    let name = path.file_name().ok_or_else(|| io::Error::other("not the name of a file"))?;
    let mode = there.map_or(0o644, |meta| meta.permissions().mode() & 0o777);
    dir::Dir::open(parent)?.replace(name, bytes, mode)
}

/// Peak resident memory of this process in KiB.
///
/// From VmHWM of /proc/self/status, because getrusage's figure outlives execve: it is that of whoever started us.
pub fn peak_memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Whether a file can be made or replaced there, as far as can be told without doing it.
pub fn check_writable(path: &Path) -> io::Result<()> {
    use rustix::fs::{Access, access};
    let parent = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match fs::metadata(path) {
        Ok(meta) if meta.is_dir() => Err(io::Error::from_raw_os_error(libc::EISDIR)),
        Ok(meta) if !meta.is_file() => Ok(access(path, Access::WRITE_OK)?),
        _ if !fs::metadata(parent)?.is_dir() => Err(io::Error::from_raw_os_error(libc::ENOTDIR)),
        _ => Ok(access(parent, Access::WRITE_OK)?),
    }
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

/// The architecture of the running kernel, as `uname -m`.
pub fn machine() -> String {
    rustix::system::uname().machine().to_string_lossy().into_owned()
}

/// Removes a directory if it is empty.
pub fn remove_empty_dir(path: &Path) {
    let _ = fs::remove_dir(path);
}

/// The machine's own name, for the formats that want it; no bundle holds it.
pub fn node_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
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
