//! One process taken out of the group in which an entry placed it.

use std::io;

use model::plan::ChangeState;
use model::setting::Key;

use super::entry::refusal;
use super::journal::{EntryRecords, Journal, Record, Step};
use super::placing::{former_groups, is_placing, move_back};
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
    let own = |step: &&Step| match step.change.setting.key {
        Key::Task { tid, start, .. } => (tid, start) == (process.pid, process.start) && is_placing(step),
        _ => false,
    };
    let steps: Vec<&Step> = entry.steps.iter().rev().filter(|step| step.is_live()).filter(own).collect();
    let mut left = Ok(());
    if !steps.is_empty() {
        let mut journal = Journal::resume(store, &entry.opened.id)?;
        let mut noted = Ok(());
        let mut note = |record: Record| {
            noted = std::mem::replace(&mut noted, Ok(())).and_then(|()| journal.note(&record));
        };
        for step in steps {
            if let (ChangeState::Refused, why) = restore_step(kernel, &mut note, step, false) {
                left = Err(why);
            }
        }
        noted?;
        return Ok(left);
    }
    Ok(move_back(kernel, &former_groups(&entry.steps), process).map_err(|error| refusal(&error)))
}
