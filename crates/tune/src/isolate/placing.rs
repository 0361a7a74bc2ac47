//! Placing a process in the group that has the isolated CPUs.

use host::settings::Kernel;
use model::isolation::{INNER_GROUP, PARTITION_RULE};
use model::plan::PlannedChange;
use model::setting::{Comparison, Key, Setting, TaskSetting};
use model::units::CpuSet;

/// The group of the isolated CPUs, as the kernel names a process's group.
pub fn inner_group() -> String {
    format!("/{INNER_GROUP}")
}

/// Moving a process with its threads into the group. Their masks are noted with the move, because
/// the kernel changes them; and with them the CPUs of the group that it leaves, because a mask that
/// had them all is to have them all again.
pub fn place(kernel: &dyn Kernel, pid: u32, start: u64, threads: &[(u32, u64)]) -> PlannedChange {
    let key = Key::Task { tid: pid, start, what: TaskSetting::Group };
    let from = kernel.read(&key).known().cloned().unwrap_or_default();
    let masks = threads.iter().map(|&(tid, start)| Key::Task { tid, start, what: TaskSetting::Affinity });
    let setting = Setting {
        partners: std::iter::once(effective_file(kernel, &from)).chain(masks).collect(),
        ..Setting::new(key, inner_group())
    };
    PlannedChange {
        why: "it is placed on the isolated CPUs".to_owned(),
        ..PlannedChange::new(setting, PARTITION_RULE, &from)
    }
}

/// The CPUs of a process that is in the group.
pub fn pin(tid: u32, start: u64, cpus: &CpuSet, now: &str) -> PlannedChange {
    let key = Key::Task { tid, start, what: TaskSetting::Affinity };
    let setting = Setting { readback: Comparison::List, ..Setting::new(key, cpus.to_string()) };
    PlannedChange { why: "it was asked for".to_owned(), ..PlannedChange::new(setting, PARTITION_RULE, now) }
}

/// The file with the CPUs of a group: its own, or that of the nearest above it that has one.
fn effective_file(kernel: &dyn Kernel, group: &str) -> Key {
    let mut path = group.trim_matches('/');
    while !path.is_empty() {
        let key = Key::GroupFile(format!("{path}/cpuset.cpus.effective"));
        if kernel.read(&key).known().is_some() {
            return key;
        }
        path = path.rsplit_once('/').map_or("", |(above, _)| above);
    }
    Key::GroupFile("cpuset.cpus.effective".to_owned())
}
