//! The lock of a folder: one process at a time writes to the journal, or to a record.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags};

use crate::process::process_start;

/// Who holds the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockOwner {
    pub pid: u32,
}

/// The lock, until this is dropped or the process ends, however it ends.
pub struct FolderLock {
    _file: File,
}

/// How often its owner is looked for: who has just taken it has not yet said so.
const LOOKS: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(5);

/// Takes the lock of a folder itself, for which no file is made in it: each user who may read the
/// folder may take it; none where another process has it. It is another lock than that of
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

/// Takes the lock of a folder; who has it where it is taken, 0 where that cannot be told.
pub fn lock_folder(folder: impl AsFd) -> io::Result<Result<FolderLock, LockOwner>> {
    lock_file(folder, OsStr::new("lock"))
}

/// Takes the lock that is a file of a name; it is made if it is not there, and stays.
pub fn lock_file(folder: impl AsFd, name: &OsStr) -> io::Result<Result<FolderLock, LockOwner>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = rustix::fs::openat(&folder, name, flags, Mode::from_raw_mode(0o600))?;
    let mut file = File::from(fd);
    // What is at the end of a link or a pipe is no lock of ours.
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
            return Ok(Err(LockOwner { pid: owner.unwrap_or(0) }));
        }
        std::thread::sleep(BETWEEN);
    }
    // The kernel drops the lock with its owner; the number is for what others are told.
    file.set_len(0)?;
    file.rewind()?;
    let own = process_start(std::process::id()).unwrap_or(0);
    writeln!(file, "{} {own}", std::process::id())?;
    Ok(Ok(FolderLock { _file: file }))
}

/// The process that the file names, if it is running: the one before has left its number there.
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
