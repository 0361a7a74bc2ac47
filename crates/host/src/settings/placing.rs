//! Processes that were placed in a group of an entry: undoing puts each back where it came from,
//! and those that it started with it, before the group is removed.

use std::collections::BTreeMap;
use std::io;

use model::fact::Fact;
use model::setting::{Comparison, Key, TaskSetting};
use model::units::{CPU_LIMIT, CpuSet};

use super::journal::{OldValue, Step};
use super::{GroupProcess, Kernel};

/// The steps in the order in which they are undone: the last first, but a partition gives its CPUs
/// back, and then its processes leave, before a group is removed: so the groups to which they return
/// have all their CPUs.
pub(super) fn undo_order<'a>(live: impl DoubleEndedIterator<Item = &'a Step>) -> Vec<&'a Step> {
    let (placing, mut others): (Vec<&Step>, Vec<&Step>) = live.rev().partition(|step| is_placing(step));
    let removal = others.iter().position(|step| makes_group(step).is_some());
    let partition = others.iter().position(|step| is_partition(step));
    let leaving = match (removal, partition) {
        (Some(removal), Some(partition)) if removal < partition => {
            let partition = others.remove(partition);
            others.insert(removal, partition);
            removal + 1
        }
        (_, Some(partition)) => partition + 1,
        (Some(removal), None) => removal,
        (None, None) => 0,
    };
    others.splice(leaving..leaving, placing);
    others
}

/// The group that a step made.
pub(super) fn makes_group(step: &Step) -> Option<&str> {
    match (&step.change.setting.key, &step.old) {
        (Key::Group(group), None) => Some(group),
        _ => None,
    }
}

pub(super) fn is_placing(step: &Step) -> bool {
    matches!(step.change.setting.key, Key::Task { .. }) && step.change.rule.is_empty()
}

fn is_partition(step: &Step) -> bool {
    matches!(&step.change.setting.key, Key::GroupFile(file) if file.ends_with("/cpuset.cpus.partition"))
}

/// The group that a process was in before it was placed, by its number and start.
pub(super) fn former_groups(steps: &[Step]) -> BTreeMap<(u32, u64), &str> {
    let of = |step: &'_ Step| match step.change.setting.key {
        Key::Task { tid, start, what: TaskSetting::Group } => Some((tid, start)),
        _ => None,
    };
    // Of a process that was placed, taken out and placed again the last counts.
    steps.iter().filter_map(|step| Some((of(step)?, step.old.as_deref()?))).collect()
}

/// Moves what is in a group of these steps to where it, or the process that it descends from, came
/// from; to the root group where that is gone or not known.
pub(super) fn move_out(kernel: &mut dyn Kernel, steps: &[Step], group: &str) {
    let former = former_groups(steps);
    for process in kernel.processes_in(group) {
        // One that cannot be moved there keeps its group from being removed, which is reported.
        let _ = move_back(kernel, &former, &process);
    }
}

/// Moves a process to where it, or the nearest that it descends from, came from.
pub(super) fn move_back(
    kernel: &mut dyn Kernel,
    former: &BTreeMap<(u32, u64), &str>,
    process: &GroupProcess,
) -> io::Result<()> {
    let itself = std::iter::once((process.pid, process.start));
    let known =
        itself.chain(process.ancestors.iter().copied()).find_map(|process| former.get(&process).copied());
    let target = known.map_or_else(|| "/".to_owned(), |group| existing(kernel, group));
    let key = Key::Task { tid: process.pid, start: process.start, what: TaskSetting::Group };
    kernel.write(&key, Some(&target))
}

/// The group, or the root where it is gone.
pub(super) fn existing(kernel: &dyn Kernel, group: &str) -> String {
    let path = group.trim_matches('/');
    match path.is_empty() || kernel.read(&Key::Group(format!("{path}/"))) == Fact::Absent {
        true => "/".to_owned(),
        false => group.to_owned(),
    }
}

/// Why a controller has to stay on for the groups below one: others use it. Taking it away would
/// take what they have set.
pub(super) fn user_of_controller(kernel: &dyn Kernel, step: &Step) -> Option<String> {
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

/// What a thread's mask is restored to: one that had all CPUs of its group gets those that the
/// group has by then.
pub(super) fn affinity_back(step: &Step, other: &OldValue) -> Option<String> {
    let Key::Task { what: TaskSetting::Affinity, .. } = other.key else { return None };
    let effective = step.others.iter().find_map(|other| match &other.key {
        Key::GroupFile(file) if file.ends_with("cpuset.cpus.effective") => other.value.as_deref(),
        _ => None,
    })?;
    let parse = |text: &str| CpuSet::parse(text).ok();
    let (had, all) = (parse(other.value.as_deref()?)?, parse(effective)?);
    (!all.is_empty() && all.without(&had).is_empty()).then(|| format!("0-{}", CPU_LIMIT - 1))
}
