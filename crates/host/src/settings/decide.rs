//! Decisions on undoing a step, from its records and from the present values. The rules are those
//! of [`super::restore`].

use std::collections::{BTreeMap, BTreeSet};

use model::fact::{Fact, errno_name};
use model::plan::ChangeState;
use model::setting::{Comparison, Key, Setting, TaskSetting};
use model::units::CpuSet;

use super::Kernel;
use super::journal::{EntryStep, OldValue, Outcome};
use super::placing::{affinity_back, first_word, is_partition, is_placing, user_of_controller, value_back};

/// Decision on undoing a step: what to write, and the result if all writes succeed.
pub(super) struct RestoreDecision {
    /// Values to write, in this order; none removes the key.
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

/// Reason if a thread has ended, and its settings with it.
pub const ENDED: &str = "it has ended";

fn has_ended(kernel: &dyn Kernel, key: &Key) -> bool {
    matches!(key, Key::Task { .. }) && kernel.read(key) == Fact::Absent
}

/// Target value of a key.
enum Target {
    /// This value, or none to remove the key, which has our value or may have it.
    Value(Option<String>),
    /// The present value: the key has its old value, or has disappeared.
    AsItIs,
    /// The present value, because another program set it.
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
        return nothing(ChangeState::Kept, format!("{file} is set now, and its value would be lost"));
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
        // An interrupted write without visible effect did not happen.
        Target::AsItIs if step.outcome.is_none() && step.left.is_none() => {
            return nothing(ChangeState::Undone, String::new());
        }
        // The thread's group and masks ended with it.
        Target::AsItIs if has_ended(kernel, &setting.key) => {
            return nothing(ChangeState::Undone, ENDED.to_owned());
        }
        Target::AsItIs => None,
    };
    let others = Others { step, left, force, is_broken, own_is_ours: own_write.is_some() };
    others.decide(kernel, own_write)
}

/// Decisions on the other keys that a change may have changed.
struct Others<'a> {
    step: &'a EntryStep,
    /// Keys that undoing later steps did not restore.
    left: &'a BTreeSet<Key>,
    force: bool,
    /// True if the key itself has lost the value that it was given, without an undo.
    is_broken: bool,
    own_is_ours: bool,
}

impl Others<'_> {
    fn decide(&self, kernel: &dyn Kernel, own_write: Option<OldValue>) -> RestoreDecision {
        let setting = &self.step.change.setting;
        let threads: BTreeMap<Key, String> =
            if setting.moves_threads { kernel.affinities().into_iter().collect() } else { BTreeMap::new() };
        let (taken, given_back) = (self.taken(), cpus_given_back(kernel, self.step));
        let (mut first, mut rest, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        for other in &self.step.others {
            let key = other.key.clone();
            if setting.restored_first.contains(&key) {
                first.push(OldValue { key, value: other.value.clone() });
                continue;
            }
            let now = threads.get(&key).cloned().or_else(|| kernel.read(&key).known().cloned());
            // A partition that turned invalid has changed the masks again.
            let again = threads.contains_key(&key) && now.is_some() && now == given_back;
            match self.target(other, now.as_ref(), again) {
                Target::Value(value) => rest.push((OldValue { key, value }, true)),
                // Our own write may change it.
                Target::AsItIs => rest.push((OldValue { key, value: now }, false)),
                Target::Theirs(theirs) if setting.partners.contains(&key) => {
                    kept.push(not_ours(&key, &theirs));
                    rest.push((OldValue { key, value: Some(theirs) }, false));
                }
                // The thread runs there only because its group has these CPUs.
                Target::Theirs(theirs) if cpus(&theirs).is_none_or(|cpus| !cpus.and(&taken).is_empty()) => {}
                Target::Theirs(theirs) => rest.push((OldValue { key, value: Some(theirs) }, false)),
            }
        }
        if own_write.is_none() {
            // Without a write of the key itself these have no effect; restore only what changed.
            first.clear();
            rest.retain(|(_, is_restored)| *is_restored);
        }
        let rest = rest.into_iter().map(|(write, _)| write).filter(|write| write.value.is_some());
        let (state, why) = if kept.is_empty() {
            (ChangeState::Undone, String::new())
        } else {
            (ChangeState::Kept, listed(kept.iter().map(String::as_str)))
        };
        let writes = first.into_iter().chain(own_write).chain(rest).collect();
        RestoreDecision { writes, ..RestoreDecision::nothing(state, why) }
    }

    /// Value that the change left in another key; the old one if the change did not affect it.
    fn after<'a>(&'a self, old: &'a OldValue) -> Option<&'a String> {
        let mut changed = self.step.outcome.iter().flat_map(|outcome| &outcome.others);
        changed.find(|other| other.key == old.key).unwrap_or(old).value.as_ref()
    }

    /// CPUs that the change took from others; threads run there only through their group.
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

    /// Target of another key: the old value if the key has ours, else the value that another
    /// program has set, which our own write may change.
    fn target(&self, old: &OldValue, now: Option<&String>, again: bool) -> Target {
        let Some(now) = now else { return Target::AsItIs };
        if Some(now) == old.value.as_ref() {
            return Target::AsItIs;
        }
        let is_left = |left: &OldValue| left.key == old.key && left.value.as_ref() == Some(now);
        let is_partner = || self.step.change.setting.partners.contains(&old.key);
        let ours = match &self.step.left {
            // That attempt restored all keys but these; a partner follows the key, even if undoing
            // earlier changes has moved it since.
            Some(all) => all.iter().any(is_left) || (self.own_is_ours && is_partner()),
            None => {
                self.step.outcome.is_none()
                    || self.after(old) == Some(now)
                    || (self.is_broken && self.is_freed(old, now))
            }
        };
        if ours || again || self.force || self.left.contains(&old.key) {
            Target::Value(affinity_back(self.step, old).or_else(|| old.value.clone()))
        } else {
            Target::Theirs(now.clone())
        }
    }

    /// True if a thread may run on all CPUs that it had before and after the change: the kernel
    /// leaves threads in this state when it ends a partition itself.
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
    format!("{key} is now {}, which onbeat did not write", model::text::quoted_value(now.trim()))
}

/// Target of the change's key, and true if the key has lost the value that it was given; an error
/// if the key cannot be read.
fn own_target(kernel: &dyn Kernel, step: &EntryStep, force: bool) -> Result<(Target, bool), String> {
    let setting = &step.change.setting;
    if setting.readback == Comparison::Unread {
        return Ok((Target::Value(step.old.clone()), false));
    }
    let is_first_try = step.left.is_none();
    Ok(match (kernel.read(&setting.key), &step.old) {
        // The thread has ended or the device is removed, and the setting with it.
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
        _ => "nothing is known about it".to_owned(),
    }
}

/// True if the value is the one that the change, or an attempt to undo it, has left.
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

/// Mask that the kernel gives to threads when a partition turns invalid, if this step's partition
/// has: all CPUs.
fn cpus_given_back(kernel: &dyn Kernel, step: &EntryStep) -> Option<String> {
    let setting = &step.change.setting;
    let got = step.outcome.as_ref()?.got.as_ref()?;
    let now = kernel.read(&setting.key).known().cloned()?;
    let turned = now.trim() != got.trim() && is_turned_invalid(setting, &now, got);
    let root = Key::GroupFile("cpuset.cpus.effective".to_owned());
    if turned { kernel.read(&root).known().map(|cpus| cpus.trim().to_owned()) } else { None }
}

/// True if a partition is unchanged or has turned `isolated invalid (...)`, having lost its CPUs:
/// Documentation/admin-guide/cgroup-v2.rst, "cpuset.cpus.partition".
fn is_turned_invalid(setting: &Setting, now: &str, got: &str) -> bool {
    is_partition(&setting.key) && first_word(now) == first_word(got)
}

/// The first four of them, and the number of the others.
pub(super) fn listed<'a>(mut all: impl Iterator<Item = &'a str>) -> String {
    let some: Vec<&str> = all.by_ref().take(4).collect();
    match all.count() {
        0 => some.join("; "),
        more => format!("{}; and {more} more", some.join("; ")),
    }
}
