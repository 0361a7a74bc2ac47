//! Undo of an entry: the last change first, and only values that are still ours.
//!
//! Each write is decided from present values, and flushed to disk before it is made: an interrupted
//! undo is completed as decided. The decisions:
//!
//! - A value is *ours* if it is the one read back after the change. A key that reads as before
//!   needs nothing. Any other value is another program's and stays: [`ChangeState::Kept`]. A value
//!   that the kernel makes of ours counts as ours: a partition that turned invalid.
//! - The result of an interrupted write is unknown: the kernel may have changed the value. If the
//!   key reads as before, nothing was written, and nothing is; otherwise the present values count
//!   as ours, in the key and in those that were recorded with it.
//! - An interrupted undo is completed first, as decided.
//! - A key that was changed twice, in one entry or in two, goes back through its values. If the
//!   later change cannot or must not be undone, the earlier one is not tried, because its value is
//!   not present to be recognized. Control groups depend on each other: one that cannot be undone
//!   blocks all earlier ones.
//! - An old value that cannot be written (0 in `vm.dirty_bytes`) comes back with its partners.
//! - A failed write is tried again by the next undo, unless the value has changed since.
//! - A thread that started in between has no old mask, and stays where the kernel puts it; so does
//!   one that moved to the group with the CPUs. One whose mask another program has set since keeps
//!   it, while the key itself goes back. If the kernel has ended a partition without an undo, and
//!   its threads may run anywhere, they get their masks back.
//! - Processes in a group to be removed move to their former group or that of the ancestor that was
//!   placed; unknown ones move to the root group. None is ended. A controller that another group
//!   uses by now is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use model::plan::{ChangeState, PlannedChange};
use model::setting::Key;

use super::decide::{decide, listed};
use super::execute::execute;
use super::journal::{EntryRecords, EntryStep, Journal, JournalRecord, OldValue};
use super::placing::{is_placing, makes_group, move_out, undo_order, with_first_masks};
use super::{Kernel, Store};

/// A change and the result of undoing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub change: PlannedChange,
    pub state: ChangeState,
    /// Reason for anything not undone; `""` if there is none.
    pub why: String,
}

/// Result of undoing a step.
pub(super) struct End {
    pub state: ChangeState,
    pub why: String,
    /// Keys that could not be restored, with their present values.
    pub left: Vec<OldValue>,
}

/// Undoes the remaining changes of the last entry, in the boot in which it was made. With `force`
/// also values that another program has changed since.
///
/// # Errors
/// The journal could not be written. Everything was tried all the same, and values restored already
/// are recognized the next time.
pub fn restore(
    kernel: &mut dyn Kernel,
    store: &mut dyn Store,
    entry: &EntryRecords,
    force: bool,
) -> (Vec<Restored>, io::Result<()>) {
    let (mut all, noted) = restore_all(kernel, store, &[entry], &[], force);
    (all.pop().unwrap_or_default(), noted)
}

/// Undoes the remaining changes of several entries, the last first, like [`restore`]: a change that
/// is stuck in one blocks those before it, and so do changes of later entries that are `staying`.
/// Returns the results in the same order.
pub fn restore_all(
    kernel: &mut dyn Kernel,
    store: &mut dyn Store,
    entries: &[&EntryRecords],
    staying: &[&EntryRecords],
    force: bool,
) -> (Vec<Vec<Restored>>, io::Result<()>) {
    let mut noted = Ok(());
    let mut finished = BTreeMap::new();
    for entry in entries {
        let mut notes = Notes::of(store, entry);
        // Changes made over it since are undone first.
        let later = Stuck::under(entry, entries.iter().chain(staying).copied());
        for step in entry.steps.iter().filter(|step| step.restoring.is_some() && step.left.is_none()) {
            if later.covers(step).is_some() {
                continue;
            }
            let end = restore_step(kernel, &mut notes.taker(), step, &BTreeSet::new(), force);
            finished.insert((&entry.opened.id, step.number), end);
        }
        noted = noted.and(notes.noted);
    }
    let mut stuck = Stuck::default();
    let mut all = Vec::new();
    for entry in entries {
        stuck.held.extend(Stuck::under(entry, staying.iter().copied()).held);
        let mut notes = Notes::of(store, entry);
        let steps = entry.steps.iter().filter(|step| step.is_live() || (force && step.is_kept()));
        let restored = undo_order(steps).into_iter().map(|step| {
            let waits_for = stuck.covers(step);
            if let (Some(group), None) = (makes_group(step), &waits_for) {
                move_out(kernel, &entry.steps, group);
            }
            let end = match (finished.remove(&(&entry.opened.id, step.number)), waits_for) {
                (Some(end), _) => end,
                // Nothing is recorded: the step is unchanged.
                (None, Some(key)) => End::waiting(step, &key),
                (None, None) => {
                    let step = with_first_masks(step, &entry.steps);
                    restore_step(kernel, &mut notes.taker(), &step, &stuck.left, force)
                }
            };
            stuck.add(step, &end);
            Restored { change: step.change.clone(), state: end.state, why: end.why }
        });
        all.push(restored.collect());
        noted = noted.and(notes.noted);
    }
    (all, noted)
}

/// Journal of an entry, as far as it can be written.
struct Notes<'a> {
    journal: Option<Journal<'a>>,
    noted: io::Result<()>,
}

impl<'a> Notes<'a> {
    fn of(store: &'a mut dyn Store, entry: &EntryRecords) -> Notes<'a> {
        match Journal::resume(store, &entry.opened.id) {
            Ok(journal) => Notes { journal: Some(journal), noted: Ok(()) },
            Err(error) => Notes { journal: None, noted: Err(error) },
        }
    }

    fn taker(&mut self) -> impl FnMut(JournalRecord) {
        |record| {
            if let Some(journal) = &mut self.journal {
                self.noted = std::mem::replace(&mut self.noted, Ok(())).and(journal.note(&record));
            }
        }
    }
}

/// Remains of later changes that could not be undone.
#[derive(Default)]
struct Stuck {
    /// Keys of changes still in force: their values are not those that an earlier change left.
    held: BTreeSet<Key>,
    /// Keys left over by a change that is undone otherwise: an earlier change restores them.
    left: BTreeSet<Key>,
}

impl Stuck {
    /// Keys of the live changes of those entries that are later than this one.
    fn under<'a>(entry: &EntryRecords, others: impl Iterator<Item = &'a EntryRecords>) -> Stuck {
        let later = others.filter(|other| other.number() > entry.number());
        let steps = later.flat_map(|other| &other.steps).filter(|step| step.is_live());
        Stuck { held: steps.flat_map(EntryStep::keys).cloned().collect(), left: BTreeSet::new() }
    }

    fn add(&mut self, step: &EntryStep, end: &End) {
        if end.left.iter().any(|left| left.key == step.change.setting.key) {
            self.held.extend(step.keys().cloned());
        } else {
            self.left.extend(end.left.iter().map(|left| left.key.clone()));
        }
    }

    /// Key for which a step has to wait.
    fn covers(&self, step: &EntryStep) -> Option<Key> {
        let setting = &step.change.setting;
        let named = || std::iter::once(&setting.key).chain(&setting.partners);
        let held =
            |key: &&Key| self.held.contains(*key) || (is_of_group(key) && self.held.iter().any(is_of_group));
        step.keys().find(held).or_else(|| named().find(|key| self.left.contains(*key))).cloned()
    }
}

/// Key for which an entry cannot be undone before a later one: its value is the later one's, whose
/// undo would restore that of the earlier entry.
pub fn held_back(earlier: &EntryRecords, later: &EntryRecords) -> Option<Key> {
    let stuck = Stuck::under(earlier, std::iter::once(later));
    earlier.steps.iter().filter(|step| step.is_live()).find_map(|step| stuck.covers(step))
}

/// Files of a group exist only while the groups above it do.
fn is_of_group(key: &Key) -> bool {
    matches!(key, Key::Group(_) | Key::GroupFile(_))
}

impl End {
    fn waiting(step: &EntryStep, key: &Key) -> End {
        let left = vec![OldValue { key: step.change.setting.key.clone(), value: None }];
        let why = format!("a later change of {key} is still active");
        End { state: ChangeState::Refused, why, left }
    }
}

/// Undoes one step; each record is noted before its action. Values of the keys that later steps
/// have `left` count as ours.
pub(super) fn restore_step(
    kernel: &mut dyn Kernel,
    note: &mut dyn FnMut(JournalRecord),
    step: &EntryStep,
    left: &BTreeSet<Key>,
    force: bool,
) -> End {
    let decision = decide(kernel, step, left, force);
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
        // Its present group or mask is its own choice: nothing of the placing remains.
        end.state = ChangeState::Undone;
        if !decision.writes.is_empty() {
            end.why.clear();
        }
    }
    let (state, why, left) = (end.state, end.why.clone(), end.left.clone());
    note(JournalRecord::Restored { step: step.number, state, why, left });
    end
}
