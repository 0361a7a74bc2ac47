//! One process taken out of the group in which an entry placed it.

use std::io;

use model::plan::ChangeState;
use model::setting::Key;

use super::execute::refusal;
use super::journal::{EntryRecords, EntryStep, Journal, JournalRecord};
use super::placing::{Placed, is_placing};
use super::restore::restore_step;
use super::{GroupProcess, Kernel, Store};

/// Takes a process out of the group in which an entry placed it, with what was changed for that; or
/// one that such a process started.
///
/// # Errors
/// The kernel refuses it, or the journal cannot be written.
pub fn take_out(
    kernel: &mut dyn Kernel,
    store: &mut dyn Store,
    entry: &EntryRecords,
    process: &GroupProcess,
) -> io::Result<Result<(), String>> {
    let own = |step: &&EntryStep| match step.change.setting.key {
        Key::Task { tid, start, .. } => (tid, start) == (process.pid, process.start) && is_placing(step),
        _ => false,
    };
    let steps: Vec<&EntryStep> = entry.steps.iter().rev().filter(|step| step.is_live()).filter(own).collect();
    let mut left = Ok(());
    if !steps.is_empty() {
        let mut journal = Journal::resume(store, &entry.opened.id)?;
        let mut noted = Ok(());
        let mut note = |record: JournalRecord| {
            noted = std::mem::replace(&mut noted, Ok(())).and_then(|()| journal.note(&record));
        };
        for step in steps {
            let end = restore_step(kernel, &mut note, step, false);
            if end.state == ChangeState::Refused {
                left = Err(end.why);
            }
        }
        noted?;
        return Ok(left);
    }
    Ok(Placed::of(&entry.steps).move_back(kernel, process).map_err(|error| refusal(&error)))
}
