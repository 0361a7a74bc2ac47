//! Entries that undo themselves when their time has come.

use host::settings::{Kernel, Restored, Store, read_entry, restore};
use model::error::{Exit, Failure, Result};
use model::units::CpuSet;

/// What there is to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Until this time of CLOCK_BOOTTIME in ns; the CPUs that matter are left alone meanwhile.
    Until { boot_ns: i64, cpus: CpuSet },
    /// It was confirmed or undone, or is of another boot.
    Over,
}

fn unread(error: &std::io::Error) -> Failure {
    Failure::of_call("the journal of changes cannot be read", error, Exit::Internal, "run as root")
}

/// What an entry waits for. One without changes so far waits too: they may be about to be made.
pub fn waiting(store: &dyn Store, id: &str, boot: &str) -> Result<Waiting> {
    let entry = read_entry(store, id).map_err(|error| unread(&error))?;
    Ok(match entry {
        Some(entry) if entry.opened.boot == boot && !entry.confirmed => match entry.opened.undo_at_boot_ns {
            Some(boot_ns) if entry.is_live() || !entry.complete => {
                Waiting::Until { boot_ns, cpus: CpuSet::parse(&entry.opened.cpus).unwrap_or_default() }
            }
            _ => Waiting::Over,
        },
        _ => Waiting::Over,
    })
}

/// Undoes an entry whose time has come, unless it was confirmed meanwhile.
pub fn expire(kernel: &mut dyn Kernel, store: &mut dyn Store, id: &str, boot: &str) -> Result<Vec<Restored>> {
    match (waiting(store, id, boot)?, read_entry(store, id).map_err(|error| unread(&error))?) {
        (Waiting::Until { .. }, Some(entry)) => Ok(restore(kernel, store, &entry, false).0),
        _ => Ok(Vec::new()),
    }
}
