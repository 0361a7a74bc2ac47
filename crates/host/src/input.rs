//! Input files that the user named: bounded in memory, and never blocking without a time limit.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::trusted_path;

/// PIPEFS_MAGIC of include/uapi/linux/magic.h, the file system of unnamed pipes.
const PIPEFS: u64 = 0x5049_5045;

/// Initial size of the buffer of lines; block records of a long run are hundreds of MiB.
const LINES_AT_ONCE: usize = 128 << 10;

/// Reads a file that the user named, up to a limit.
///
/// A file over the limit, or one without end, costs no more memory than the limit.
pub fn read_user_file(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = open_input(path)?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!(
            "larger than the limit of {} MiB for such a file",
            limit >> 20
        )));
    }
    Ok(bytes)
}

/// Device and inode number of a path.
pub fn identity(path: &Path) -> Option<(u64, u64)> {
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}

/// Inode number of a file and the time of its last change, in ns since 1970. The number alone is
/// not enough: a file system may reuse that of a replaced file.
pub fn file_version(path: &Path) -> Option<(u64, u64)> {
    let found = path.metadata().ok()?;
    let changed = found.ctime().wrapping_mul(1_000_000_000).wrapping_add(found.ctime_nsec());
    Some((found.ino(), changed as u64))
}

/// Number of hard links of a plain file, its own name included.
pub fn count_names(path: &Path) -> Option<u64> {
    path.metadata().ok().filter(|found| found.is_file()).map(|found| found.nlink())
}

/// Time of the last write to a file, in seconds since 1970.
pub fn written_at(path: &Path) -> Option<i64> {
    path.metadata().ok().map(|found| found.mtime())
}

/// True if the path is a folder.
pub fn is_dir(path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Ok(found) => Ok(found.is_dir()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Absolute path of an existing file, with links resolved.
pub fn whole_path(path: &Path) -> io::Result<PathBuf> {
    std::fs::canonicalize(path)
}

/// Opens a file that the user named, for reading; named pipes, devices and folders are refused
/// without waiting.
///
/// A descriptor that the shell opened, as for `<(...)`, may be a pipe.
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
        FileType::Fifo => return Err(io::Error::other("a named pipe; use < to read from it")),
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

/// Reader of the lines of a file that the user named, one at a time, out of one buffer.
pub struct Lines {
    file: File,
    buffer: Vec<u8>,
    /// Part of the buffer that was read and not yet returned.
    unread: Range<usize>,
    ended: bool,
    limit: usize,
    too_long: u64,
}

impl Lines {
    /// Opens the file; lines longer than `limit` bytes, newline included, are skipped and counted.
    pub fn open(path: &Path, limit: usize) -> io::Result<Lines> {
        let file = open_input(path)?;
        let buffer = vec![0; LINES_AT_ONCE];
        Ok(Lines { file, buffer, unread: 0..0, ended: false, limit, too_long: 0 })
    }

    /// Next line without its newline; none at the end of the file.
    pub fn next_line(&mut self) -> io::Result<Option<&[u8]>> {
        let (mut skips, mut searched) = (false, 0);
        loop {
            let unread = self.buffer.get(self.unread.clone()).unwrap_or_default();
            let (from, length) = (self.unread.start, unread.len());
            if let Some(at) = unread.get(searched..).and_then(place_of_newline) {
                let line = from..from + searched + at;
                self.unread.start = line.end + 1;
                if !skips && line.len() < self.limit {
                    return Ok(self.buffer.get(line));
                }
                self.too_long += u64::from(!skips);
                (skips, searched) = (false, 0);
                continue;
            }
            if length >= self.limit || skips {
                self.too_long += u64::from(!skips);
                self.unread.start = self.unread.end;
                skips = true;
            } else if self.ended {
                // The last line without a newline may be cut short; its parser decides.
                self.unread.start = self.unread.end;
                return Ok(self.buffer.get(from..from + length).filter(|line| !line.is_empty()));
            }
            if self.ended {
                return Ok(None);
            }
            searched = self.unread.len();
            self.read_on()?;
        }
    }

    /// Reads more data, after moving the unread part to the beginning of the buffer.
    fn read_on(&mut self) -> io::Result<()> {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        if self.unread.end == self.buffer.len() {
            self.buffer.resize(self.buffer.len().saturating_mul(2), 0);
        }
        let room = self.buffer.get_mut(self.unread.end..).unwrap_or_default();
        let read = loop {
            match self.file.read(room) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.ended = read == 0;
        self.unread.end += read;
        Ok(())
    }

    /// Number of lines skipped for their length.
    pub fn too_long(&self) -> u64 {
        self.too_long
    }
}

/// Position of the first newline.
fn place_of_newline(bytes: &[u8]) -> Option<usize> {
    // Searches in chunks that the compiler can compare as a whole.
    const PART: usize = 64;
    let lacks = |part: &&[u8]| part.iter().fold(0, |found, byte| found | u8::from(*byte == b'\n')) == 0;
    let passed = PART * bytes.chunks_exact(PART).take_while(lacks).count();
    bytes.get(passed..)?.iter().position(|byte| *byte == b'\n').map(|at| passed + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a text and the number of those that were too long.
    fn read(text: &[u8], limit: usize) -> (Vec<Vec<u8>>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        crate::write_user_file(&path, text).unwrap();
        let mut lines = Lines::open(&path, limit).unwrap();
        let mut found = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            found.push(line.to_vec());
        }
        (found, lines.too_long())
    }

    fn split(text: &[u8], limit: usize) -> (Vec<Vec<u8>>, u64) {
        let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        let all = lines.len();
        lines.retain(|line| line.len() < limit);
        ((lines.iter().map(|line| line.to_vec()).collect()), (all - lines.len()) as u64)
    }

    #[test]
    fn lines_are_those_of_the_text_wherever_a_read_ends() {
        let line = |length: usize| [vec![b'a' + (length % 26) as u8; length], vec![b'\n']].concat();
        let lengths = [0, 1, 63, 64, 65, 4_000, 0, 70_000, 131_071, 131_072, 300_000, 5, 262_144, 0, 9];
        let mut text: Vec<u8> = lengths.into_iter().flat_map(line).collect();
        text.extend((0..9_000).flat_map(|n| line(n * 7 % 300)));
        for limit in [1, 64, 65, 4_001, 131_072, 131_073, 300_000, 300_001, 1 << 20] {
            assert!(read(&text, limit) == split(&text, limit), "limit {limit}");
            for end in [&b"cut short"[..], &[b'x'; 300_000]] {
                let cut = [&text, end].concat();
                assert!(read(&cut, limit) == split(&cut, limit), "limit {limit}, cut");
            }
        }
        assert_eq!(read(b"", 9), (vec![], 0));
    }
}
