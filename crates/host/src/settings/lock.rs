//! The lock of the journal: one process at a time changes settings.

use std::fs::File;
use std::io::{self, Read, Seek, Write};

use rustix::fs::{FlockOperation, Mode, OFlags};

use super::Folder;

/// Who holds the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockOwner {
    pub pid: u32,
}

/// The lock, until this is dropped or the process ends, however it ends.
pub struct JournalLock {
    _file: File,
}

/// Takes the lock of a journal; who has it where it is taken.
pub fn take_lock(folder: &Folder) -> io::Result<Result<JournalLock, LockOwner>> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let fd = rustix::fs::openat(&folder.fd, "lock", flags, Mode::from_raw_mode(0o600))?;
    let mut file = File::from(fd);
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => {
            let mut text = String::new();
            (&mut file).take(256).read_to_string(&mut text)?;
            let pid = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
            return Ok(Err(LockOwner { pid }));
        }
        Err(errno) => return Err(errno.into()),
    }
    // The kernel drops the lock with its owner; the number is for what others are told.
    file.set_len(0)?;
    file.rewind()?;
    let own = crate::process::process_start(std::process::id()).unwrap_or(0);
    writeln!(file, "{} {own}", std::process::id())?;
    Ok(Ok(JournalLock { _file: file }))
}
