//! The journal of changes as commands open it, and the kernel that they change.

use std::path::Path;

use super::Environment;
use host::settings::{Folder, JournalLock, LiveKernel, Opened, take_lock};
use host::{clock, is_root, process_start};
use model::error::{Exit, Failure, Result};
use model::units::Nanos;

/// Where the journal is.
pub const FOLDER: &str = "/var/lib/onbeat/journal";

/// The journal, locked: no other process changes settings meanwhile.
pub struct LockedJournal {
    pub folder: Folder,
    pub kernel: LiveKernel,
    _lock: JournalLock,
}

/// Opens the journal to change settings.
///
/// # Errors
/// Not permitted: this is not root, another onbeat has the lock, or the folder cannot be written.
pub fn lock(purpose: &str) -> Result<LockedJournal> {
    if !is_root() {
        return Err(Failure::not_permitted(format!(
            "{purpose} writes settings of the kernel and {FOLDER}: run it as root"
        )));
    }
    let unusable = |error: &std::io::Error| {
        let what = format!(
            "the journal of changes in {FOLDER} cannot be written, and nothing is changed without it"
        );
        Failure::of_call(what, error, Exit::NotPermitted, "make it a folder that only root may write to")
    };
    let folder = Folder::make(Path::new(FOLDER)).map_err(|error| unusable(&error))?;
    match take_lock(&folder).map_err(|error| unusable(&error))? {
        Ok(lock) => Ok(LockedJournal { folder, kernel: LiveKernel::default(), _lock: lock }),
        Err(owner) => Err(Failure::not_permitted(format!(
            "another onbeat (process {}) is changing settings: wait until it has ended",
            owner.pid
        ))),
    }
}

/// Opens the journal for reading; none where there is none yet.
pub fn open() -> Result<Option<Folder>> {
    match Folder::open(Path::new(FOLDER)) {
        Ok(folder) => Ok(Some(folder)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let what = format!("the journal of changes in {FOLDER} cannot be read");
            Err(Failure::of_call(what, &error, Exit::NotPermitted, "run as root"))
        }
    }
}

/// CLOCK_BOOTTIME, which goes on while the machine is suspended.
pub fn boot_time() -> Nanos {
    clock::monotonic() + clock::boot_offset()
}

/// The head of an entry that this process makes.
pub fn opened(boot: &str, cpus: &str, environment: &Environment, undo: UndoTime) -> Opened {
    let pid = std::process::id();
    let after = |span: Nanos| Some(boot_time().0.saturating_add(span.0));
    let (undo_at_boot_ns, confirmable) = match undo {
        UndoTime::Never => (None, false),
        UndoTime::After(span) => (after(span), false),
        UndoTime::UnlessConfirmed(span) => (after(span), true),
    };
    Opened {
        id: String::new(),
        boot: boot.to_owned(),
        pid,
        start: process_start(pid).unwrap_or(0),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        real_ns: (clock::monotonic() + clock::wall_offset()).0,
        command: environment.command_line.clone(),
        cpus: cpus.to_owned(),
        undo_at_boot_ns,
        confirmable,
    }
}

/// When changes undo themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoTime {
    Never,
    After(Nanos),
    UnlessConfirmed(Nanos),
}
