//! Removal of a single process from the group in which an entry placed it.

use std::collections::BTreeSet;
use std::io;

use model::plan::ChangeState;
use model::setting::Key;

use super::execute::refusal;
use super::journal::{EntryRecords, EntryStep, Journal, JournalRecord};
use super::placing::{PlacedProcesses, is_placing, with_first_masks};
use super::restore::restore_step;
use super::{GroupProcess, Kernel, Store};

/// Moves a process out of the group in which an entry placed it, and reverts the changes made for
/// it; or moves out a descendant of such a process. Returns the kernel's refusal, if it refuses.
///
/// # Errors
/// The journal cannot be written.
pub fn take_out(
    kernel: &mut dyn Kernel,
    store: &mut dyn Store,
    entry: &EntryRecords,
    process: &GroupProcess,
) -> io::Result<Option<String>> {
    let own = |step: &&EntryStep| match step.change.setting.key {
        Key::Task { tid, start, .. } => (tid, start) == (process.pid, process.start) && is_placing(step),
        _ => false,
    };
    let steps: Vec<&EntryStep> = entry.steps.iter().rev().filter(|step| step.is_live()).filter(own).collect();
    let mut left = None;
    if !steps.is_empty() {
        let mut journal = Journal::resume(store, &entry.opened.id)?;
        let mut noted = Ok(());
        let mut note = |record: JournalRecord| {
            noted = std::mem::replace(&mut noted, Ok(())).and_then(|()| journal.note(&record));
        };
        for step in steps {
            let step = with_first_masks(step, &entry.steps);
            let end = restore_step(kernel, &mut note, &step, &BTreeSet::new(), false);
            if end.state == ChangeState::Refused {
                left = Some(end.why);
            }
        }
        noted?;
        return Ok(left);
    }
    Ok(PlacedProcesses::of(&entry.steps).move_back(kernel, process).err().map(|error| refusal(&error)))
}
