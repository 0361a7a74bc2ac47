//! File without a name for the writes of a load: its space is freed however the load ends.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags, openat, unlinkat};

use crate::random_u64;

const DIRECTORY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Unnamed file in a folder (O_TMPFILE, open(2)); if the file system has none, a file that is
/// unlinked at once.
pub struct Scratch {
    file: File,
}

impl Scratch {
    pub fn create(folder: &Path) -> io::Result<Scratch> {
        let folder = openat(rustix::fs::CWD, folder, DIRECTORY, Mode::empty())?;
        let mode = Mode::from_raw_mode(0o600);
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        match openat(&folder, ".", flags | OFlags::TMPFILE, mode) {
            Ok(file) => return Ok(Scratch { file: file.into() }),
            // EISDIR: the kernel does not support the flag.
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
        let name = OsString::from(format!(".onbeat-load-{:016x}", random_u64()));
        let file = openat(&folder, &name, flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW, mode)?;
        unlinkat(&folder, &name, AtFlags::empty())?;
        Ok(Scratch { file: file.into() })
    }

    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)
    }

    /// Flushes the written data to the disk.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.sync_all()
    }

    /// Frees the space, to start over.
    pub fn empty(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0)).map(drop)
    }
}

/// Flushes all written data to all disks (sync(2)).
pub fn sync_all() {
    rustix::fs::sync();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scratch_file_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let mut scratch = Scratch::create(folder.path()).unwrap();
        scratch.write(b"some").unwrap();
        scratch.flush().unwrap();
        scratch.empty().unwrap();
        scratch.write(b"more").unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(Scratch::create(&folder.path().join("none")).is_err());
    }
}
