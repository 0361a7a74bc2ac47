//! Files that the user named as inputs: bounded in memory, never blocking without a time limit.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::trusted_path;

/// PIPEFS_MAGIC of include/uapi/linux/magic.h: pipes without a name.
const PIPEFS: u64 = 0x5049_5045;

/// A long run's block records are hundreds of MiB: fewer reads.
const LINES_AT_ONCE: usize = 128 << 10;

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

/// Which file or folder a path is, by device and number.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// Which file a path is, by number, and when that changed last, in ns since 1970. The number alone
/// does not tell: a file system may give that of a file which was replaced to the next one.
pub fn file_version(path: &Path) -> Option<(u64, u64)> {
    let found = path.metadata().ok()?;
    let changed = found.ctime().wrapping_mul(1_000_000_000).wrapping_add(found.ctime_nsec());
    Some((found.ino(), changed as u64))
}

/// How many names a plain file has: one, and one more for each hard link.
pub fn count_names(path: &Path) -> Option<u64> {
    path.metadata().ok().filter(|found| found.is_file()).map(|found| found.nlink())
}

/// When a file was written last, in seconds since 1970.
pub fn written_at(path: &Path) -> Option<i64> {
    path.metadata().ok().map(|found| found.mtime())
}

/// Whether the user named a folder.
pub fn is_dir(path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Ok(found) => Ok(found.is_dir()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The path from the root on of what is there, without links.
pub fn whole_path(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// Opens a file that the user named, for reading; a pipe that has a name, a device or a folder is
/// refused and never waited for.
///
/// What the shell has opened for us, as `<(...)` does, may be a pipe.
pub fn open_input(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let kind = FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode);
    match kind {
        FileType::RegularFile => {}
        FileType::Fifo if is_nameless(&file) || trusted_path::is_descriptor(path) => {
            let flags = rustix::fs::fcntl_getfl(&file)?;
            rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
        }
        FileType::Fifo => return Err(io::Error::other("a pipe with a name, use < to read from it")),
        FileType::Directory => return Err(Errno::ISDIR.into()),
        _ => return Err(io::Error::other("not a plain file")),
    }
    Ok(file)
}

fn is_nameless(pipe: impl AsFd) -> bool {
    // The field's width differs between architectures.
    #[allow(clippy::unnecessary_cast)]
    rustix::fs::fstatfs(pipe).is_ok_and(|found| found.f_type as u64 == PIPEFS)
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
                // The last line without a newline may be cut short; its parser decides.
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
