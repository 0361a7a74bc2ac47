//! Access of commands to the journal of changes, and the kernel that they change.

use std::io;
use std::path::Path;

use super::Environment;
use host::settings::{Folder, JournalLock, LiveKernel, LockOutcome, NoJournal, Opened, Store, take_lock};
use host::{clock, is_root, process_start};
use model::error::{Exit, Failure, Result};
use model::units::Nanos;

/// Folder of the journal.
pub const FOLDER: &str = "/var/lib/onbeat/journal";

/// Locked journal: no other process changes settings while it exists.
pub struct LockedJournal {
    pub store: Box<dyn Store>,
    pub kernel: LiveKernel,
    /// None without a journal.
    _lock: Option<JournalLock>,
}

/// Opens the journal to change settings, and creates it if necessary.
///
/// # Errors
/// Not permitted: this is not root, another onbeat has the lock, or the folder cannot be written.
pub fn lock(purpose: &str) -> Result<LockedJournal> {
    open_locked(purpose, |path| Folder::make(path).map(Some))
}

/// Opens the journal to continue with its content; without one it is empty, and none is created.
///
/// # Errors
/// As [`lock`].
pub fn lock_if_there(purpose: &str) -> Result<LockedJournal> {
    open_locked(purpose, |path| match Folder::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    })
}

fn open_locked(
    purpose: &str,
    open: impl FnOnce(&Path) -> io::Result<Option<Folder>>,
) -> Result<LockedJournal> {
    if !is_root() {
        return Err(Failure::not_permitted(format!(
            "{purpose} writes kernel settings and {FOLDER}: run it as root"
        )));
    }
    let kernel = LiveKernel::default();
    let Some(folder) = open(Path::new(FOLDER)).map_err(|error| unusable(&error))? else {
        return Ok(LockedJournal { store: Box::new(NoJournal), kernel, _lock: None });
    };
    match take_lock(&folder).map_err(|error| unusable(&error))? {
        LockOutcome::Locked(lock) => Ok(LockedJournal { store: Box::new(folder), kernel, _lock: Some(lock) }),
        LockOutcome::Held(owner) => Err(Failure::not_permitted(format!(
            "another onbeat (process {}) is changing settings: wait until it ends",
            owner.pid
        ))),
    }
}

/// Failure for a journal that cannot be written.
pub fn unusable(error: &io::Error) -> Failure {
    let what = format!("cannot write the journal of changes in {FOLDER}, so nothing is changed");
    Failure::of_call(what, error, Exit::NotPermitted, "make it a folder that only root can write to")
}

/// Opens the journal for reading; none if there is none.
pub fn open() -> Result<Option<Folder>> {
    match Folder::open(Path::new(FOLDER)) {
        Ok(folder) => Ok(Some(folder)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let what = format!("cannot read the journal of changes in {FOLDER}");
            Err(Failure::of_call(what, &error, Exit::NotPermitted, "run as root"))
        }
    }
}

/// CLOCK_BOOTTIME, which continues while the machine is suspended.
pub fn boot_time() -> Nanos {
    clock::monotonic() + clock::boot_offset()
}

/// Header of an entry by this process.
pub fn opened(boot: &str, cpus: &str, environment: &Environment, undo: UndoTime) -> Opened {
    let pid = std::process::id();
    let after = |span: Nanos| Some(boot_time().0.saturating_add(span.0));
    let (undo_at_boot_ns, confirmable) = match undo {
        UndoTime::Never | UndoTime::WithProcess => (None, false),
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
        with_process: undo == UndoTime::WithProcess,
    }
}

/// Condition under which changes are undone automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UndoTime {
    Never,
    After(Nanos),
    UnlessConfirmed(Nanos),
    /// At the end of this process, however it ends.
    WithProcess,
}
