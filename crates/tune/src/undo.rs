//! Undo of the journal's entries, the last first.

use host::settings::{EntryRecords, Kernel, Restored, Store, entry_ids, held_back, read_entry, restore_all};
use model::error::{Exit, Failure, Result};
use model::plan::{ChangeState, LeftOut, PlanDocument, PlannedChange};
use model::text::quoted_value;

/// Selection of entries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The last one with anything to undo.
    Last,
    All,
    Id(String),
    /// Those that would be undone automatically and were not confirmed, and those of killed
    /// commands. Their keepers may have ended, as at a restart of user space.
    Unconfirmed,
}

/// Result of an undo.
#[derive(Clone, Debug)]
pub struct UndoResult {
    /// Changes, in the order in which they were undone.
    pub document: PlanDocument,
    /// Failure to write the journal, which is then older than the state of the machine.
    pub unwritten: Option<Failure>,
}

impl UndoResult {
    /// True if any change was not undone.
    pub fn left_something(&self) -> bool {
        let is_left =
            |change: &PlannedChange| !matches!(change.state, ChangeState::Undone | ChangeState::Void);
        !self.document.left_out.is_empty() || self.document.changes.iter().any(is_left)
    }
}

/// Non-empty entries of this journal, the oldest first.
pub fn entries(store: &dyn Store) -> Result<Vec<EntryRecords>> {
    let unread = |error: std::io::Error| {
        Failure::of_call("the journal of changes cannot be read", &error, Exit::Internal, "run as root")
    };
    let mut all = Vec::new();
    for id in entry_ids(store).map_err(unread)? {
        all.extend(read_entry(store, &id).map_err(|error| unreadable(&id, &error))?);
    }
    Ok(all)
}

/// Failure for an unreadable entry, which may be in force, so that no change is made over it.
pub fn unreadable(id: &str, error: &std::io::Error) -> Failure {
    let what = format!("entry {id} of the journal of changes cannot be read");
    let remedy = format!(
        "use the version of onbeat that wrote it; after the next boot, move \
         /var/lib/onbeat/journal/{id}.jsonl away"
    );
    Failure::of_call(what, error, Exit::Internal, &remedy)
}

/// Records of this boot's entries that this version does not understand.
pub fn not_understood<'a>(entries: impl Iterator<Item = &'a EntryRecords>, boot: &str) -> Vec<LeftOut> {
    let unknown = entries.filter(|entry| entry.opened.boot == boot && entry.unknown > 0);
    let left = |entry: &EntryRecords| {
        let writer = match entry.opened.version.as_str() {
            "" => "the version that wrote it".to_owned(),
            version => format!("onbeat {}", quoted_value(version)),
        };
        let records = match entry.unknown {
            1 => "1 of its records is".to_owned(),
            more => format!("{more} of its records are"),
        };
        LeftOut {
            rule: format!("entry {}", entry.opened.id),
            why: format!("{records} not understood by this version"),
            instead: format!("undo it with {writer}"),
        }
    };
    unknown.map(left).collect()
}

/// Undoes entries of this boot. With `force` also values that another program has changed since.
pub fn undo(
    kernel: &mut dyn Kernel,
    store: &mut dyn Store,
    which: &Which,
    boot: &str,
    force: bool,
) -> Result<UndoResult> {
    let all = entries(store)?;
    let chosen = choose(&all, which, boot, force)?;
    let mut result =
        UndoResult { document: PlanDocument::new(boot, Vec::new(), Vec::new()), unwritten: None };
    if let [only] = chosen.as_slice() {
        result.document.id.clone_from(&only.opened.id);
    }
    let (ours, gone): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|entry| entry.opened.boot == boot);
    let named = all.iter().filter(|entry| match which {
        Which::Id(id) => entry.opened.id == *id,
        Which::Last | Which::All | Which::Unconfirmed => true,
    });
    result.document.left_out = not_understood(named, boot);
    for entry in gone {
        let void = entry.steps.iter().rev().map(|step| void(entry, &step.change));
        result.document.changes.extend(void);
    }
    let staying = others(&all, &ours, boot);
    let (restored, noted) = restore_all(kernel, store, &ours, &staying, force);
    for (entry, restored) in ours.iter().zip(restored) {
        result.document.changes.extend(restored.into_iter().map(|done| changed(entry, done)));
    }
    if let Err(error) = noted {
        let what = "it was undone, but the journal could not be written";
        result.unwritten = Some(Failure::of_call(what, &error, Exit::Internal, "free some space"));
    }
    Ok(result)
}

/// Entries of this boot that are not among `these`.
pub fn others<'a>(all: &'a [EntryRecords], these: &[&EntryRecords], boot: &str) -> Vec<&'a EntryRecords> {
    let is_other = |entry: &&EntryRecords| {
        entry.opened.boot == boot && these.iter().all(|these| these.opened.id != entry.opened.id)
    };
    all.iter().filter(is_other).collect()
}

/// Entries to undo, the last first.
fn choose<'a>(
    all: &'a [EntryRecords],
    which: &Which,
    boot: &str,
    force: bool,
) -> Result<Vec<&'a EntryRecords>> {
    let open = |entry: &&EntryRecords| {
        entry.opened.boot == boot
            && (entry.is_live() || (force && entry.steps.iter().any(|step| step.is_kept())))
    };
    match which {
        Which::All => Ok(all.iter().rev().filter(open).collect()),
        Which::Last => Ok(all.iter().rev().find(open).into_iter().collect()),
        Which::Unconfirmed => {
            let waits = |entry: &&EntryRecords| open(entry) && is_unconfirmed(entry);
            Ok(all.iter().rev().filter(waits).collect())
        }
        Which::Id(id) => {
            let found = all.iter().find(|entry| entry.opened.id == *id);
            let entry = found.ok_or_else(|| {
                Failure::usage(format!(
                    "the journal has no entry {}: `onbeat tune status --all` lists all entries",
                    quoted_value(id)
                ))
            })?;
            require_last(entry, all, boot)?;
            Ok(vec![entry])
        }
    }
}

/// True if its changes were to end by themselves and were not confirmed.
fn is_unconfirmed(entry: &EntryRecords) -> bool {
    let opened = &entry.opened;
    let has_ended = || host::process_start(opened.pid) != Some(opened.start);
    let ends = opened.undo_at_boot_ns.is_some() || (opened.with_process && has_ended());
    !entry.confirmed && (ends || !entry.complete)
}

/// Refuses to undo keys that a later entry has changed: its old value is ours.
fn require_last(entry: &EntryRecords, all: &[EntryRecords], boot: &str) -> Result<()> {
    let later = all.iter().skip_while(|other| other.opened.id != entry.opened.id).skip(1);
    for other in later.filter(|other| other.opened.boot == boot) {
        if let Some(key) = held_back(entry, other) {
            let later = &other.opened.id;
            return Err(Failure::usage(format!(
                "entry {later} has changed {key} after entry {}: run `onbeat tune undo {later}` first, or \
                `onbeat tune undo --all`",
                entry.opened.id
            )));
        }
    }
    Ok(())
}

fn void(entry: &EntryRecords, change: &PlannedChange) -> PlannedChange {
    PlannedChange {
        state: ChangeState::Void,
        entry: entry.opened.id.clone(),
        why: "with the boot in which it was applied".to_owned(),
        ..change.clone()
    }
}

fn changed(entry: &EntryRecords, done: Restored) -> PlannedChange {
    let step = entry.steps.iter().find(|step| step.change == done.change);
    let old = step.and_then(|step| step.old.as_deref()).unwrap_or_default();
    PlannedChange {
        state: done.state,
        why: done.why,
        entry: entry.opened.id.clone(),
        // A key that did not exist was removed again, and has no value.
        before: old.trim().to_owned(),
        ..done.change
    }
}

/// Undoes the incomplete entries of killed commands, the last first, and returns their IDs. The
/// caller must hold the lock, so that none of them is still in progress.
pub fn undo_abandoned(kernel: &mut dyn Kernel, store: &mut dyn Store, boot: &str) -> Result<Vec<String>> {
    let all = entries(store)?;
    let abandoned: Vec<_> = all
        .iter()
        .rev()
        .filter(|entry| entry.opened.boot == boot && !entry.complete && entry.is_live())
        .collect();
    let staying = others(&all, &abandoned, boot);
    let (_, noted) = restore_all(kernel, store, &abandoned, &staying, false);
    noted.map_err(|error| {
        let what = "the changes of a killed command were undone, but the journal could not be written";
        Failure::of_call(what, &error, Exit::Internal, "free some space")
    })?;
    Ok(abandoned.iter().map(|entry| entry.opened.id.clone()).collect())
}

#[cfg(test)]
mod tests;
