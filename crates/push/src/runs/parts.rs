//! Range of a file, read in small parts, so that a bundle of a gigabyte takes no more memory than a
//! small one.

use std::io::{self, Read};

use host::MachineFiles;
use model::fact::Fact;

/// Limit of one read, in bytes.
const AT_ONCE: usize = 64 << 10;

/// Range of a file below a folder.
pub struct FilePart<'a> {
    files: &'a MachineFiles,
    path: &'a str,
    at: u64,
    end: u64,
    buffer: Vec<u8>,
    used: usize,
}

impl<'a> FilePart<'a> {
    pub fn new(files: &'a MachineFiles, path: &'a str, at: u64, length: u64) -> FilePart<'a> {
        FilePart { files, path, at, end: at.saturating_add(length), buffer: Vec::new(), used: 0 }
    }

    fn fill(&mut self) -> io::Result<()> {
        let left = usize::try_from(self.end.saturating_sub(self.at)).unwrap_or(AT_ONCE);
        self.used = 0;
        self.buffer = match self.files.read_part(self.path, self.at, left.min(AT_ONCE)) {
            Fact::Known(bytes) => bytes,
            Fact::Refused(errno) => return Err(io::Error::from_raw_os_error(errno)),
            _ => return Err(io::Error::new(io::ErrorKind::NotFound, "it is gone")),
        };
        self.at += self.buffer.len() as u64;
        Ok(())
    }
}

impl Read for FilePart<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.used == self.buffer.len() && self.at < self.end {
            self.fill()?;
        }
        let length = into.len().min(self.buffer.len() - self.used);
        into[..length].copy_from_slice(&self.buffer[self.used..self.used + length]);
        self.used += length;
        Ok(length)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make files of their own.
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_whole_and_links_lead_nowhere() {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        std::fs::write(folder.path().join("x"), &bytes).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link")).unwrap();
        let files = MachineFiles::folder(folder.path());
        for (at, length) in
            [(0u64, 200_000u64), (1, 70_000), (199_999, 9), (200_000, 5), (0, u64::MAX), (5, 0)]
        {
            let mut read = Vec::new();
            FilePart::new(&files, "/x", at, length).read_to_end(&mut read).unwrap();
            let end = at.saturating_add(length).min(200_000) as usize;
            assert!(read == bytes[at as usize..end], "{at} {length}");
        }
        assert!(FilePart::new(&files, "/link", 0, 9).read_to_end(&mut Vec::new()).is_err());
        assert!(FilePart::new(&files, "/none", 0, 9).read_to_end(&mut Vec::new()).is_err());
    }
}
