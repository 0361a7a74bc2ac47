//! Disk in memory, for the journal: unflushed data, or a part of it, is lost with the power.

use std::collections::BTreeMap;
use std::io;

use super::Countdown;
use crate::settings::Store;

/// Append that fails after it has written a part of the line.
#[derive(Clone, Copy, Debug)]
pub struct AppendFailure {
    /// Number of successful appends before it.
    pub after: u32,
    /// Error number, such as ENOSPC, EROFS or EIO.
    pub errno: i32,
    /// Number of bytes of the line that are written.
    pub leaves: usize,
    /// True if all later appends fail too.
    pub lasts: bool,
}

#[derive(Clone, Debug, Default)]
struct MemoryFile {
    bytes: Vec<u8>,
    /// Number of bytes on the disk.
    flushed: usize,
    /// True if its name is on the disk.
    named: bool,
}

/// Files in memory.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    files: BTreeMap<String, MemoryFile>,
    pub countdown: Countdown,
    pub failure: Option<AppendFailure>,
    /// Number of lines appended.
    pub appends: u32,
    /// Bytes of a line that are written when the process ends during the append, modulo its length
    /// plus 1.
    pub torn: usize,
}

impl MemoryStore {
    /// Simulates a power failure, in which `survives` unflushed bytes of each file are not lost.
    pub fn lose_power(&mut self, survives: usize) {
        self.files.retain(|_, file| file.named || survives > 0);
        for file in self.files.values_mut() {
            let end = file.bytes.len().min(file.flushed + survives);
            file.bytes.truncate(end);
            (file.flushed, file.named) = (end, true);
        }
    }

    /// Adds a file that is on the disk.
    pub fn put(&mut self, name: &str, bytes: &[u8]) {
        let file = MemoryFile { bytes: bytes.to_vec(), flushed: bytes.len(), named: true };
        self.files.insert(name.to_owned(), file);
    }
}

impl Store for MemoryStore {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.files.keys().cloned().collect())
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = self.files.get(name).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))?;
        Ok(file.bytes.clone())
    }

    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let number = self.appends;
        self.appends += 1;
        self.countdown.step();
        let failure = self
            .failure
            .filter(|failure| if failure.lasts { number >= failure.after } else { number == failure.after });
        let file = self.files.entry(name.to_owned()).or_default();
        if let Some(failure) = failure {
            file.bytes.extend(bytes.iter().take(failure.leaves));
            return Err(io::Error::from_raw_os_error(failure.errno));
        }
        let part = self.torn % (bytes.len() + 1);
        file.bytes.extend(&bytes[..part]);
        self.countdown.step();
        file.bytes.extend(&bytes[part..]);
        self.countdown.step();
        (file.flushed, file.named) = (file.bytes.len(), true);
        self.countdown.step();
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.countdown.step();
        let removed = self.files.remove(name).map(|_| ());
        removed.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
    }
}
