//! Undoing an entry: the last change first, and of each only what is still ours.
//!
//! What will be written is decided from what is read now, and is on the disk before it is written:
//! an undo that is cut short is carried on as it was decided. The decisions:
//!
//! - *Ours* is what was read back after the change. What reads as before needs nothing. Anything
//!   else is another program's and stays: [`ChangeState::Kept`]. What the kernel itself makes of
//!   our value counts as ours: a partition that turned invalid.
//! - Of a write that was cut short, it is not known what it left: the kernel may have made another
//!   value of it. If the key reads as before, nothing was written, and nothing is; otherwise what
//!   is there counts as ours, in the key and in those that were noted with it.
//! - An undo that was cut short is finished before anything else, as it was decided.
//! - A key that was changed twice, in one entry or in two, goes back through its values. Where the
//!   later change cannot be undone, or is not to be, the earlier is not tried: its value is not
//!   there to be told. Control groups hang together, so that one that is stuck keeps all earlier
//!   ones.
//! - An old value that cannot be written (0 in `vm.dirty_bytes`) comes back with its partners.
//! - What cannot be written is tried again by the next undo, unless it has changed since.
//! - A thread that started in between has no old mask, and stays where the kernel puts it; so does
//!   one that went to the group that has the CPUs. One whose mask another program has set since
//!   keeps it, while the key itself goes back. Where the kernel has ended a partition without us,
//!   and let its threads run anywhere, they get their masks back.
//! - Processes in a group that is to be removed go where they, or those that started them, came
//!   from; those of which no entry knows go to the root group. None is ended. A controller that
//!   another group uses by now is kept.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use model::plan::{ChangeState, PlannedChange};
use model::setting::Key;

use super::decide::{decide, listed};
use super::execute::execute;
use super::journal::{EntryRecords, EntryStep, Journal, JournalRecord, OldValue};
use super::placing::{is_placing, makes_group, move_out, undo_order, with_first_masks};
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

/// Undoes what is left of the last entry, in the boot in which it was made. With `force` also what
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
    let (mut all, noted) = restore_all(kernel, store, &[entry], &[], force);
    (all.pop().unwrap_or_default(), noted)
}

/// Undoes what is left of several entries, given the last first, as [`restore`] does: what is stuck
/// in one holds for those before it, and so does what later ones have that are `staying`. What
/// became of each, in the same order.
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
        // What was set over it since is undone first.
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
                // Nothing is noted: the step is as it was.
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

/// The journal of an entry, as far as it can be written.
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

/// What could not be undone of later changes.
#[derive(Default)]
struct Stuck {
    /// The keys of changes that are there still: what these have is not what an earlier one left.
    held: BTreeSet<Key>,
    /// Keys that a change has left which is undone otherwise: an earlier one restores them.
    left: BTreeSet<Key>,
}

impl Stuck {
    /// What those of some entries that were made after this one have.
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

    /// The key because of which a step has to wait.
    fn covers(&self, step: &EntryStep) -> Option<Key> {
        let setting = &step.change.setting;
        let named = || std::iter::once(&setting.key).chain(&setting.partners);
        let held =
            |key: &&Key| self.held.contains(*key) || (is_of_group(key) && self.held.iter().any(is_of_group));
        step.keys().find(held).or_else(|| named().find(|key| self.left.contains(*key))).cloned()
    }
}

/// The key because of which an entry cannot be undone before a later one: what it has is the later
/// one's, which would put back what the earlier one had made of it.
pub fn held_back(earlier: &EntryRecords, later: &EntryRecords) -> Option<Key> {
    let stuck = Stuck::under(earlier, std::iter::once(later));
    earlier.steps.iter().filter(|step| step.is_live()).find_map(|step| stuck.covers(step))
}

/// What a group has comes and goes with those above it.
fn is_of_group(key: &Key) -> bool {
    matches!(key, Key::Group(_) | Key::GroupFile(_))
}

impl End {
    fn waiting(step: &EntryStep, key: &Key) -> End {
        let left = vec![OldValue { key: step.change.setting.key.clone(), value: None }];
        let why = format!("a later change is still there, that of {key}");
        End { state: ChangeState::Refused, why, left }
    }
}

/// Undoes one step; each record is noted before what it says is done. What later steps have `left`
/// counts as ours.
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
        // Where it is now, or what it has set, is its own: nothing is left of what we did with it.
        end.state = ChangeState::Undone;
        if !decision.writes.is_empty() {
            end.why.clear();
        }
    }
    let (state, why, left) = (end.state, end.why.clone(), end.left.clone());
    note(JournalRecord::Restored { step: step.number, state, why, left });
    end
}
