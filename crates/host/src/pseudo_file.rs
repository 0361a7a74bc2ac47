//! Kernel files that stay open: because closing one would revert a setting, or to read one
//! repeatedly.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use super::machine::READ_LIMIT;

/// File kept open because a setting lasts as long as it is open: closing it, or the end of the
/// process, reverts the setting.
pub struct HeldFile {
    _file: File,
}

/// Writes the bytes to a device of the running machine and keeps it open.
pub fn write_and_hold(path: &str, bytes: &[u8]) -> io::Result<HeldFile> {
    let mut file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_CLOEXEC).open(path)?;
    file.write_all(bytes)?;
    Ok(HeldFile { _file: file })
}

/// Pseudo-file of the running machine that is read repeatedly, into the same buffer.
pub struct RereadFile {
    file: File,
    buffer: Vec<u8>,
}

impl RereadFile {
    /// Opens it to read its first `bytes` bytes.
    pub fn open(path: &str, bytes: usize) -> io::Result<RereadFile> {
        Ok(RereadFile { file: File::open(path)?, buffer: vec![0; bytes] })
    }

    /// Opens it to read all of it, with some room for growth.
    pub fn whole(path: &str) -> io::Result<RereadFile> {
        let mut bytes = Vec::new();
        File::open(path)?.take(READ_LIMIT).read_to_end(&mut bytes)?;
        RereadFile::open(path, bytes.len() + bytes.len() / 4 + 4096)
    }

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
