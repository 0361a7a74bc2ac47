//! A disk in memory that keeps a log of what was done to it, and can be cut at any place of it:
//! what was flushed by then is there, and of the rest as much or as little as a loss of power
//! leaves.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

use host::RecordDisk;

/// One thing that was done.
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

/// What a loss of power leaves of what was not flushed.
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
    /// What is on the disk, and up to where that is the same.
    flushed: Vec<u8>,
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

/// The disk.
#[derive(Default)]
pub struct MemoryDisk {
    now: RefCell<Files>,
    log: RefCell<Vec<Done>>,
    /// Whether the log is kept: that of years is long.
    pub logs: bool,
    /// How many flushes there were, of files and of names.
    pub syncs: Cell<u64>,
    pub name_syncs: Cell<u64>,
    /// The most that all files took together, in whole blocks.
    pub peak: Cell<u64>,
    /// No append succeeds that would make the files together larger.
    pub room: Cell<Option<u64>>,
}

impl MemoryDisk {
    /// An empty one that keeps its log.
    pub fn logged() -> MemoryDisk {
        MemoryDisk { logs: true, ..MemoryDisk::default() }
    }

    /// How long the log is.
    pub fn steps(&self) -> usize {
        self.log.borrow().len()
    }

    /// The disk after so many steps of the log, of the next append half, and then a loss of power.
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

    /// A file as it is.
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.now.borrow().file(name).map(|file| file.bytes.clone())
    }

    /// Puts a file there, or takes it away.
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

    /// What all files take, in whole blocks.
    pub fn size(&self) -> u64 {
        let now = self.now.borrow();
        now.names.values().map(|file| (now.files[file].bytes.len() as u64).next_multiple_of(4096)).sum()
    }

    /// A copy of what there is now, without the log.
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
                // What has no name any more, and had none on the disk, is gone.
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
            // As write(2) does: what fits is written.
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
