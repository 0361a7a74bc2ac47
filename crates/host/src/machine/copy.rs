//! Copies of documents, some bytes at a time: files of a bundle may be larger than the memory that
//! a program may take.

use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read, Write};

use model::fact::Fact;

use super::super::access::{Access, no_file};
use super::super::dir::Dir;
use super::MachineFiles;

/// What is in memory at a time of a file.
const AT_ONCE: usize = 256 << 10;

impl MachineFiles {
    /// Copies a file with all of its bytes, as [`MachineFiles::read_as_it_is`] has them, to a name
    /// in a folder: whole, or not at all. What reading it came to, EFBIG where it has more bytes
    /// than `most`; in that how many were written, or why they could not be.
    pub fn copy_as_it_is(&self, path: &str, most: u64, into: &Dir, name: &OsStr) -> Fact<io::Result<u64>> {
        let from: Fact<Box<dyn Read + '_>> = match self.source.answer(path) {
            Some(Access::File(bytes)) => Fact::Known(Box::new(bytes.as_slice())),
            Some(other) => no_file(other),
            None => self.source.plain_file(&self.real(path)).map(|file| Box::new(file) as Box<dyn Read>),
        };
        from.then(|mut from| {
            let mut unread = None;
            let written = into.write_atomically_by(name, None, |file| {
                let copied = copy_pieces(&mut from, file, most)?;
                // What is there of it goes again.
                copied.map_err(|error| {
                    let kind = error.kind();
                    unread = Some(error);
                    io::Error::from(kind)
                })
            });
            match unread {
                Some(error) => self.source.fact_of(&error),
                None => Fact::Known(written),
            }
        })
    }
}

/// How many bytes were copied: outside, why they could not be written, inside, why they could not
/// be read.
fn copy_pieces(from: &mut dyn Read, to: &mut dyn Write, most: u64) -> io::Result<io::Result<u64>> {
    let (mut room, mut length) = (vec![0; AT_ONCE], 0u64);
    loop {
        let read = match from.read(&mut room) {
            Ok(0) => return Ok(Ok(length)),
            Ok(read) => read,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Ok(Err(error)),
        };
        length += read as u64;
        if length > most {
            return Ok(Err(io::Error::from_raw_os_error(libc::EFBIG)));
        }
        to.write_all(&room[..read])?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs;

    /// Bytes that were read and not yet written, and the most that these ever were.
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
        let copied = copy_pieces(&mut &held, &mut &held, 64 << 20).unwrap();
        assert_eq!(copied.unwrap_err().raw_os_error(), Some(libc::EFBIG), "it has no end");
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
        // Over what is there, which stays where it cannot be.
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
