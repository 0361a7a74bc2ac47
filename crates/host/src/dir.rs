//! An open directory of onbeat's: names are looked up in it and nowhere else, and no symbolic link
//! in it is followed.
//!
//! On the way to it only links are followed that no other user can have planted (`way`).

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FallocateFlags, FlockOperation, Mode, OFlags};

use super::beneath::{self, Links};
use super::trusted_path::{self, CreatedDirs, Target};

const OPEN: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// How the names of files begin that are being written; a number follows.
const TEMPORARY: &str = ".onbeat.";

/// Bytes that this user may still write where the file lies; none where the file system does not
/// say.
pub fn free_bytes(file: &File) -> Option<u64> {
    let found = rustix::fs::fstatvfs(file).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize)).filter(|_| found.f_blocks > 0)
}

pub struct Dir {
    fd: OwnedFd,
}

impl Dir {
    /// A directory that is open.
    pub(super) fn of(fd: OwnedFd) -> Dir {
        Dir { fd }
    }

    /// Makes the directory, which must not exist or be empty, and those above it; with what was
    /// made, which is taken away again if this fails.
    pub fn create(path: &Path) -> io::Result<(Dir, CreatedDirs)> {
        let mut made = CreatedDirs::default();
        let opened = Dir::make(path, &mut made);
        if opened.is_err() {
            made.undo();
        }
        Ok((opened?, made))
    }

    /// Opens a directory that is there, whatever is in it.
    pub fn existing(path: &Path) -> io::Result<Dir> {
        Ok(Dir { fd: rustix::fs::openat(rustix::fs::CWD, path, OPEN, Mode::empty())? })
    }

    fn make(path: &Path, made: &mut CreatedDirs) -> io::Result<Dir> {
        let plain: PathBuf = path.components().collect(); // without a last `/`
        let (parent, name) = match trusted_path::resolve(&plain, false, Some(made))? {
            Target::Name(parent, name, None) => (parent, name),
            Target::Name(parent, name, Some(_)) => return Dir::empty(&parent, &name),
            Target::Directory | Target::OpenFile(..) => return Dir::empty(rustix::fs::CWD, path.as_os_str()),
        };
        match made.make(&parent, &name) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Dir::empty(&parent, &name),
            Err(error) => Err(error),
            Ok(()) => Ok(Dir { fd: rustix::fs::openat(&parent, &name, OPEN, Mode::empty())? }),
        }
    }

    /// Opens a directory in which there is nothing.
    fn empty(parent: impl AsFd, name: &OsStr) -> io::Result<Dir> {
        let fd = rustix::fs::openat(parent, name, OPEN, Mode::empty())?;
        for entry in rustix::fs::Dir::read_from(&fd)? {
            let entry = entry?;
            if entry.file_name() != c"." && entry.file_name() != c".." {
                return Err(io::Error::from_raw_os_error(libc::ENOTEMPTY));
            }
        }
        Ok(Dir { fd })
    }

    /// Makes a directory in this one, unless it is there, and opens it.
    pub fn subdir(&self, name: &str) -> io::Result<Dir> {
        let made = match rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o755)) {
            Ok(()) => true,
            Err(rustix::io::Errno::EXIST) => false,
            Err(errno) => return Err(errno.into()),
        };
        self.existing_subdir(name).inspect_err(|_| {
            if made {
                self.remove_dir(name);
            }
        })
    }

    /// Opens a directory that is in this one.
    pub fn existing_subdir(&self, name: &str) -> io::Result<Dir> {
        Ok(Dir { fd: rustix::fs::openat(&self.fd, name, OPEN, Mode::empty())? })
    }

    /// Opens a new file for writing, and for reading what was written; a file of that name must not
    /// be there.
    pub fn new_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(File::from(rustix::fs::openat(&self.fd, name, flags, Mode::from_raw_mode(0o644))?))
    }

    /// Opens a new file and has the file system set `bytes` aside for it, where it can.
    ///
    /// Writing that much later does not fail for want of space.
    pub fn reserve(&self, name: &str, bytes: u64) -> io::Result<File> {
        let file = self.new_file(name)?;
        match rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes) {
            // Not every file system can (tmpfs can, NFS and FAT cannot), and filters of system
            // calls answer with EPERM; then the write has to take its chance.
            Ok(())
            | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {
                Ok(file)
            }
            Err(errno) => {
                drop(file);
                self.remove(name);
                Err(errno.into())
            }
        }
    }

    /// Renames within the directory, over what is there; `durable` has it reach the disk.
    pub fn rename(&self, from: &str, to: &str, durable: bool) -> io::Result<()> {
        rustix::fs::renameat(&self.fd, from, &self.fd, to)?;
        // Some file systems cannot flush a directory; the rename itself has happened.
        if durable {
            let _ = rustix::fs::fsync(&self.fd);
        }
        Ok(())
    }

    /// Has all that was written on its file system reach the disk, what lies below it included.
    pub fn sync_file_system(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.fd)?)
    }

    /// Removes a file of this directory or below it, if it is there.
    pub fn remove(&self, path: &str) {
        self.unlink(path, AtFlags::empty());
    }

    /// Removes a directory of this directory or below it, if it is empty.
    pub fn remove_dir(&self, path: &str) {
        self.unlink(path, AtFlags::REMOVEDIR);
    }

    /// A link on the way is not followed: another's file could be at its end.
    fn unlink(&self, path: &str, what: AtFlags) {
        let Some((above, name)) = path.rsplit_once('/') else {
            let _ = rustix::fs::unlinkat(&self.fd, path, what);
            return;
        };
        if let Ok(dir) = beneath::open(&self.fd, above, OFlags::PATH | OFlags::DIRECTORY, Links::Refused) {
            let _ = rustix::fs::unlinkat(dir, name, what);
        }
    }

    /// Writes a temporary file in the same directory under an unpredictable name, flushes it, and
    /// renames it there. It gets the mode that is given, or that of a new file.
    pub fn write_atomically(&self, name: &OsStr, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        self.write_atomically_by(name, mode, |file| file.write_all(bytes))
    }

    /// The same with what a function writes to the file, little by little where that is much; what
    /// the function came to.
    pub fn write_atomically_by<T>(
        &self,
        name: &OsStr,
        mode: Option<u32>,
        write: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        let temp = format!("{TEMPORARY}{:016x}", super::random::random_u64());
        let written = self.new_file(&temp).and_then(|mut file| {
            // The umask is the user's; a file that was there keeps its mode.
            if let Some(mode) = mode {
                rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
            }
            let done = write(&mut file)?;
            file.sync_all()?;
            Ok(done)
        });
        let placed = written.and_then(|done| {
            rustix::fs::renameat(&self.fd, &temp, &self.fd, name)?;
            Ok(done)
        });
        if placed.is_err() {
            self.remove(&temp);
        }
        placed
    }

    /// As [`write_atomically`](Dir::write_atomically), in a directory where all write so: one after
    /// the other, so that what a killed writer left can be told and is taken away.
    pub fn write_alone(&self, name: &OsStr, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        // The kernel drops the lock with this process. NFS has none for directories: then nothing
        // is taken away.
        let locked = Dir { fd: rustix::fs::openat(&self.fd, ".", OPEN, Mode::empty())? };
        if rustix::fs::flock(&locked.fd, FlockOperation::LockExclusive).is_ok() {
            // What stays costs space, and the next write looks again.
            let _ = locked.remove_temporaries();
        }
        self.write_atomically(name, bytes, mode)
    }

    /// The names in it, in any order, as they are: those that a machine's files list are masked
    /// where they look like an address, as the digest of some content can.
    pub fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn remove_temporaries(&self) -> io::Result<()> {
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy();
            let number = name.strip_prefix(TEMPORARY).unwrap_or_default();
            if number.len() == 16 && number.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                self.remove(&name);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_was_made_on_the_way_goes_again_and_nothing_else() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let (dir, mut made) = Dir::create(&at("a/b/c/")).unwrap();
        dir.new_file("x").unwrap();
        assert!(Dir::create(&at("a/b/c")).is_err(), "not empty");
        dir.remove("x");
        fs::write(at("a/kept"), "").unwrap();
        made.undo();
        assert!(at("a/kept").exists() && !at("a/b").exists());
        fs::create_dir(at("empty")).unwrap();
        let (_, mut made) = Dir::create(&at("empty")).unwrap();
        made.undo();
        assert!(at("empty").exists(), "it was there before");
        symlink("empty", at("link")).unwrap();
        assert!(Dir::create(&at("link")).is_err());
        assert!(Dir::create(&at("a/new/\u{0}")).is_err());
        assert!(Dir::create(&at(&format!("a/new/{}", "x".repeat(300)))).is_err());
        assert!(!at("a/new").exists(), "made half way and taken away");
    }

    #[test]
    fn what_a_killed_writer_left_goes_with_the_next_write_and_nothing_else() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let left = [".onbeat.0123456789abcdef", ".onbeat.fedcba9876543210"];
        let others = [".onbeat.", ".onbeat.0123456789abcdeg", ".onbeat.0123456789abcdef0", "notes"];
        left.iter().chain(&others).for_each(|name| fs::write(at(name), "half").unwrap());
        let dir = Dir::existing(top.path()).unwrap();
        dir.write_atomically(OsStr::new("notes"), b"first", None).unwrap();
        assert!(left.iter().all(|name| at(name).exists()), "another may be writing them");
        for text in ["second", "third"] {
            dir.write_alone(OsStr::new("notes"), text.as_bytes(), Some(0o600)).unwrap();
            assert_eq!(fs::read_to_string(at("notes")).unwrap(), text);
            assert!(left.iter().all(|name| !at(name).exists()));
            assert!(others.iter().all(|name| at(name).exists()));
        }
        assert_eq!(fs::read_dir(top.path()).unwrap().count(), others.len());
    }

    #[test]
    fn names_are_told_as_they_are() {
        let top = tempfile::tempdir().unwrap();
        let dir = Dir::existing(top.path()).unwrap();
        assert_eq!(dir.names().unwrap(), [""; 0]);
        let named = [".hidden", "0ffff0123456789abcdef0"];
        named.iter().for_each(|name| fs::write(top.path().join(name), "").unwrap());
        let mut names = dir.names().unwrap();
        names.sort();
        assert_eq!(names, named);
    }

    #[test]
    fn nothing_is_removed_through_a_link() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        fs::create_dir_all(at("elsewhere/dir")).unwrap();
        fs::write(at("elsewhere/file"), "").unwrap();
        let (dir, _made) = Dir::create(&at("bundle")).unwrap();
        symlink(at("elsewhere"), at("bundle/host")).unwrap();
        dir.remove("host/file");
        dir.remove_dir("host/dir");
        assert!(at("elsewhere/file").exists() && at("elsewhere/dir").exists());
        dir.subdir("own").unwrap().new_file("file").unwrap();
        dir.remove("own/file");
        dir.remove_dir("own");
        assert!(!at("bundle/own").exists());
    }
}
