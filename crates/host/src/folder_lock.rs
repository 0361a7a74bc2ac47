//! Locks of folders: only one process at a time writes to the journal, or to a record.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::process::process_start;

/// Owner of a lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockOwner {
    pub pid: u32,
}

/// Held lock, released when dropped or when the process ends, also by a kill.
pub struct FolderLock {
    _file: File,
}

/// Outcome of an attempt to take a lock.
pub enum LockOutcome {
    Locked(FolderLock),
    /// Another process has it.
    Held(LockOwner),
}

impl LockOutcome {
    /// The lock, or the error for its owner.
    pub fn ok_or_else<E>(self, error: impl FnOnce(LockOwner) -> E) -> Result<FolderLock, E> {
        match self {
            LockOutcome::Locked(lock) => Ok(lock),
            LockOutcome::Held(owner) => Err(error(owner)),
        }
    }
}

/// Attempts to read the owner: one that has just taken the lock has not written its number yet.
const LOOKS: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(5);

/// Locks a folder itself, without creating a file in it, so that every user who may read the folder
/// can lock it; none if another process holds it. This lock is independent of that of
/// [`lock_folder`].
pub fn lock_directory(folder: impl AsFd) -> io::Result<Option<FolderLock>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&folder, ".", flags, Mode::empty())?);
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(FolderLock { _file: file })),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Locks a folder through its lock file; else returns its owner, with PID 0 if unknown.
pub fn lock_folder(folder: impl AsFd) -> io::Result<LockOutcome> {
    lock_file(folder, OsStr::new("lock"))
}

/// Locks a file by name; it is created if missing, and is not removed.
pub fn lock_file(folder: impl AsFd, name: &OsStr) -> io::Result<LockOutcome> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(0o600))?;
    let mut file = File::from(fd);
    // The target of a link, or a pipe, is not onbeat's lock file.
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("its lock is not a plain file"));
    }
    let mut looks = 0;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => break,
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(errno) => return Err(errno.into()),
        }
        let owner = owner(&mut file)?;
        looks += 1;
        if owner.is_some() || looks == LOOKS {
            return Ok(LockOutcome::Held(LockOwner { pid: owner.unwrap_or(0) }));
        }
        std::thread::sleep(BETWEEN);
    }
    // The kernel drops the lock with its owner; the number is only for messages of others.
    file.set_len(0)?;
    file.rewind()?;
    let own = process_start(std::process::id()).unwrap_or(0);
    writeln!(file, "{} {own}", std::process::id())?;
    Ok(LockOutcome::Locked(FolderLock { _file: file }))
}

/// Owner named in the file, if it is running; the number may be that of an earlier owner.
fn owner(file: &mut File) -> io::Result<Option<u32>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(256).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut words = text.split_whitespace();
    let pid = words.next().and_then(|word| word.parse().ok());
    let start = words.next().and_then(|word| word.parse().ok());
    Ok(pid.filter(|pid| start.is_some() && process_start(*pid) == start))
}
