//! The only writer of settings: each change is in a journal on disk before it is made, and can be
//! undone from there after any crash.
//!
//! [`Entry`] makes changes, [`restore`] undoes them; both work on any [`Kernel`] and any
//! [`Store`]: the running ones ([`LiveKernel`], [`Folder`]), or those of tests. A change goes
//! through four steps: its intent with the old values is flushed, the value is written, it is read
//! back, and the outcome is flushed. Undoing has two: what will be written is flushed, then
//! written.

mod decide;
mod entry;
mod execute;
#[cfg(any(test, feature = "fixture"))]
pub mod fake;
mod folder;
pub mod group;
mod hold;
mod journal;
mod keeper;
mod live;
mod moved_interrupts;
mod placing;
mod restore;
mod take_out;
#[cfg(test)]
mod tests;

use std::io;

use model::fact::Fact;
use model::setting::Key;

pub use crate::folder_lock::{FolderLock as JournalLock, LockOutcome, LockOwner};
pub use decide::ENDED;
pub use entry::{Applied, Entry};
pub use folder::{Folder, NoJournal, take_lock};
pub use group::leave_group;
pub use hold::hold;
pub use journal::{
    ChangeOutcome, EntryRecords, EntryStep, Journal, JournalRecord, OldValue, Opened, Outcome, entry_ids,
    entry_records, read_entry, remove_spent,
};
pub use keeper::start_keeper;
pub use live::LiveKernel;
pub use restore::{Restored, held_back, restore, restore_all};
pub use take_out::take_out;

/// Settings of a machine: the running kernel, or a fake.
pub trait Kernel {
    /// Value of a key; absent if the key does not exist.
    fn read(&self, key: &Key) -> Fact<String>;

    /// Writes a value; `None` removes a key whose existence is its value: a control group, a hold.
    fn write(&mut self, key: &Key, value: Option<&str>) -> io::Result<()>;

    /// CPU that an interrupt goes to at present.
    fn effective_affinity(&self, irq: u32) -> Fact<String>;

    /// Affinity of every thread, by key.
    fn affinities(&self) -> Vec<(Key, String)>;

    /// Groups directly below a control group, by path below the mount; `""` is the root.
    fn groups_below(&self, group: &str) -> Vec<String>;

    /// Processes in a control group and below it.
    fn processes_in(&self, group: &str) -> Vec<GroupProcess>;
}

/// Process in a control group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupProcess {
    pub pid: u32,
    /// Field 22 of `/proc/PID/stat`.
    pub start: u64,
    /// Its threads, each with its start time.
    pub threads: Vec<(u32, u64)>,
    /// Its ancestors, the nearest first, each with its start time.
    pub ancestors: Vec<(u32, u64)>,
}

/// Storage of the journal: files of lines.
pub trait Store {
    /// Names of its files, in any order.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Content of a file.
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;

    /// Appends to a file, creating it if missing; the data is on disk when this returns.
    fn append(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;

    /// Removes a file.
    fn remove(&mut self, name: &str) -> io::Result<()>;
}
