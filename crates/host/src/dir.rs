//! Open directories for onbeat's own files: names are looked up only in the directory, and symbolic
//! links in it are not followed.
//!
//! On the path to it, only links that no other user can have planted are followed (`way`).

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FallocateFlags, FlockOperation, Mode, OFlags};

use super::beneath::{self, Links};
use super::trusted_path::{self, CreatedDirs, Target};

const OPEN: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

/// Prefix of temporary files; a number follows.
const TEMPORARY: &str = ".onbeat.";

/// Bytes that this user may still write on the file's file system; none if it does not report them.
pub fn free_bytes(file: &File) -> Option<u64> {
    let found = rustix::fs::fstatvfs(file).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize)).filter(|_| found.f_blocks > 0)
}

pub struct Dir {
    fd: OwnedFd,
}

impl Dir {
    /// Wraps an open directory.
    pub(super) fn of(fd: OwnedFd) -> Dir {
        Dir { fd }
    }

    /// Creates the directory, which must be missing or empty, and its parents; returns what was
    /// created, which is removed again on failure.
    pub fn create(path: &Path) -> io::Result<(Dir, CreatedDirs)> {
        let mut made = CreatedDirs::default();
        let opened = Dir::make(path, &mut made);
        if opened.is_err() {
            made.undo();
        }
        Ok((opened?, made))
    }

    /// Opens an existing directory, with any contents.
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

    /// Opens a directory that must be empty.
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

    /// Opens a subdirectory, creating it if missing.
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

    /// Opens an existing subdirectory.
    pub fn existing_subdir(&self, name: &str) -> io::Result<Dir> {
        Ok(Dir { fd: rustix::fs::openat(&self.fd, name, OPEN, Mode::empty())? })
    }

    /// Creates a file for writing, and for reading what was written; it must not exist.
    pub fn new_file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(File::from(rustix::fs::openat(&self.fd, name, flags, Mode::from_raw_mode(0o644))?))
    }

    /// Creates a file and reserves `bytes` of space for it if the file system can.
    ///
    /// Writing that many bytes later does not fail for lack of space.
    pub fn reserve(&self, name: &str, bytes: u64) -> io::Result<File> {
        let file = self.new_file(name)?;
        match rustix::fs::fallocate(&file, FallocateFlags::KEEP_SIZE, 0, bytes) {
            // Not every file system can (tmpfs can, NFS and FAT cannot), and filters of system
            // calls answer with EPERM; then a later write may fail.
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

    /// Renames within the directory, replacing the target; with `durable`, flushes it to the disk.
    pub fn rename(&self, from: &str, to: &str, durable: bool) -> io::Result<()> {
        rustix::fs::renameat(&self.fd, from, &self.fd, to)?;
        // Some file systems cannot flush a directory; the rename itself has happened.
        if durable {
            let _ = rustix::fs::fsync(&self.fd);
        }
        Ok(())
    }

    /// Flushes all data of its file system to the disk.
    pub fn sync_file_system(&self) -> io::Result<()> {
        Ok(rustix::fs::syncfs(&self.fd)?)
    }

    /// Removes a file in or below this directory, if it exists.
    pub fn remove(&self, path: &str) {
        self.unlink(path, AtFlags::empty());
    }

    /// Removes a directory in or below this directory, if it is empty.
    pub fn remove_dir(&self, path: &str) {
        self.unlink(path, AtFlags::REMOVEDIR);
    }

    /// Removes a name; links on its path, which another user may have planted, are not followed.
    fn unlink(&self, path: &str, what: AtFlags) {
        let Some((above, name)) = path.rsplit_once('/') else {
            let _ = rustix::fs::unlinkat(&self.fd, path, what);
            return;
        };
        if let Ok(dir) = beneath::open(&self.fd, above, OFlags::PATH | OFlags::DIRECTORY, Links::Refused) {
            let _ = rustix::fs::unlinkat(dir, name, what);
        }
    }

    /// Writes a temporary file with an unpredictable name in this directory, flushes it, and
    /// renames it to `name`. Its mode is the given one, or that of a new file.
    pub fn write_atomically(&self, name: &OsStr, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        self.write_atomically_by(name, mode, |file| file.write_all(bytes))
    }

    /// Like [`write_atomically`](Dir::write_atomically), but `write` writes the file, piecewise if
    /// it is large; returns its result.
    pub fn write_atomically_by<T>(
        &self,
        name: &OsStr,
        mode: Option<u32>,
        write: impl FnOnce(&mut File) -> io::Result<T>,
    ) -> io::Result<T> {
        let temp = format!("{TEMPORARY}{:016x}", super::random::random_u64());
        let written = self.new_file(&temp).and_then(|mut file| {
            // The user's umask would apply; a file that existed keeps its mode.
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

    /// Like [`write_atomically`](Dir::write_atomically), but one writer at a time per directory, so
    /// that temporary files of a killed writer can be recognized and removed.
    pub fn write_alone(&self, name: &OsStr, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        // The kernel drops the lock with this process. NFS has no locks for directories: then
        // nothing is removed.
        let locked = Dir { fd: rustix::fs::openat(&self.fd, ".", OPEN, Mode::empty())? };
        if rustix::fs::flock(&locked.fd, FlockOperation::LockExclusive).is_ok() {
            // A leftover only costs space, and the next write tries again.
            let _ = locked.remove_temporaries();
        }
        self.write_atomically(name, bytes, mode)
    }

    /// Names in the directory, in any order and unmasked: the digest of some content can look like
    /// an address, which `MachineFiles::list` would mask.
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
