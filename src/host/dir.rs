//! A directory of ours, held open: names are looked up in it and nowhere else, and no link in it is followed.
//!
//! The way to it is the user's: links above it are followed, as for any path that somebody gives.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FallocateFlags, Mode, OFlags};

/// Bytes that this user may still write where the file lies; none where the file system does not say.
pub fn free_bytes(file: &File) -> Option<u64> {
    let found = rustix::fs::fstatvfs(file).ok()?;
    Some(found.f_bavail.saturating_mul(found.f_frsize)).filter(|_| found.f_blocks > 0)
}

/// An open directory.
pub struct Dir {
    fd: OwnedFd,
}

impl Dir {
    /// Opens a directory.
    pub fn open(path: &Path) -> io::Result<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Dir { fd: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// Makes the directory, which must not exist or be empty, and those above it; says whether it was made.
    pub fn create(path: &Path) -> io::Result<(Dir, bool)> {
        if let Some(parent) = path.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent)?;
        }
        match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
            Ok(()) => {}
            Err(rustix::io::Errno::EXIST) => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
                let fd = rustix::fs::open(path, flags, Mode::empty())?;
                let mut names = rustix::fs::Dir::read_from(&fd)?;
                if names.any(|entry| entry.is_ok_and(|e| e.file_name() != c"." && e.file_name() != c"..")) {
                    return Err(io::Error::from_raw_os_error(libc::ENOTEMPTY));
                }
                return Ok((Dir { fd }, false));
            }
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok((Dir { fd: rustix::fs::open(path, flags, Mode::empty())? }, true))
    }

    /// Makes a directory in this one, unless it is there, and opens it.
    pub fn subdir(&self, name: &str) -> io::Result<Dir> {
        match rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(Dir { fd: rustix::fs::openat(&self.fd, name, flags, Mode::empty())? })
    }

    /// Opens a directory that is in this one.
    pub fn existing_subdir(&self, name: &str) -> io::Result<Dir> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        Ok(Dir { fd: rustix::fs::openat(&self.fd, name, flags, Mode::empty())? })
    }

    /// Opens a new file for writing, and for reading what was written; a file of that name must not be there.
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
            // Not every file system can (tmpfs can, NFS and FAT cannot); then the write has to take its chance.
            Ok(()) | Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => Ok(file),
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

    /// Removes a file of this directory, if it is there.
    pub fn remove(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.fd, name, AtFlags::empty());
    }

    /// Removes a directory of this directory, if it is empty.
    pub fn remove_dir(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.fd, name, AtFlags::REMOVEDIR);
    }

    /// Writes a file beside its place under a name nobody can foresee, flushes it, and renames it there.
    pub fn replace(&self, name: &OsStr, bytes: &[u8], mode: u32) -> io::Result<()> {
        let beside = format!(".onbeat.{:016x}", super::random_u64());
        let written = self.new_file(&beside).and_then(|mut file| {
            // The umask is the user's; a file that was there keeps its mode.
            if mode != 0o644 {
                rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
            }
            file.write_all(bytes)?;
            file.sync_all()
        });
        let placed = written.and_then(|()| Ok(rustix::fs::renameat(&self.fd, &beside, &self.fd, name)?));
        if placed.is_err() {
            self.remove(&beside);
        }
        placed
    }
}
