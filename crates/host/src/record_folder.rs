//! Folder of a record that grows for months: files are looked up only in it, links are not
//! followed, and what must survive a loss of power is flushed by name.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::folder_lock::{FolderLock, LockOutcome, lock_directory, lock_file, lock_folder};
use crate::trusted_path::{self, CreatedDirs, Target};

/// Files of a record: a folder on disk, or a fake in tests.
///
/// Nothing is durable before it is flushed: a file's bytes by `sync`; its creation, removal or new
/// name by `sync_names`.
pub trait RecordDisk {
    /// Names of its files, in any order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Length of a file in bytes.
    fn length(&self, name: &str) -> io::Result<u64>;

    /// Reads from an offset; may read less than fits, at the end of the file or elsewhere.
    fn read_at(&self, name: &str, from: u64, into: &mut [u8]) -> io::Result<usize>;

    /// Appends to a file, creating it if missing.
    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Truncates a file.
    fn truncate(&self, name: &str, length: u64) -> io::Result<()>;

    /// Flushes the bytes of a file to the disk.
    fn sync(&self, name: &str) -> io::Result<()>;

    /// Renames a file, replacing the target.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Flushes the names of files to the disk.
    fn sync_names(&self) -> io::Result<()>;
}

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC).union(OFlags::NOFOLLOW);
const FILE: OFlags = OFlags::CLOEXEC.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// Folder on disk.
pub struct RecordFolder {
    fd: OwnedFd,
}

impl RecordFolder {
    /// Opens a folder for writing; it and its parents are created if missing.
    pub fn make(path: &Path) -> io::Result<RecordFolder> {
        let mut made = CreatedDirs::default();
        let plain: std::path::PathBuf = path.components().collect(); // without a last `/`
        let (parent, name) = match trusted_path::resolve(&plain, false, Some(&mut made))? {
            Target::Name(parent, name, _) => (parent, name),
            Target::Directory => return RecordFolder::open(path),
            Target::OpenFile(..) => return Err(Errno::NOTDIR.into()),
        };
        match made.make(&parent, &name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                made.undo();
                return Err(error);
            }
            _ => {}
        }
        Ok(RecordFolder { fd: rustix::fs::openat(&parent, &name, FOLDER, Mode::empty())? })
    }

    /// Opens a folder that the user named, for reading.
    pub fn open(path: &Path) -> io::Result<RecordFolder> {
        let flags = FOLDER - OFlags::NOFOLLOW;
        Ok(RecordFolder { fd: rustix::fs::open(path, flags, Mode::empty())? })
    }

    /// Locks out other writers, or returns the owner of the lock.
    pub fn lock(&self) -> io::Result<LockOutcome> {
        lock_folder(&self.fd)
    }

    /// Like [`RecordFolder::lock`], for one file of the folder, by a lock file of this name.
    pub fn lock_as(&self, name: &OsStr) -> io::Result<LockOutcome> {
        lock_file(&self.fd, name)
    }

    /// Locks the folder itself, which leaves no file in it; none if another process holds that
    /// lock.
    pub fn take_turn(&self) -> io::Result<Option<FolderLock>> {
        lock_directory(&self.fd)
    }

    fn file(&self, name: &str, flags: OFlags) -> io::Result<File> {
        let file = File::from(rustix::fs::openat(&self.fd, name, flags | FILE, Mode::from_raw_mode(0o644))?);
        match FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) {
            FileType::RegularFile => Ok(file),
            _ => Err(io::Error::other("not a plain file")),
        }
    }
}

impl RecordDisk for RecordFolder {
    fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.fd)? {
            if let Ok(name) = entry?.file_name().to_str() {
                if name != "." && name != ".." {
                    names.push(name.to_owned());
                }
            }
        }
        Ok(names)
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        Ok(self.file(name, OFlags::RDONLY)?.metadata()?.len())
    }

    fn read_at(&self, name: &str, from: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file(name, OFlags::RDONLY)?.read_at(into, from)
    }

    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.file(name, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?;
        io::Write::write_all(&mut file, bytes)
    }

    fn truncate(&self, name: &str, length: u64) -> io::Result<()> {
        self.file(name, OFlags::WRONLY)?.set_len(length)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        self.file(name, OFlags::WRONLY)?.sync_data()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.fd, from, &self.fd, to)?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.fd, name, AtFlags::empty())?)
    }

    fn sync_names(&self) -> io::Result<()> {
        match rustix::fs::fsync(&self.fd) {
            // Some file systems cannot flush a directory.
            Err(Errno::INVAL) => Ok(()),
            done => Ok(done?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn no_link_is_followed_and_no_pipe_waited_for() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().join(name);
        let folder = RecordFolder::make(&at("a/record/")).unwrap();
        fs::write(at("elsewhere"), "as it was").unwrap();
        symlink(at("elsewhere"), at("a/record/tail")).unwrap();
        assert!(folder.append("tail", b"x").is_err() && folder.truncate("tail", 0).is_err());
        assert!(folder.read_at("tail", 0, &mut [0; 4]).is_err() && folder.sync("tail").is_err());
        rustix::fs::mknodat(&folder.fd, "pipe", FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        assert!(folder.append("pipe", b"x").is_err() && folder.read_at("pipe", 0, &mut [0; 4]).is_err());
        assert_eq!(fs::read_to_string(at("elsewhere")).unwrap(), "as it was");
        symlink(at("a/record"), at("link")).unwrap();
        assert!(RecordFolder::make(&at("link")).is_err() && RecordFolder::open(&at("link")).is_ok());
    }

    #[test]
    fn files_grow_are_cut_and_renamed() {
        let top = tempfile::tempdir().unwrap();
        let folder = RecordFolder::make(&top.path().join("record")).unwrap();
        folder.append("a", b"first").unwrap();
        folder.append("a", b" second").unwrap();
        folder.sync("a").unwrap();
        folder.truncate("a", 8).unwrap();
        folder.append("a", b"!").unwrap();
        folder.rename("a", "b").unwrap();
        folder.sync_names().unwrap();
        let mut bytes = [0; 32];
        assert_eq!(folder.read_at("b", 6, &mut bytes).unwrap(), 3);
        assert_eq!((&bytes[..3], folder.length("b").unwrap()), (&b"se!"[..], 9));
        assert_eq!(folder.names().unwrap(), ["b"]);
        folder.remove("b").unwrap();
        assert!(folder.names().unwrap().is_empty() && folder.remove("b").is_err());
    }

    #[test]
    fn one_process_at_a_time() {
        let top = tempfile::tempdir().unwrap();
        let folder = RecordFolder::make(&top.path().join("record")).unwrap();
        let again = RecordFolder::make(&top.path().join("record")).unwrap();
        let owner = |of: io::Result<LockOutcome>| of.unwrap().ok_or_else(|owner| owner.pid).err();
        let held = folder.lock().unwrap();
        assert!(matches!(held, LockOutcome::Locked(_)));
        assert_eq!(owner(again.lock()), Some(std::process::id()));
        // The lock of a file is independent of it.
        let of_file = folder.lock_as("a.db.lock".as_ref()).unwrap();
        assert!(matches!(of_file, LockOutcome::Locked(_)));
        assert_eq!(owner(again.lock_as("a.db.lock".as_ref())), Some(std::process::id()));
        drop(held);
        assert_eq!(owner(again.lock()), None);
    }

    #[test]
    fn a_turn_is_no_file_and_ends_with_its_value() {
        let top = tempfile::tempdir().unwrap();
        let folder = RecordFolder::make(&top.path().join("bundles")).unwrap();
        let again = RecordFolder::open(&top.path().join("bundles")).unwrap();
        let turn = folder.take_turn().unwrap();
        assert!(turn.is_some() && again.take_turn().unwrap().is_none());
        assert!(folder.take_turn().unwrap().is_none(), "a second one of the same");
        assert_eq!(folder.names().unwrap(), [""; 0]);
        // The lock of a server is independent of it.
        assert!(matches!(again.lock().unwrap(), LockOutcome::Locked(_)));
        drop(turn);
        assert!(again.take_turn().unwrap().is_some());
    }
}
