//! Copies of documents, piece by piece: files of a bundle may be larger than the memory of a
//! program.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read, Write};

use model::fact::Fact;

use super::super::access::{Access, no_file};
use super::super::dir::Dir;
use super::MachineFiles;

/// Bytes of a file in memory at a time.
const AT_ONCE: usize = 256 << 10;

impl MachineFiles {
    /// Copies a file unmasked, like [`MachineFiles::read_as_it_is`], to a name in a folder,
    /// completely or not at all. The outer result is that of reading, EFBIG for a file of more than
    /// `most` bytes; the inner one has the bytes written or the error of writing.
    pub fn copy_as_it_is(&self, path: &str, most: u64, into: &Dir, name: &OsStr) -> Fact<io::Result<u64>> {
        let from: Fact<Box<dyn Read + '_>> = match self.source.answer(path) {
            Some(Access::File(bytes)) => Fact::Known(Box::new(bytes.as_slice())),
            Some(other) => no_file(other),
            None => self.source.plain_file(&self.real(path)).map(|file| Box::new(file) as Box<dyn Read>),
        };
        from.then(|mut from| {
            let mut unread = None;
            let written = into.write_atomically_by(name, None, |file| {
                copy_pieces(&mut from, file, most).map_err(|error| match error {
                    CopyError::Write(error) => error,
                    // An error makes the partial file be removed.
                    CopyError::Read(error) => {
                        let kind = error.kind();
                        unread = Some(error);
                        io::Error::from(kind)
                    }
                })
            });
            match unread {
                Some(error) => self.source.fact_of(&error),
                None => Fact::Known(written),
            }
        })
    }
}

/// Error of a copy, by its side.
#[derive(Debug)]
enum CopyError {
    Read(io::Error),
    Write(io::Error),
}

/// Copies all bytes and returns their number.
fn copy_pieces(from: &mut dyn Read, to: &mut dyn Write, most: u64) -> Result<u64, CopyError> {
    let (mut room, mut length) = (vec![0; AT_ONCE], 0u64);
    loop {
        let read = match from.read(&mut room) {
            Ok(0) => return Ok(length),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Read(error)),
        };
        length += read as u64;
        if length > most {
            return Err(CopyError::Read(io::Error::from_raw_os_error(libc::EFBIG)));
        }
        to.write_all(&room[..read]).map_err(CopyError::Write)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs;

    /// Bytes read but not yet written, and the maximum of them.
    #[derive(Default)]
    struct Held {
        now: Cell<usize>,
        most: Cell<usize>,
    }

    impl Read for &Held {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            into.fill(7);
            self.now.set(self.now.get() + into.len());
            self.most.set(self.most.get().max(self.now.get()));
            Ok(into.len())
        }
    }

    impl Write for &Held {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.now.set(self.now.get() - bytes.len());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn of_a_large_file_a_part_is_in_memory_at_a_time() {
        let held = Held::default();
        let CopyError::Read(error) = copy_pieces(&mut &held, &mut &held, 64 << 20).unwrap_err() else {
            panic!("a write failed")
        };
        assert_eq!(error.raw_os_error(), Some(libc::EFBIG), "it has no end");
        assert_eq!(held.most.get(), AT_ONCE);
    }

    #[test]
    fn a_copy_is_whole_or_not_there() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let large: Vec<u8> = (0..AT_ONCE as u32 * 2 + 3).map(|n| (n % 251) as u8).collect();
        fs::create_dir_all(at("from/folder")).unwrap();
        fs::create_dir(at("to")).unwrap();
        fs::write(at("from/large"), &large).unwrap();
        fs::write(at("from/address"), "enx001122aabbcc").unwrap();
        fs::write(at("secret"), "out").unwrap();
        std::os::unix::fs::symlink("../secret", at("from/leak")).unwrap();
        let (files, to) = (MachineFiles::folder(at("from")), Dir::existing(&at("to")).unwrap());
        let copy = |path: &str, most: u64, name: &str| files.copy_as_it_is(path, most, &to, OsStr::new(name));
        let length = large.len() as u64;
        assert!(matches!(copy("/large", length, "x"), Fact::Known(Ok(copied)) if copied == length));
        assert!(fs::read(at("to/x")).unwrap() == large);
        // An existing file is replaced, or kept if the copy fails.
        assert!(matches!(copy("/address", 15, "x"), Fact::Known(Ok(15))));
        assert!(matches!(copy("/large", length - 1, "x"), Fact::Refused(libc::EFBIG)));
        assert!(matches!(copy("/none", length, "x"), Fact::Absent));
        assert!(matches!(copy("/folder", length, "x"), Fact::Refused(libc::ENODEV)));
        assert!(matches!(copy("/leak", length, "x"), Fact::Refused(libc::EXDEV)));
        assert_eq!(fs::read_to_string(at("to/x")).unwrap(), "enx001122aabbcc");
        fs::create_dir(at("to/folder")).unwrap();
        assert!(matches!(copy("/address", 15, "folder"), Fact::Known(Err(_))));
        assert_eq!(fs::read_dir(at("to")).unwrap().count(), 2, "nothing half written stays");
    }
}
