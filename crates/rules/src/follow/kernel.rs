//! Threads, control groups and settings of a synthetic machine, with the reactions of its kernel.

use super::fixture::{matching, text, write};
use crate::fixture::Machine;
use crate::words::cpu_mask;
use facts::line::{parse_cpus, parse_mask};
use facts::texts::matched;
use model::setting::{Comparison, Key, Setting, TaskSetting};
use model::units::{Cpu, CpuSet};

/// Makes a setting; true if it was in effect already, an error if it is not in effect now.
pub fn set(machine: &mut Machine, setting: &Setting) -> Result<bool, String> {
    let before = read(machine, &setting.key).ok_or_else(|| format!("{} is not there", setting.key))?;
    if setting.is_met_by(&before) {
        return Ok(true);
    }
    match &setting.key {
        Key::Task { tid, start, what } => set_task(machine, *tid, *start, *what, &setting.wanted)?,
        key => write(machine, &key.path(), &setting.wanted)?,
    }
    let after = read(machine, &setting.key).unwrap_or_default();
    if setting.readback == Comparison::Unread || setting.is_met_by(&after) {
        Ok(false)
    } else {
        Err(format!("{} is {after:?} after {:?} was written", setting.key, setting.wanted))
    }
}

/// Value that a kernel shows for a key; none if there is no such file.
fn read(machine: &Machine, key: &Key) -> Option<String> {
    let Key::Task { tid, what, .. } = key else {
        let path = key.path();
        return text(machine, &path).or_else(|| switched(machine, &path));
    };
    match what {
        TaskSetting::Affinity => {
            let status = text(machine, &format!("/proc/{tid}/status"))?;
            let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            Some(list.trim().to_owned())
        }
        TaskSetting::Policy => {
            let (_, fields) = stat(machine, *tid)?;
            Some(match fields[POLICY].as_str() {
                "1" => format!("fifo {}", fields[PRIORITY]),
                "2" => format!("rr {}", fields[PRIORITY]),
                _ => "other 0".to_owned(),
            })
        }
        TaskSetting::Group => None,
    }
}

/// On (1) or off (0) for a CPU of a machine whose switches were not captured.
fn switched(machine: &Machine, path: &str) -> Option<String> {
    let [cpu] = matched("/sys/devices/system/cpu/cpu#/online", path)?.try_into().ok()?;
    let cpu = Cpu(cpu.parse().ok()?);
    let of = |list: &str| text(machine, &format!("/sys/devices/system/cpu/{list}"));
    let known = |list: &str| parse_cpus(&of(list)?).ok().map(|cpus| cpus.contains(cpu));
    known("present")?.then(|| u8::from(known("online") == Some(true)).to_string())
}

/// Fields 22, 40 and 41 of a thread's `stat`, counted from its third.
const START: usize = 19;
const PRIORITY: usize = 37;
const POLICY: usize = 38;

/// Fields of a thread's `stat` up to its name, and after it.
fn stat(machine: &Machine, tid: u32) -> Option<(String, Vec<String>)> {
    let line = text(machine, &format!("/proc/{tid}/stat"))?;
    let (name, fields) = line.rsplit_once(") ")?;
    Some((format!("{name})"), fields.split_whitespace().map(str::to_owned).collect()))
}

fn set_task(
    machine: &mut Machine,
    tid: u32,
    start: u64,
    what: TaskSetting,
    wanted: &str,
) -> Result<(), String> {
    let (name, mut fields) = stat(machine, tid).ok_or_else(|| format!("there is no thread {tid}"))?;
    if fields[START] != start.to_string() {
        return Err(format!("thread {tid} is another one"));
    }
    match what {
        TaskSetting::Affinity => allow(machine, tid, wanted),
        TaskSetting::Policy => {
            let (policy, priority) = wanted.split_once(' ').ok_or("a policy without its priority")?;
            let number = ["other", "fifo", "rr"].iter().position(|known| *known == policy);
            fields[POLICY] = number.ok_or_else(|| format!("no policy {policy}"))?.to_string();
            fields[PRIORITY] = priority.to_owned();
            machine.edit(&format!("/proc/{tid}/stat: {name} {}", fields.join(" ")));
        }
        TaskSetting::Group => return Err("no thread is moved to a group".to_owned()),
    }
    Ok(())
}

fn allow(machine: &mut Machine, tid: u32, cpus: &str) {
    machine.edit(&format!("/proc/{tid}/status:\n| Cpus_allowed_list: {cpus}"));
}

/// Creates an isolated partition, with the reactions of a 6.12 kernel: other groups, kernel threads
/// and unbound work leave its CPUs.
pub fn partition(machine: &mut Machine, root: &str, cpus: &CpuSet) {
    let without = |list: &str| parse_cpus(list).map(|list| list.without(cpus)).unwrap_or_default();
    for path in matching(machine, |path| {
        path.starts_with(&format!("{root}/")) && path.ends_with("/cpuset.cpus.effective")
    }) {
        let left = without(&text(machine, &path).unwrap_or_default());
        if !left.is_empty() {
            machine.edit(&format!("{path}: {left}"));
        }
    }
    let there = text(machine, &format!("{root}/cpuset.cpus.isolated")).unwrap_or_default();
    let isolated = parse_cpus(&there).unwrap_or_default().or(cpus);
    machine.edit(&format!(
        "{root}/cpuset.cpus.isolated: {isolated}
         {root}/onbeat/cpuset.cpus:
         {root}/onbeat/cpuset.cpus.effective: {cpus}
         {root}/onbeat/cpuset.cpus.partition: member
         {root}/onbeat/rt/cpuset.cpus:
         {root}/onbeat/rt/cpuset.cpus.effective: {cpus}
         {root}/onbeat/rt/cpuset.cpus.partition: isolated"
    ));
    for path in matching(machine, |path| path.starts_with("/proc/") && path.ends_with("/stat")) {
        let Some(tid) = path.split('/').nth(2).and_then(|tid| tid.parse().ok()) else { continue };
        let movable = stat(machine, tid).and_then(|(_, fields)| fields[6].parse::<u64>().ok());
        let movable = movable.is_some_and(|flags| flags & 0x0020_0000 != 0 && flags & 0x0400_0000 == 0);
        let allowed = read(machine, &Key::Task { tid, start: 0, what: TaskSetting::Affinity });
        let left = allowed.map(|list| without(&list)).unwrap_or_default();
        if movable && !left.is_empty() {
            allow(machine, tid, &left.to_string());
        }
    }
    let mask = "/sys/devices/virtual/workqueue/cpumask";
    if let Some(Ok(unbound)) = text(machine, mask).map(|mask| parse_mask(&mask)) {
        let left = unbound.without(cpus);
        if !left.is_empty() {
            machine.edit(&format!("{mask}: {}", cpu_mask(&left)));
        }
    }
}
