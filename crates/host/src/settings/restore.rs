//! Undoing an entry: the last change first, and of each only what is still ours.
//!
//! What will be written is decided from what is read now, and is on the disk before it is written:
//! an undo that is cut short is carried on as it was decided. The decisions:
//!
//! - *Ours* is what was read back after the change. What reads as before needs nothing. Anything
//!   else is another program's and stays: [`ChangeState::Kept`]. What the kernel itself makes of our
//!   value counts as ours: a partition that turned invalid.
//! - Of a write that was cut short, nobody knows what it left, for the kernel may have made another
//!   value of it. If the key reads as before, nothing was written, and nothing is; otherwise what is
//!   there counts as ours, in the key and in those that were noted with it. The same holds for an
//!   undo that was cut short.
//! - A key that was changed twice, in one entry or in two, goes back through its values. Where the
//!   later change cannot be undone, the earlier is not tried: its value is not there to be told.
//! - An old value that cannot be written (0 in `vm.dirty_bytes`) comes back with its partners.
//! - What cannot be written is tried again by the next undo, unless it has changed since.
//! - A thread that started in between has no old mask, and stays where the kernel puts it; so does
//!   one whose mask another program has set since, while the key itself goes back. A group with
//!   processes in it that no entry knows is the kernel's to refuse, or [`super::Kernel::write`]'s
//!   to empty.

use std::collections::BTreeSet;
use std::io;

use model::plan::{ChangeState, PlannedChange};

use super::decide::{decide, listed};
use super::execute::execute;
use super::journal::{EntryRecords, EntryStep, Journal, JournalRecord, OldValue};
use super::placing::{is_placing, makes_group, move_out, undo_order};
use super::{Kernel, Store};

/// A change and what undoing it came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub change: PlannedChange,
    pub state: ChangeState,
    /// What is left and why; `""` where nothing is.
    pub why: String,
}

/// How the undoing of a step ended.
pub(super) struct End {
    pub state: ChangeState,
    pub why: String,
    /// What could not be restored, as it reads now.
    pub left: Vec<OldValue>,
}

/// Undoes what is left of an entry, in the boot in which it was made. With `force` also what
/// another program has changed since.
///
/// # Errors
/// The journal could not be written. All the same everything was tried: what is restored already
/// is found so the next time.
pub fn restore(
    kernel: &mut dyn Kernel,
    store: &mut dyn Store,
    entry: &EntryRecords,
    force: bool,
) -> (Vec<Restored>, io::Result<()>) {
    let mut noted = Ok(());
    let mut journal = match Journal::resume(store, &entry.opened.id) {
        Ok(journal) => Some(journal),
        Err(error) => {
            noted = Err(error);
            None
        }
    };
    let mut note = |record: JournalRecord| {
        if let Some(journal) = &mut journal {
            noted = std::mem::replace(&mut noted, Ok(())).and(journal.note(&record));
        }
    };
    let steps = entry.steps.iter().filter(|step| step.is_live() || (force && step.is_kept()));
    let mut stuck = BTreeSet::new();
    let mut all = Vec::new();
    for step in undo_order(steps) {
        if let Some(group) = makes_group(step) {
            move_out(kernel, &entry.steps, group);
        }
        let setting = &step.change.setting;
        let covered = std::iter::once(&setting.key).chain(&setting.partners).find(|key| stuck.contains(*key));
        let (state, why) = match covered {
            // Nothing is noted: the step is as it was.
            Some(key) => (ChangeState::Refused, format!("a later change of {key} is still there")),
            None => {
                let end = restore_step(kernel, &mut note, step, force);
                stuck.extend(end.left.into_iter().map(|left| left.key));
                (end.state, end.why)
            }
        };
        if covered.is_some() {
            stuck.insert(setting.key.clone());
            stuck.extend(setting.partners.iter().cloned());
        }
        all.push(Restored { change: step.change.clone(), state, why });
    }
    (all, noted)
}

/// Undoes one step; each record is noted before what it says is done.
pub(super) fn restore_step(
    kernel: &mut dyn Kernel,
    note: &mut dyn FnMut(JournalRecord),
    step: &EntryStep,
    force: bool,
) -> End {
    let decision = decide(kernel, step, force);
    let mut end = End { state: decision.state, why: decision.why, left: decision.left };
    if !decision.writes.is_empty() {
        note(JournalRecord::Restoring { step: step.number, writes: decision.writes.clone() });
        let failed = execute(kernel, step, &decision.writes);
        if !failed.is_empty() {
            end.state = ChangeState::Refused;
            end.why = listed(failed.iter().map(|(_, why)| why.as_str()));
            end.left = failed.into_iter().map(|(left, _)| left).collect();
        }
    }
    if is_placing(step) && end.state == ChangeState::Kept {
        // Where it is now, or what it has set, is its own: nothing is left of what we did with it.
        end.state = ChangeState::Undone;
    }
    let (state, why, left) = (end.state, end.why.clone(), end.left.clone());
    note(JournalRecord::Restored { step: step.number, state, why, left });
    end
}
