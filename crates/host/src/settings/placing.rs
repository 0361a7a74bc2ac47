//! Processes placed in a group of an entry: an undo moves each back to its former group, with the
//! processes it started, before the group is removed.

use std::collections::BTreeMap;
use std::io;

use model::fact::Fact;
use model::isolation::PARTITION_RULE;
use model::setting::{Comparison, Key, TaskSetting, same};
use model::units::{CPU_LIMIT, CpuSet};

use super::journal::{EntryStep, OldValue};
use super::{GroupProcess, Kernel};

/// Steps in the order in which they are undone, the last first. If processes were placed, the
/// partition returns its CPUs, and then they leave, before a group is removed: so the groups to
/// which they return have all their CPUs.
pub(super) fn undo_order<'a>(live: impl DoubleEndedIterator<Item = &'a EntryStep>) -> Vec<&'a EntryStep> {
    let all: Vec<&EntryStep> = live.rev().collect();
    let partition = all.iter().rposition(|step| is_partition(&step.change.setting.key));
    let Some(partition) = partition.filter(|&at| all[..at].iter().any(|step| is_placing(step))) else {
        return all;
    };
    let partition = all[partition];
    let (placing, mut others): (Vec<&EntryStep>, Vec<&EntryStep>) =
        all.into_iter().filter(|step| step.number != partition.number).partition(|step| is_placing(step));
    let before = |step: &&EntryStep| makes_group(step).is_some() || step.number < partition.number;
    let leaving = others.iter().position(before).unwrap_or(others.len());
    others.splice(leaving..leaving, std::iter::once(partition).chain(placing));
    others
}

pub(super) fn is_partition(key: &Key) -> bool {
    matches!(key, Key::GroupFile(path) if path.ends_with("/cpuset.cpus.partition"))
}

pub(super) fn first_word(text: &str) -> Option<&str> {
    text.split_whitespace().next()
}

/// Group that a step created.
pub(super) fn makes_group(step: &EntryStep) -> Option<&str> {
    match (&step.change.setting.key, &step.old) {
        (Key::Group(group), None) => Some(group),
        _ => None,
    }
}

/// True for a step of a process placed on isolated CPUs.
pub(super) fn is_placing(step: &EntryStep) -> bool {
    matches!(step.change.setting.key, Key::Task { .. }) && step.change.rule == PARTITION_RULE
}

/// Former states of placed processes, by PID and start time.
#[derive(Default)]
pub(super) struct PlacedProcesses<'a> {
    /// Former group; the last one of a process that was placed twice.
    former: BTreeMap<(u32, u64), &'a str>,
    /// CPUs to which it was bound.
    bound: BTreeMap<(u32, u64), &'a str>,
}

impl<'a> PlacedProcesses<'a> {
    pub fn of(steps: &'a [EntryStep]) -> PlacedProcesses<'a> {
        let mut placed = PlacedProcesses::default();
        for step in steps.iter().filter(|step| is_placing(step)) {
            let setting = &step.change.setting;
            match (&setting.key, step.old.as_deref()) {
                (Key::Task { tid, start, what: TaskSetting::Group }, Some(old)) => {
                    placed.former.insert((*tid, *start), old);
                }
                (Key::Task { tid, start, what: TaskSetting::Affinity }, _) => {
                    placed.bound.insert((*tid, *start), &setting.wanted);
                }
                _ => {}
            }
        }
        placed
    }

    /// Moves a process to its former group, or that of its nearest placed ancestor; to the root
    /// group if that is missing or unknown. Unbinds those of its threads that are still bound to
    /// the CPUs of that process.
    pub fn move_back(&self, kernel: &mut dyn Kernel, process: &GroupProcess) -> io::Result<()> {
        let itself = std::iter::once((process.pid, process.start));
        let mut line = itself.chain(process.ancestors.iter().copied());
        let known = line.find(|process| self.former.contains_key(process));
        let former = known.and_then(|process| self.former.get(&process).copied());
        let target = former.map_or_else(|| "/".to_owned(), |group| existing(kernel, group));
        let key = |(tid, start), what| Key::Task { tid, start, what };
        let bound = known.and_then(|process| self.bound.get(&process).copied());
        let masks = process.threads.iter().map(|thread| key(*thread, TaskSetting::Affinity));
        let has =
            |mask: &Key, cpus| kernel.read(mask).known().is_some_and(|now| same(Comparison::List, now, cpus));
        let bound: Vec<Key> = masks.filter(|mask| bound.is_some_and(|cpus| has(mask, cpus))).collect();
        kernel.write(&key((process.pid, process.start), TaskSetting::Group), Some(&target))?;
        for mask in bound {
            // A thread that has ended in between has no affinity.
            let _ = kernel.write(&mask, Some(&all_cpus()));
        }
        Ok(())
    }
}

/// Moves the processes in a group of these steps to their former groups.
pub(super) fn move_out(kernel: &mut dyn Kernel, steps: &[EntryStep], group: &str) {
    let placed = PlacedProcesses::of(steps);
    for process in kernel.processes_in(group) {
        // A process that cannot be moved makes the removal of its group fail, which is reported.
        let _ = placed.move_back(kernel, &process);
    }
}

/// All possible CPUs; the kernel applies those that the group has.
fn all_cpus() -> String {
    format!("0-{}", CPU_LIMIT - 1)
}

/// The group, or the root if it does not exist.
fn existing(kernel: &dyn Kernel, group: &str) -> String {
    let path = group.trim_matches('/');
    if path.is_empty() || kernel.read(&Key::Group(format!("{path}/"))) == Fact::Absent {
        "/".to_owned()
    } else {
        group.to_owned()
    }
}

/// Reason to keep a controller enabled for the groups below one: a file of a group that uses it.
/// Disabling it would remove the values of that group.
pub(super) fn user_of_controller(kernel: &dyn Kernel, step: &EntryStep) -> Option<String> {
    let Key::GroupFile(file) = &step.change.setting.key else { return None };
    let setting = &step.change.setting;
    if setting.readback != Comparison::Listed || !setting.wanted.contains("+cpuset") {
        return None;
    }
    let group = file.strip_suffix("cgroup.subtree_control")?;
    let uses = |below: &String| {
        let read = |name: &str| kernel.read(&Key::GroupFile(format!("{below}/{name}"))).known().cloned();
        let set = ["cpuset.cpus", "cpuset.mems", "cpuset.cpus.exclusive"]
            .into_iter()
            .find(|name| read(name).is_some_and(|value| !value.trim().is_empty()));
        let partition = || read("cpuset.cpus.partition").filter(|kind| kind.trim() != "member");
        let passed_on = || {
            read("cgroup.subtree_control").filter(|list| list.split_whitespace().any(|name| name == "cpuset"))
        };
        set.or_else(|| partition().map(|_| "cpuset.cpus.partition"))
            .or_else(|| passed_on().map(|_| "cgroup.subtree_control"))
            .map(|name| format!("{below}/{name}"))
    };
    kernel.groups_below(group).iter().find_map(uses)
}

/// The step with the masks of a placed process's threads before the isolation: the partition may
/// have narrowed them, and the kernel remembers the requested ones (since 6.2).
pub(super) fn with_first_masks(step: &EntryStep, steps: &[EntryStep]) -> EntryStep {
    let mut step = step.clone();
    if !is_placing(&step) {
        return step;
    }
    let number = step.number;
    for other in &mut step.others {
        let moving = steps.iter().filter(|step| step.number < number && step.change.setting.moves_threads);
        let (mut first, mut expected) = (None, None);
        for moved in moving {
            let find = |all: &[OldValue]| {
                all.iter().find(|old| old.key == other.key).and_then(|old| old.value.clone())
            };
            let before = find(&moved.others);
            let after = moved.outcome.as_ref().and_then(|outcome| find(&outcome.others)).or(before.clone());
            // A mask set by another program in between takes precedence.
            if first.is_none() || before != expected {
                first = before;
            }
            expected = after;
        }
        if first.is_some() && expected == other.value {
            other.value = first;
        }
    }
    step
}

/// Value to restore for a placed process: its former group, or the root if it does not exist.
pub(super) fn value_back(kernel: &dyn Kernel, step: &EntryStep, old: &str) -> String {
    match step.change.setting.key {
        Key::Task { what: TaskSetting::Group, .. } => existing(kernel, old),
        _ => old.to_owned(),
    }
}

/// Mask to restore for a thread that had all CPUs of its group: all that the group has at that
/// time.
pub(super) fn affinity_back(step: &EntryStep, other: &OldValue) -> Option<String> {
    let Key::Task { what: TaskSetting::Affinity, .. } = other.key else { return None };
    let effective = step.others.iter().find_map(|other| match &other.key {
        Key::GroupFile(file) if file.ends_with("cpuset.cpus.effective") => other.value.as_deref(),
        _ => None,
    })?;
    let parse = |text: &str| CpuSet::parse(text).ok();
    let (had, all) = (parse(other.value.as_deref()?)?, parse(effective)?);
    (!all.is_empty() && all.without(&had).is_empty()).then(all_cpus)
}
