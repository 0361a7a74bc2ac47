//! Placing of processes in the group with the isolated CPUs.

use host::settings::Kernel;
use model::isolation::{INNER_GROUP, PARTITION_RULE};
use model::plan::PlannedChange;
use model::setting::{Comparison, Key, Setting, TaskSetting};
use model::units::CpuSet;

/// Group of the isolated CPUs, as the kernel names a process's group.
pub fn inner_group() -> String {
    format!("/{INNER_GROUP}")
}

/// Moves a process with its threads into the group. Their masks are recorded with the move, because
/// the kernel changes them; so are the CPUs of the former group, because a mask with all of them
/// must get all of them again.
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

/// Sets the CPUs of a process in the group.
pub fn pin(tid: u32, start: u64, cpus: &CpuSet, now: &str) -> PlannedChange {
    let key = Key::Task { tid, start, what: TaskSetting::Affinity };
    let setting = Setting { readback: Comparison::List, ..Setting::new(key, cpus.to_string()) };
    PlannedChange { why: "it was requested".to_owned(), ..PlannedChange::new(setting, PARTITION_RULE, now) }
}

/// File with the CPUs of a group: its own, or that of the nearest ancestor with one.
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
