//! A disk in memory that logs its operations and can be cut at any place of the log: flushed data
//! survive, and of the rest as much or as little as a loss of power leaves.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use host::RecordDisk;

/// An operation on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Done {
    Create(String),
    Append(String, Vec<u8>),
    Truncate(String, u64),
    Sync(String),
    Rename(String, String),
    Remove(String),
    SyncNames,
}

/// Unflushed data that survive a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survives {
    /// All: the process was killed, the machine ran on.
    All,
    /// Nothing.
    Nothing,
    /// Names, but no bytes: files are there and short.
    Names,
    /// Bytes, but no names: what was renamed has its old name.
    Bytes,
    /// Names, and of the bytes of each file half.
    Half,
}

impl Survives {
    pub const ALL: [Survives; 5] =
        [Survives::All, Survives::Nothing, Survives::Names, Survives::Bytes, Survives::Half];
}

#[derive(Clone, Debug, Default)]
struct MemoryFile {
    bytes: Vec<u8>,
    /// Bytes on the disk.
    flushed: Vec<u8>,
    /// Length up to which both are equal.
    same: usize,
}

#[derive(Clone, Debug, Default)]
struct Files {
    /// Files by number: a rename moves a name, not a file.
    files: BTreeMap<u64, MemoryFile>,
    names: BTreeMap<String, u64>,
    flushed_names: BTreeMap<String, u64>,
    next: u64,
}

/// Fake disk in memory.
#[derive(Default)]
pub struct MemoryDisk {
    now: RefCell<Files>,
    log: RefCell<Vec<Done>>,
    /// True if the log is kept: that of years is long.
    pub logs: bool,
    /// Number of flushes of files.
    pub syncs: Cell<u64>,
    /// Number of flushes of names.
    pub name_syncs: Cell<u64>,
    /// Largest total size of all files, in whole blocks.
    pub peak: Cell<u64>,
    /// Size limit of all files together, beyond which an append fails.
    pub room: Cell<Option<u64>>,
}

impl MemoryDisk {
    /// An empty disk that keeps its log.
    pub fn logged() -> MemoryDisk {
        MemoryDisk { logs: true, ..MemoryDisk::default() }
    }

    /// Length of the log.
    pub fn steps(&self) -> usize {
        self.log.borrow().len()
    }

    /// The disk after `steps` of the log, half of the next append, and a loss of power.
    pub fn cut(&self, steps: usize, survives: Survives) -> MemoryDisk {
        let log = self.log.borrow();
        let mut files = Files::default();
        log[..steps].iter().for_each(|done| files.apply(done));
        if let Some(Done::Append(name, bytes)) = log.get(steps).filter(|_| survives != Survives::Nothing) {
            files.apply(&Done::Append(name.clone(), bytes[..bytes.len() / 2].to_vec()));
        }
        files.lose(survives);
        MemoryDisk { now: RefCell::new(files), ..MemoryDisk::default() }
    }

    /// Contents of a file.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.now.borrow().file(name).map(|file| file.bytes.clone())
    }

    /// Writes or removes a file.
    pub fn put(&self, name: &str, bytes: Option<&[u8]>) {
        let mut now = self.now.borrow_mut();
        match bytes {
            Some(bytes) => {
                now.apply(&Done::Create(name.to_owned()));
                now.apply(&Done::Truncate(name.to_owned(), 0));
                now.apply(&Done::Append(name.to_owned(), bytes.to_vec()));
            }
            None => now.apply(&Done::Remove(name.to_owned())),
        }
    }

    /// Total size of all files, in whole blocks.
    pub fn size(&self) -> u64 {
        let now = self.now.borrow();
        now.names.values().map(|file| (now.files[file].bytes.len() as u64).next_multiple_of(4096)).sum()
    }

    /// Copy of the current contents, without the log.
    pub fn copy(&self) -> MemoryDisk {
        MemoryDisk { now: RefCell::new(self.now.borrow().clone()), ..MemoryDisk::default() }
    }

    fn done(&self, done: Done) -> io::Result<()> {
        self.now.borrow_mut().apply(&done);
        if self.logs {
            self.log.borrow_mut().push(done);
        }
        Ok(())
    }

    fn has(&self, name: &str) -> io::Result<()> {
        let found = self.now.borrow().names.contains_key(name);
        if found { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

impl Files {
    fn file(&self, name: &str) -> Option<&MemoryFile> {
        self.names.get(name).and_then(|file| self.files.get(file))
    }

    fn file_mut(&mut self, name: &str) -> Option<&mut MemoryFile> {
        self.names.get(name).and_then(|file| self.files.get_mut(file))
    }

    fn apply(&mut self, done: &Done) {
        match done {
            Done::Create(name) => {
                if !self.names.contains_key(name) {
                    self.next += 1;
                    self.files.insert(self.next, MemoryFile::default());
                    self.names.insert(name.clone(), self.next);
                }
            }
            Done::Append(name, bytes) => {
                if let Some(file) = self.file_mut(name) {
                    file.bytes.extend_from_slice(bytes);
                }
            }
            Done::Truncate(name, length) => {
                if let Some(file) = self.file_mut(name) {
                    file.bytes.truncate(*length as usize);
                    file.same = file.same.min(file.bytes.len());
                }
            }
            Done::Sync(name) => {
                if let Some(file) = self.file_mut(name) {
                    file.flushed.truncate(file.same);
                    file.flushed.extend_from_slice(&file.bytes[file.same..]);
                    file.same = file.bytes.len();
                }
            }
            Done::Rename(from, to) => {
                if let Some(file) = self.names.remove(from) {
                    self.names.insert(to.clone(), file);
                }
            }
            Done::Remove(name) => drop(self.names.remove(name)),
            Done::SyncNames => {
                self.flushed_names = self.names.clone();
                // Files that have no name now, and had none on the disk, are gone.
                let named: BTreeSet<u64> = self.names.values().copied().collect();
                self.files.retain(|file, _| named.contains(file));
            }
        }
    }

    fn lose(&mut self, survives: Survives) {
        match survives {
            Survives::All => return,
            Survives::Nothing | Survives::Bytes => self.names = self.flushed_names.clone(),
            Survives::Names | Survives::Half => {}
        }
        for file in self.files.values_mut() {
            match survives {
                Survives::Nothing | Survives::Names => file.bytes = file.flushed.clone(),
                Survives::Half if file.bytes.len() > file.flushed.len() => {
                    let length = file.flushed.len().midpoint(file.bytes.len());
                    file.bytes.truncate(length);
                }
                _ => {}
            }
        }
    }
}

impl RecordDisk for MemoryDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.now.borrow().names.keys().cloned().collect())
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        self.has(name)?;
        Ok(self.now.borrow().file(name).map_or(0, |file| file.bytes.len() as u64))
    }

    fn read_at(&self, name: &str, from: u64, into: &mut [u8]) -> io::Result<usize> {
        self.has(name)?;
        let now = self.now.borrow();
        let bytes = now.file(name).map_or(&[][..], |file| &file.bytes);
        let rest = bytes.get(from as usize..).unwrap_or_default();
        let length = rest.len().min(into.len());
        into[..length].copy_from_slice(&rest[..length]);
        Ok(length)
    }

    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        if self.has(name).is_err() {
            self.done(Done::Create(name.to_owned()))?;
        }
        if self.room.get().is_some_and(|room| self.size() + bytes.len() as u64 > room) {
            // A part is written, as by write(2).
            self.done(Done::Append(name.to_owned(), bytes[..bytes.len() / 3].to_vec()))?;
            return Err(io::Error::from_raw_os_error(libc::ENOSPC));
        }
        self.done(Done::Append(name.to_owned(), bytes.to_vec()))?;
        self.peak.set(self.peak.get().max(self.size()));
        Ok(())
    }

    fn truncate(&self, name: &str, length: u64) -> io::Result<()> {
        self.has(name)?;
        self.done(Done::Truncate(name.to_owned(), length))
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        self.has(name)?;
        self.syncs.set(self.syncs.get() + 1);
        self.done(Done::Sync(name.to_owned()))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.has(from)?;
        self.done(Done::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.has(name)?;
        self.done(Done::Remove(name.to_owned()))
    }

    fn sync_names(&self) -> io::Result<()> {
        self.name_syncs.set(self.name_syncs.get() + 1);
        self.done(Done::SyncNames)
    }
}

impl RecordDisk for &MemoryDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        (**self).names()
    }

    fn length(&self, name: &str) -> io::Result<u64> {
        (**self).length(name)
    }

    fn read_at(&self, name: &str, from: u64, into: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(name, from, into)
    }

    fn append(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        (**self).append(name, bytes)
    }

    fn truncate(&self, name: &str, length: u64) -> io::Result<()> {
        (**self).truncate(name, length)
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        (**self).sync(name)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        (**self).rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        (**self).remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        (**self).sync_names()
    }
}
