//! What undoing a step has to write, from its records and from what is read now. The rules are
//! those of [`super::restore`].

use std::collections::{BTreeMap, BTreeSet};

use model::fact::{Fact, errno_name};
use model::plan::ChangeState;
use model::setting::{Comparison, Key, Setting, TaskSetting};
use model::units::CpuSet;

use super::Kernel;
use super::journal::{EntryStep, OldValue, Outcome};
use super::placing::{affinity_back, first_word, is_partition, is_placing, user_of_controller, value_back};

/// What undoing a step comes to if all that is written is taken.
pub(super) struct RestoreDecision {
    /// These values, in this order; none removes.
    pub writes: Vec<OldValue>,
    pub state: ChangeState,
    pub why: String,
    pub left: Vec<OldValue>,
}

impl RestoreDecision {
    fn nothing(state: ChangeState, why: String) -> RestoreDecision {
        RestoreDecision { writes: Vec::new(), state, why, left: Vec::new() }
    }
}

/// Why nothing is left of what a thread was given.
pub const ENDED: &str = "it has ended";

fn has_ended(kernel: &dyn Kernel, key: &Key) -> bool {
    matches!(key, Key::Task { .. }) && kernel.read(key) == Fact::Absent
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

pub(super) fn decide(
    kernel: &dyn Kernel,
    step: &EntryStep,
    left: &BTreeSet<Key>,
    force: bool,
) -> RestoreDecision {
    let nothing = RestoreDecision::nothing;
    if let (Some(writes), None) = (&step.restoring, &step.left) {
        return RestoreDecision { writes: writes.clone(), ..nothing(ChangeState::Undone, String::new()) };
    }
    let setting = &step.change.setting;
    if let (Some(file), false) = (user_of_controller(kernel, step), force) {
        return nothing(ChangeState::Kept, format!("{file} is set by now, and would be lost"));
    }
    let (own, is_broken) = match own_target(kernel, step, force) {
        Ok(own) => own,
        Err(why) => {
            let left = vec![OldValue { key: setting.key.clone(), value: None }];
            return RestoreDecision { left, ..nothing(ChangeState::Refused, why) };
        }
    };
    let own_write = match own {
        Target::Value(value) => Some(OldValue { key: setting.key.clone(), value }),
        Target::Theirs(now) => return nothing(ChangeState::Kept, not_ours(&setting.key, &now)),
        // A write that was cut short, and is not to be seen, was not made.
        Target::AsItIs if step.outcome.is_none() && step.left.is_none() => {
            return nothing(ChangeState::Undone, String::new());
        }
        // Its group and its masks went with it.
        Target::AsItIs if has_ended(kernel, &setting.key) => {
            return nothing(ChangeState::Undone, ENDED.to_owned());
        }
        Target::AsItIs => None,
    };
    let others = Others { step, left, force, is_broken, own_is_ours: own_write.is_some() };
    others.decide(kernel, own_write)
}

/// The other keys that a change may have changed.
struct Others<'a> {
    step: &'a EntryStep,
    /// Those that later steps have left.
    left: &'a BTreeSet<Key>,
    force: bool,
    /// Whether the key itself has lost, without us, what it was given.
    is_broken: bool,
    own_is_ours: bool,
}

impl Others<'_> {
    fn decide(&self, kernel: &dyn Kernel, own_write: Option<OldValue>) -> RestoreDecision {
        let setting = &self.step.change.setting;
        let threads: BTreeMap<Key, String> = match setting.moves_threads {
            true => kernel.affinities().into_iter().collect(),
            false => BTreeMap::new(),
        };
        let (taken, given_back) = (self.taken(), cpus_given_back(kernel, self.step));
        let (mut first, mut rest, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for other in &self.step.others {
            let key = other.key.clone();
            if setting.restored_first.contains(&key) {
                first.push(OldValue { key, value: other.value.clone() });
                continue;
            }
            let now = threads.get(&key).cloned().or_else(|| kernel.read(&key).known().cloned());
            // A partition that turned invalid has changed masks once more.
            let again = threads.contains_key(&key) && now.is_some() && now == given_back;
            match self.target(other, now.as_ref(), again) {
                Target::Value(value) => rest.push((OldValue { key, value }, true)),
                // Our own write may change it.
                Target::AsItIs => rest.push((OldValue { key, value: now }, false)),
                Target::Theirs(theirs) if setting.partners.contains(&key) => {
                    kept.push(not_ours(&key, &theirs));
                    rest.push((OldValue { key, value: Some(theirs) }, false));
                }
                // It runs on these CPUs because it is in the group that has them.
                Target::Theirs(theirs) if cpus(&theirs).is_none_or(|cpus| !cpus.and(&taken).is_empty()) => {}
                Target::Theirs(theirs) => rest.push((OldValue { key, value: Some(theirs) }, false)),
            }
        }
        if own_write.is_none() {
            // Without the key itself these have no effect, and what is as it is stays so.
            first.clear();
            rest.retain(|(_, is_restored)| *is_restored);
        }
        let rest = rest.into_iter().map(|(write, _)| write).filter(|write| write.value.is_some());
        let (state, why) = match kept.is_empty() {
            true => (ChangeState::Undone, String::new()),
            false => (ChangeState::Kept, listed(kept.iter().map(String::as_str))),
        };
        let writes = first.into_iter().chain(own_write).chain(rest).collect();
        RestoreDecision { writes, ..RestoreDecision::nothing(state, why) }
    }

    /// What the change left in another key; as before where it left it alone.
    fn after<'a>(&'a self, old: &'a OldValue) -> Option<&'a String> {
        let mut changed = self.step.outcome.iter().flat_map(|outcome| &outcome.others);
        changed.find(|other| other.key == old.key).unwrap_or(old).value.as_ref()
    }

    /// The CPUs that the change has taken from others: no thread gets there but through its group.
    fn taken(&self) -> CpuSet {
        let set = |value: Option<&String>| value.and_then(|value| cpus(value)).unwrap_or_default();
        let setting = &self.step.change.setting;
        let given = match &setting.key {
            Key::GroupFile(_) => cpus(&setting.wanted).unwrap_or_default(),
            _ => CpuSet::default(),
        };
        let threads = self.step.others.iter().filter(|other| is_affinity(&other.key));
        threads.fold(given, |all, old| all.or(&set(old.value.as_ref()).without(&set(self.after(old)))))
    }

    /// What another key shall have: the old value where ours is there, else what another program
    /// has given it, which our own writing may change.
    fn target(&self, old: &OldValue, now: Option<&String>, again: bool) -> Target {
        let Some(now) = now else { return Target::AsItIs };
        if Some(now) == old.value.as_ref() {
            return Target::AsItIs;
        }
        let is_left = |left: &OldValue| left.key == old.key && left.value.as_ref() == Some(now);
        let is_partner = || self.step.change.setting.partners.contains(&old.key);
        let ours = match &self.step.left {
            // What that attempt did not leave was as it should be at its end; a partner goes with
            // the key, also where undoing earlier changes has moved it since.
            Some(all) => all.iter().any(is_left) || (self.own_is_ours && is_partner()),
            None => {
                self.step.outcome.is_none()
                    || self.after(old) == Some(now)
                    || (self.is_broken && self.is_freed(old, now))
            }
        };
        match ours || again || self.force || self.left.contains(&old.key) {
            true => Target::Value(affinity_back(self.step, old).or_else(|| old.value.clone())),
            false => Target::Theirs(now.clone()),
        }
    }

    /// Whether a thread may run wherever it could before and after the change: so the kernel leaves
    /// them when it ends a partition itself.
    fn is_freed(&self, old: &OldValue, now: &str) -> bool {
        let set = |value: Option<&String>| value.and_then(|value| cpus(value));
        match (set(old.value.as_ref()), set(self.after(old)), cpus(now)) {
            (Some(old_cpus), Some(after), Some(now)) if is_affinity(&old.key) => {
                old_cpus.or(&after).without(&now).is_empty()
            }
            _ => false,
        }
    }
}

fn is_affinity(key: &Key) -> bool {
    matches!(key, Key::Task { what: TaskSetting::Affinity, .. })
}

fn cpus(text: &str) -> Option<CpuSet> {
    CpuSet::parse(text).ok()
}

fn not_ours(key: &Key, now: &str) -> String {
    format!("{key} reads {} now, which is not ours", model::text::quoted_value(now.trim()))
}

/// What the key of the change shall have, and whether it has lost what it was given; or why that
/// cannot be said.
fn own_target(kernel: &dyn Kernel, step: &EntryStep, force: bool) -> Result<(Target, bool), String> {
    let setting = &step.change.setting;
    if setting.readback == Comparison::Unread {
        return Ok((Target::Value(step.old.clone()), false));
    }
    let is_first_try = step.left.is_none();
    Ok(match (kernel.read(&setting.key), &step.old) {
        // The thread has ended, the device is gone: with it went what was set.
        (Fact::Absent, _) => (Target::AsItIs, is_first_try),
        (Fact::Known(now), Some(old)) if setting.is_restored(&now, old) => (Target::AsItIs, is_first_try),
        (Fact::Known(now), Some(old)) if is_placing(step) && is_ours(step, &now) => {
            (Target::Value(Some(value_back(kernel, step, old))), false)
        }
        (Fact::Known(now), old) if force || is_ours(step, &now) => {
            let got = step.outcome.as_ref().and_then(|outcome| outcome.got.as_ref());
            let is_broken = got.is_some_and(|got| !setting.is_restored(&now, got));
            (Target::Value(old.clone()), is_broken && is_first_try)
        }
        (Fact::Known(now), _) => (Target::Theirs(now), false),
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

/// The mask that the kernel gives to threads when a partition turns invalid, where that is what has
/// become of this step's: all CPUs.
fn cpus_given_back(kernel: &dyn Kernel, step: &EntryStep) -> Option<String> {
    let setting = &step.change.setting;
    let got = step.outcome.as_ref()?.got.as_ref()?;
    let now = kernel.read(&setting.key).known().cloned()?;
    let turned = now.trim() != got.trim() && is_turned_invalid(setting, &now, got);
    let root = Key::GroupFile("cpuset.cpus.effective".to_owned());
    if turned { kernel.read(&root).known().map(|cpus| cpus.trim().to_owned()) } else { None }
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
