//! Entries that undo themselves when their time has come.

use host::settings::{EntryRecords, Kernel, Store, held_back, read_entry, restore_all};
use model::error::Result;
use model::units::CpuSet;

use crate::undo::{entries, others, unreadable};

/// What there is to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Until this time of CLOCK_BOOTTIME in ns; the CPUs that matter are left alone meanwhile.
    Until { boot_ns: i64, cpus: CpuSet },
    /// Until the process of this number and start has ended.
    Process { pid: u32, start: u64, cpus: CpuSet },
    /// It was confirmed or undone, or is of another boot.
    Over,
}

/// What an entry waits for. One without changes so far waits too: they may be about to be made.
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

/// What became of an entry whose time had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// It was undone, as far as it can be, or confirmed before.
    Done,
    /// Later entries have changed some of its keys again, which can be undone after those.
    Waits,
}

/// Undoes an entry whose time has come, or whose process has ended, unless it was confirmed
/// meanwhile. What a later entry has changed again stays until that one is undone: its old value
/// is what this one has set.
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
    // Its journal may be full; what is restored all the same is found so the next time.
    let (_, _) = restore_all(kernel, store, &[entry], &others(&all, &[entry], boot), false);
    let all = entries(store)?;
    let after = all.iter().find(|entry| entry.opened.id == id);
    Ok(match after.is_some_and(|entry| later(entry, &all)) {
        true => Expired::Waits,
        false => Expired::Done,
    })
}
