//! What undoing a step has to write, from its records and from what is read now. The rules are those
//! of [`super::restore`].

use std::collections::BTreeMap;

use model::fact::{Fact, errno_name};
use model::plan::ChangeState;
use model::setting::{Comparison, Key, Setting};

use super::Kernel;
use super::journal::{EntryStep, OldValue, Outcome};
use super::placing::{affinity_back, first_word, is_partition, is_placing, user_of_controller, value_back};

/// What undoing a step comes to if all that is written is taken.
pub(super) struct Decision {
    /// These values, in this order; none removes.
    pub writes: Vec<OldValue>,
    pub state: ChangeState,
    pub why: String,
    pub left: Vec<OldValue>,
}

impl Decision {
    fn nothing(state: ChangeState, why: String) -> Decision {
        Decision { writes: Vec::new(), state, why, left: Vec::new() }
    }
}

/// What a key shall have.
enum Target {
    /// Ours is there, or this is to be made sure of: this value, none to remove it.
    Value(Option<String>),
    /// It is as it was, or gone.
    AsItIs,
    /// Another program's value, which stays.
    Theirs(String),
}

pub(super) fn decide(kernel: &dyn Kernel, step: &EntryStep, force: bool) -> Decision {
    if let (Some(writes), None) = (&step.restoring, &step.left) {
        return Decision { writes: writes.clone(), ..Decision::nothing(ChangeState::Undone, String::new()) };
    }
    let setting = &step.change.setting;
    if let (Some(file), false) = (user_of_controller(kernel, step), force) {
        let why = format!("{file} is set by now, and would be lost");
        return Decision::nothing(ChangeState::Kept, why);
    }
    let own = match own_target(kernel, step, force) {
        Ok(own) => own,
        Err(why) => {
            let left = vec![OldValue { key: setting.key.clone(), value: None }];
            return Decision { left, ..Decision::nothing(ChangeState::Refused, why) };
        }
    };
    let own_write = match own {
        Target::Value(value) => Some(OldValue { key: setting.key.clone(), value }),
        Target::Theirs(now) => return Decision::nothing(ChangeState::Kept, not_ours(&setting.key, &now)),
        // A write that was cut short, and is not to be seen, was not made.
        Target::AsItIs if step.outcome.is_none() && step.left.is_none() => {
            return Decision::nothing(ChangeState::Undone, String::new());
        }
        Target::AsItIs => None,
    };
    let mut decision = Decision::nothing(ChangeState::Undone, String::new());
    let threads: BTreeMap<Key, String> = match setting.moves_threads {
        true => kernel.affinities().into_iter().collect(),
        false => BTreeMap::new(),
    };
    let (mut first, mut rest, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for other in &step.others {
        let key = other.key.clone();
        if setting.restored_first.contains(&key) {
            first.push(OldValue { key, value: other.value.clone() });
            continue;
        }
        let now = threads.get(&key).cloned().or_else(|| kernel.read(&key).known().cloned());
        match other_target(step, other, now.as_ref(), force) {
            Target::Value(value) => rest.push(OldValue { key, value }),
            // Our own write may change it.
            Target::AsItIs => rest.push(OldValue { key, value: now }),
            Target::Theirs(theirs) => {
                if setting.partners.contains(&key) {
                    kept.push(not_ours(&key, &theirs));
                }
                rest.push(OldValue { key, value: Some(theirs) });
            }
        }
    }
    if own_write.is_none() {
        // Writing these has an effect only together with the key itself.
        first.clear();
    }
    let writes = first.into_iter().chain(own_write).collect::<Vec<_>>();
    rest.retain(|write| write.value.is_some());
    if writes.is_empty() {
        rest.retain(|write| {
            threads.get(&write.key).or(kernel.read(&write.key).known()) != write.value.as_ref()
        });
    }
    decision.writes = writes.into_iter().chain(rest).collect();
    if !kept.is_empty() {
        (decision.state, decision.why) = (ChangeState::Kept, listed(kept.iter().map(String::as_str)));
    }
    decision
}

fn not_ours(key: &Key, now: &str) -> String {
    format!("{key} reads {} now, which is not ours", model::text::quoted(now.trim()))
}

/// What the key of the change shall have; why that cannot be said.
fn own_target(kernel: &dyn Kernel, step: &EntryStep, force: bool) -> Result<Target, String> {
    let setting = &step.change.setting;
    if setting.readback == Comparison::Unread {
        return Ok(Target::Value(step.old.clone()));
    }
    Ok(match (kernel.read(&setting.key), &step.old) {
        // The thread has ended, the device is gone: with it went what was set.
        (Fact::Absent, _) => Target::AsItIs,
        (Fact::Known(now), Some(old)) if setting.is_restored(&now, old) => Target::AsItIs,
        (Fact::Known(now), Some(old)) if is_placing(step) && is_ours(step, &now) => {
            Target::Value(Some(value_back(kernel, step, old)))
        }
        (Fact::Known(now), old) if force || is_ours(step, &now) => Target::Value(old.clone()),
        (Fact::Known(now), _) => Target::Theirs(now),
        (other, _) => return Err(format!("{} cannot be read: {}", setting.key, unread(&other))),
    })
}

fn unread(fact: &Fact<String>) -> String {
    match fact {
        Fact::Refused(errno) => errno_name(*errno),
        Fact::Malformed(what) => what.clone(),
        _ => "nothing is known of it".to_owned(),
    }
}

/// What another key shall have: the old value where ours is there, else what another program has
/// given it, which our own writing may change.
fn other_target(step: &EntryStep, old: &OldValue, now: Option<&String>, force: bool) -> Target {
    let Some(now) = now else { return Target::AsItIs };
    if Some(now) == old.value.as_ref() {
        return Target::AsItIs;
    }
    let left = step.left.iter().flatten().find(|left| left.key == old.key).map(|left| left.value.as_ref());
    let after = || {
        let changed = step.outcome.iter().flat_map(|outcome| &outcome.others);
        changed.filter(|other| other.key == old.key).map(|other| other.value.as_ref()).next()
    };
    let ours = match left {
        Some(left) => left == Some(now),
        None => step.outcome.is_none() || after() == Some(Some(now)),
    };
    match ours || force {
        true => Target::Value(affinity_back(step, old).or_else(|| old.value.clone())),
        false => Target::Theirs(now.clone()),
    }
}

/// Whether the value is the one that the change left there, or the attempt to undo it.
fn is_ours(step: &EntryStep, now: &str) -> bool {
    let setting = &step.change.setting;
    let left = step.left.iter().flatten().find(|left| left.key == setting.key);
    if let Some(left) = left.and_then(|left| left.value.as_ref()) {
        return setting.is_restored(now, left);
    }
    match &step.outcome {
        None => true,
        Some(outcome) => match (&outcome.got, outcome.outcome) {
            (Some(got), _) => setting.is_restored(now, got) || is_turned_invalid(setting, now, got),
            (None, Outcome::Refused) => true,
            (None, _) => setting.is_met_by(now),
        },
    }
}

/// The kernel says `isolated invalid (...)` of a partition that has lost its CPUs, to another group
/// or with them: Documentation/admin-guide/cgroup-v2.rst, "cpuset.cpus.partition".
fn is_turned_invalid(setting: &Setting, now: &str, got: &str) -> bool {
    is_partition(&setting.key) && first_word(now) == first_word(got)
}

/// A few of them, and how many more.
pub(super) fn listed<'a>(mut all: impl Iterator<Item = &'a str>) -> String {
    let some: Vec<&str> = all.by_ref().take(4).collect();
    match all.count() {
        0 => some.join("; "),
        more => format!("{}; and {more} more", some.join("; ")),
    }
}
