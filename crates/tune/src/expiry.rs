//! Entries that are undone automatically when their time has come.

use host::settings::{EntryRecords, Kernel, Store, held_back, read_entry, restore_all};
use model::error::Result;
use model::units::CpuSet;

use crate::undo::{entries, others, unreadable};

/// Condition for undoing an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// This time of CLOCK_BOOTTIME in ns; the waiting process avoids the audited CPUs.
    Until { boot_ns: i64, cpus: CpuSet },
    /// The end of the process with this PID and start time.
    Process { pid: u32, start: u64, cpus: CpuSet },
    /// None: it was confirmed or undone, or is of another boot.
    Over,
}

/// Condition for undoing an entry. One without changes so far also waits for them.
pub fn waiting(store: &dyn Store, id: &str, boot: &str) -> Result<Waiting> {
    let entry = read_entry(store, id).map_err(|error| unreadable(id, &error))?;
    Ok(match entry {
        Some(entry) if entry.opened.boot == boot && !entry.confirmed => {
            let (opened, open) = (&entry.opened, entry.is_live() || !entry.complete);
            let cpus = CpuSet::parse(&opened.cpus).unwrap_or_default();
            match opened.undo_at_boot_ns {
                _ if !open => Waiting::Over,
                Some(boot_ns) => Waiting::Until { boot_ns, cpus },
                None if opened.with_process => {
                    Waiting::Process { pid: opened.pid, start: opened.start, cpus }
                }
                None => Waiting::Over,
            }
        }
        _ => Waiting::Over,
    })
}

/// Result of an expired entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// It was undone, as far as possible, or confirmed before.
    Done,
    /// Later entries have changed some of its keys, which can be undone only after those.
    Waits,
}

/// Undoes an entry whose time has come, or whose process has ended, unless it was confirmed. Keys
/// that a later entry has changed stay until that one is undone: its old values are those that this
/// entry has set.
pub fn expire(kernel: &mut dyn Kernel, store: &mut dyn Store, id: &str, boot: &str) -> Result<Expired> {
    if waiting(store, id, boot)? == Waiting::Over {
        return Ok(Expired::Done);
    }
    let all = entries(store)?;
    let Some(entry) = all.iter().find(|entry| entry.opened.id == id) else { return Ok(Expired::Done) };
    let later = |entry: &EntryRecords, all: &[EntryRecords]| {
        let later = |other: &&EntryRecords| other.opened.boot == boot && other.number() > entry.number();
        all.iter().filter(later).any(|other| held_back(entry, other).is_some())
    };
    // The journal may be full; restored values are recognized the next time.
    let (_, _) = restore_all(kernel, store, &[entry], &others(&all, &[entry], boot), false);
    let all = entries(store)?;
    let after = all.iter().find(|entry| entry.opened.id == id);
    Ok(if after.is_some_and(|entry| later(entry, &all)) { Expired::Waits } else { Expired::Done })
}
