//! Folder of the journal on disk, `/var/lib/onbeat/journal`, which no other user may read.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{Mode, OFlags};

use super::Store;
use crate::folder_lock::{LockOutcome, lock_folder};
use crate::trusted_path::{self, CreatedDirs, Target};

/// Journal of a machine without one: it is empty, and additions fail.
pub struct NoJournal;

impl Store for NoJournal {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn read(&self, _: &str) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn append(&mut self, _: &str, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn remove(&mut self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::NotFound.into())
    }
}

/// Open folder; files are looked up only in it.
pub struct Folder {
    pub(super) fd: OwnedFd,
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);

impl Folder {
    /// Opens an existing folder.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let Target::Name(parent, name, _) = trusted_path::resolve(path, false, None)? else {
            return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
        };
        let folder = Folder { fd: rustix::fs::openat(&parent, &name, FOLDER, Mode::empty())? };
        folder.require_own()?;
        Ok(folder)
    }

    /// Opens a folder; it and its parents are created if missing.
    pub fn make(path: &Path) -> io::Result<Folder> {
        let mut made = CreatedDirs::default();
        let Target::Name(parent, name, _) = trusted_path::resolve(path, false, Some(&mut made))? else {
            return Err(io::Error::from_raw_os_error(libc::ENOTDIR));
        };
        match rustix::fs::mkdirat(&parent, &name, Mode::from_raw_mode(0o700)) {
            // Unflushed, a loss of power would remove the folder with its contents.
            Ok(()) => flush_directory(&parent)?,
            Err(rustix::io::Errno::EXIST) => {}
            Err(errno) => return Err(errno.into()),
        }
        let folder = Folder { fd: rustix::fs::openat(&parent, &name, FOLDER, Mode::empty())? };
        folder.require_own()?;
        Ok(folder)
    }

    /// Refuses a folder that another user may write to, because root writes what it contains.
    fn require_own(&self) -> io::Result<()> {
        let stat = rustix::fs::fstat(&self.fd)?;
        let open_to_others = stat.st_mode & 0o022 != 0;
        if stat.st_uid != rustix::process::geteuid().as_raw() || open_to_others {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
        Ok(())
    }
}

/// Takes the lock of a journal: only one process at a time changes settings.
pub fn take_lock(folder: &Folder) -> io::Result<LockOutcome> {
    lock_folder(&folder.fd)
}

/// Flushes the entries of a directory, whose descriptor may not be readable.
fn flush_directory(dir: &OwnedFd) -> io::Result<()> {
    let fd = rustix::fs::openat(dir, ".", FOLDER, Mode::empty())?;
    Ok(rustix::fs::fsync(fd).or_else(unless_impossible)?)
}

/// Ignores EINVAL: some file systems cannot flush a directory.
fn unless_impossible(errno: rustix::io::Errno) -> Result<(), rustix::io::Errno> {
    if errno == rustix::io::Errno::INVAL { Ok(()) } else { Err(errno) }
}

impl Store for Folder {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            if let Ok(name) = entry?.file_name().to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(rustix::fs::openat(&self.fd, name, flags, Mode::empty())?);
        if !file.metadata()?.is_file() {
            return Err(io::Error::from_raw_os_error(libc::ENODEV));
        }
        let mut bytes = Vec::new();
        file.take(super::journal::JOURNAL_LIMIT as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::from_raw_mode(0o600);
        let (mut file, new) = match rustix::fs::openat(&self.fd, name, flags, mode) {
            Ok(fd) => (File::from(fd), false),
            Err(rustix::io::Errno::NOENT) => {
                let flags = flags | OFlags::CREATE | OFlags::EXCL;
                (File::from(rustix::fs::openat(&self.fd, name, flags, mode)?), true)
            }
            Err(errno) => return Err(errno.into()),
        };
        file.write_all(bytes)?;
        file.sync_data()?;
        if new {
            rustix::fs::fsync(&self.fd).or_else(unless_impossible)?;
        }
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        // After a loss of power it may reappear, and is removed the next time.
        Ok(rustix::fs::unlinkat(&self.fd, name, rustix::fs::AtFlags::empty())?)
    }
}
