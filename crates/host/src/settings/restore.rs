//! Undoing an entry: the last change first, and of each only what is still ours.
//!
//! What will be written is decided from what is read now, and is on the disk before it is written:
//! an undo that is cut short is carried on as it was decided.

use std::collections::BTreeMap;
use std::io;

use model::fact::Fact;
use model::plan::{ChangeState, PlannedChange};
use model::setting::{Comparison, Key, TaskSetting, same};
use model::units::CpuSet;

use super::entry::refusal;
use super::journal::{EntryRecords, Journal, OldValue, Outcome, Record, Step};
use super::placing::{
    affinity_back, existing, is_placing, makes_group, move_out, undo_order, user_of_controller,
};
use super::{Kernel, Store};

/// A change and what undoing it came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    pub change: PlannedChange,
    pub state: ChangeState,
    /// What is left and why; `""` where nothing is.
    pub why: String,
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
    let mut note = |record: Record| {
        if let Some(journal) = &mut journal {
            noted = std::mem::replace(&mut noted, Ok(())).and(journal.note(&record));
        }
    };
    let left = entry.steps.iter().filter(|step| step.is_live() || (force && step.is_kept()));
    let mut all = Vec::new();
    for step in undo_order(left) {
        if let Some(group) = makes_group(step) {
            move_out(kernel, &entry.steps, group);
        }
        let (state, why) = restore_step(kernel, &mut note, step, force);
        all.push(Restored { change: step.change.clone(), state, why });
    }
    (all, noted)
}

/// Undoes one step; each record is noted before what it says is done.
pub(super) fn restore_step(
    kernel: &mut dyn Kernel,
    note: &mut dyn FnMut(Record),
    step: &Step,
    force: bool,
) -> (ChangeState, String) {
    let (state, why) = match decide(kernel, step, force) {
        Decision::Write(writes) => {
            note(Record::Restoring { step: step.number, writes: writes.clone() });
            execute(kernel, step, &writes)
        }
        // Where it is now, or what it has set, is its own: nothing is left of what we did with it.
        Decision::Nothing(ChangeState::Kept, why) if is_placing(step) => (ChangeState::Undone, why),
        Decision::Nothing(state, why) => (state, why),
    };
    note(Record::Restored { step: step.number, state, why: why.clone() });
    (state, why)
}

enum Decision {
    /// These values, in this order; none removes.
    Write(Vec<OldValue>),
    Nothing(ChangeState, String),
}

fn decide(kernel: &dyn Kernel, step: &Step, force: bool) -> Decision {
    if let Some(writes) = &step.restoring {
        return Decision::Write(writes.clone());
    }
    let setting = &step.change.setting;
    let unread = setting.readback == Comparison::Unread;
    let now = if unread { Fact::Known(String::new()) } else { kernel.read(&setting.key) };
    if let (Some(user), false) = (user_of_controller(kernel, step), force) {
        let why = format!("{user} is set by now, and would be lost");
        return Decision::Nothing(ChangeState::Kept, why);
    }
    let own = match (&now, &step.old) {
        (Fact::Absent, None) => None,
        // The thread has ended, the device is gone: with it went what was set.
        (Fact::Absent, Some(_)) => {
            return Decision::Nothing(ChangeState::Undone, "it is gone".to_owned());
        }
        (Fact::Known(now), Some(old)) if !unread && same_value(step, now, old) => None,
        (Fact::Known(now), old) if unread || force || is_ours(step, now) => {
            let placed = matches!(setting.key, Key::Task { what: TaskSetting::Group, .. });
            let old = old.as_ref().map(|old| if placed { existing(kernel, old) } else { old.clone() });
            Some(OldValue { key: setting.key.clone(), value: old })
        }
        (Fact::Known(now), _) => {
            let why = format!("it reads {} now, which is not ours", model::text::quoted(now.trim()));
            return Decision::Nothing(ChangeState::Kept, why);
        }
        (other, _) => {
            return Decision::Nothing(ChangeState::Refused, format!("it cannot be read: {other:?}"));
        }
    };
    let (first, rest): (Vec<OldValue>, Vec<OldValue>) = others(kernel, step, force)
        .into_iter()
        .partition(|other| setting.restored_first.contains(&other.key));
    // Writing these has an effect only together with the key itself.
    let first = if own.is_some() { first } else { Vec::new() };
    Decision::Write(first.into_iter().chain(own).chain(rest).collect())
}

/// The other keys, each with the value that it shall have: the old one where it is ours, else what
/// another program has given it, which our writing may change.
fn others(kernel: &dyn Kernel, step: &Step, force: bool) -> Vec<OldValue> {
    let after: BTreeMap<&Key, &Option<String>> = match &step.outcome {
        Some(outcome) => outcome.others.iter().map(|other| (&other.key, &other.value)).collect(),
        None => BTreeMap::new(),
    };
    let threads: BTreeMap<Key, String> = match step.change.setting.moves_threads {
        true => kernel.affinities().into_iter().collect(),
        false => BTreeMap::new(),
    };
    let unread = |key: &Key| step.change.setting.restored_first.contains(key);
    let target = |other: &OldValue| {
        if unread(&other.key) {
            return other.value.clone();
        }
        let now = threads.get(&other.key).cloned().or_else(|| kernel.read(&other.key).known().cloned());
        let ours = match (&step.outcome, after.get(&other.key)) {
            (None, _) => true,
            (Some(_), Some(after)) => now == **after,
            (Some(_), None) => now == other.value,
        };
        if ours || force { affinity_back(step, other).or_else(|| other.value.clone()) } else { now }
    };
    let all = step.others.iter();
    let targets = all.map(|other| OldValue { key: other.key.clone(), value: target(other) });
    targets.filter(|other| other.value.is_some()).collect()
}

fn same_value(step: &Step, now: &str, old: &str) -> bool {
    let how = match step.change.setting.readback {
        Comparison::Unread => Comparison::Exact,
        how => how,
    };
    same(how, now, old)
}

/// Whether the value is the one that the change left there. Where the write was cut short nobody
/// knows what it left: then what is there counts as ours.
fn is_ours(step: &Step, now: &str) -> bool {
    match &step.outcome {
        None => true,
        Some(outcome) => match (&outcome.got, outcome.outcome) {
            (Some(got), _) => same_value(step, now, got),
            (None, Outcome::Refused) => true,
            (None, _) => step.change.setting.is_met_by(now),
        },
    }
}

/// Writes what was decided, until it is so: a partner may undo what was just written.
fn execute(kernel: &mut dyn Kernel, step: &Step, writes: &[OldValue]) -> (ChangeState, String) {
    let setting = &step.change.setting;
    let mut failed = BTreeMap::new();
    for _ in 0..2 {
        for write in writes {
            let unread = setting.restored_first.contains(&write.key)
                || (write.key == setting.key && setting.readback == Comparison::Unread);
            let now = if unread { None } else { Some(kernel.read(&write.key)) };
            let value = match (&now, &write.value) {
                (Some(Fact::Known(now)), Some(wanted)) if is_restored(step, &write.key, now, wanted) => {
                    continue;
                }
                (Some(Fact::Absent), _) => continue,
                (Some(Fact::Known(now)), Some(wanted)) if write.key == setting.key => {
                    Some(setting.restoring(wanted, now))
                }
                (_, value) => value.as_ref().map(|value| value.trim().to_owned()),
            };
            match kernel.write(&write.key, value.as_deref()) {
                Ok(()) => failed.remove(&write.key),
                Err(error) => failed.insert(write.key.clone(), refusal(&error)),
            };
        }
    }
    let left = |write: &&OldValue| {
        // What the others came to shows in the key itself.
        if setting.restored_first.contains(&write.key) {
            return false;
        }
        if setting.readback == Comparison::Unread && write.key == setting.key {
            return failed.contains_key(&write.key);
        }
        match (kernel.read(&write.key), &write.value) {
            (Fact::Absent, _) => false,
            (Fact::Known(now), Some(wanted)) => {
                !is_restored(step, &write.key, &now, wanted) && !is_narrowed(step, &write.key, &now, wanted)
            }
            _ => true,
        }
    };
    let left: Vec<String> = writes
        .iter()
        .filter(left)
        .map(|write| match failed.get(&write.key) {
            Some(why) => format!("{}: {why}", write.key),
            None => format!("{} does not read as before", write.key),
        })
        .collect();
    match left.is_empty() {
        true => (ChangeState::Undone, String::new()),
        false => (ChangeState::Refused, left.join("; ")),
    }
}

/// Whether a key reads as it shall; those beside the step's own are compared as texts.
fn is_restored(step: &Step, key: &Key, now: &str, wanted: &str) -> bool {
    if *key == step.change.setting.key {
        same_value(step, now, wanted)
    } else {
        same(Comparison::Exact, now, wanted)
    }
}

/// Whether a thread has those of its CPUs that its group has: the group may have fewer by now.
fn is_narrowed(step: &Step, key: &Key, now: &str, wanted: &str) -> bool {
    let affinity = matches!(key, Key::Task { what: TaskSetting::Affinity, .. });
    let own = *key == step.change.setting.key;
    affinity
        && !own
        && matches!((CpuSet::parse(now), CpuSet::parse(wanted)), (Ok(now), Ok(wanted))
        if !now.is_empty() && now.without(&wanted).is_empty())
}
