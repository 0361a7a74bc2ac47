//! Real-time tasks of the machine: those that can delay a measuring thread.
//!
//! Source: `/proc/PID/task/TID/{stat,status}` in Documentation/filesystems/proc.rst and
//! proc_pid_stat(5). Reading every task is costly and reveals other users' programs, so this is not
//! part of the facts: nothing of it is recorded, and command lines are not read.

use super::whole;
use host::MachineFiles;
use model::fact::Fact;
use model::sort::CompactSort;
use model::units::{Cpu, CpuSet};

/// Limit of listed real-time tasks; 8192 CPUs have some ten kernel threads each.
const TASKS_LIMIT: usize = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtPolicy {
    Fifo,
    RoundRobin,
    /// SCHED_DEADLINE: preempts any priority.
    Deadline,
}

/// Scheduling parameters and accounting of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskStat {
    /// Name, at most 15 bytes.
    pub comm: String,
    /// Real-time policy, if it has one.
    pub policy: Option<RtPolicy>,
    /// 1 to 99; 0 for a deadline task.
    pub priority: u32,
    /// Time on a CPU in ticks of 10 ms (USER_HZ).
    pub cpu_ticks: u64,
    /// Start in ticks since boot: distinguishes a task from a later one with the same ID.
    pub start_ticks: u64,
    /// CPU that it ran on last.
    pub last_cpu: Cpu,
    /// True for a kernel thread.
    pub kernel: bool,
    /// True if its CPU affinity cannot be changed (a per-CPU kernel thread).
    pub immovable: bool,
    /// Threads of its process, itself included.
    pub threads: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RtTask {
    pub pid: u32,
    pub tid: u32,
    pub policy: RtPolicy,
    /// Scheduling parameters and accounting.
    pub stat: TaskStat,
    /// CPUs that it may run on; none if they could not be read.
    pub allowed: Option<CpuSet>,
}

/// Outcome of the search for real-time tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtTasks {
    /// Tasks by process and thread ID.
    pub tasks: Vec<RtTask>,
    /// Tasks that ended during the reading.
    pub vanished: u64,
    /// Tasks that could not be read, and real-time tasks over the limit.
    pub missed: u64,
}

/// Looks for real-time tasks, without recording what it reads.
pub fn rt_tasks(host: &MachineFiles) -> Fact<RtTasks> {
    let host = &host.unrecorded();
    host.list("/proc").map(|names| {
        let mut found = RtTasks::default();
        for pid in names.iter().filter_map(|name| task_number(name)) {
            match host.list(&format!("/proc/{pid}/task")) {
                Fact::Known(names) => {
                    let mut tids: Vec<u32> = names.iter().filter_map(|name| task_number(name)).collect();
                    tids.sort_unstable();
                    tids.iter().for_each(|&tid| look_at(host, pid, tid, &mut found));
                }
                outcome => count(&outcome, &mut found),
            }
        }
        found.tasks.compact_sort_by_key(|task| (task.pid, task.tid));
        found
    })
}

fn look_at(host: &MachineFiles, pid: u32, tid: u32, found: &mut RtTasks) {
    let dir = format!("/proc/{pid}/task/{tid}");
    let stat = match whole::bytes(host, &format!("{dir}/stat")).parse(|bytes| parse_task_stat(&bytes)) {
        Fact::Known(stat) => stat,
        outcome => return count(&outcome, found),
    };
    let Some(policy) = stat.policy else { return };
    if found.tasks.len() >= TASKS_LIMIT {
        found.missed += 1;
        return;
    }
    let status = whole::bytes(host, &format!("{dir}/status"))
        .parse(|bytes| parse_allowed(&String::from_utf8_lossy(&bytes)));
    found.tasks.push(RtTask { pid, tid, policy, stat, allowed: status.known().cloned() });
}

/// Counts a failed reading: a task that ended shows as a missing file, or as ESRCH if it was open.
fn count<T>(outcome: &Fact<T>, found: &mut RtTasks) {
    match outcome {
        Fact::Absent | Fact::Refused(libc::ESRCH) => found.vanished += 1,
        _ => found.missed += 1,
    }
}

pub(super) fn task_number(name: &str) -> Option<u32> {
    super::topology::numbered(name, "")
}

/// Flag of a kernel thread, in field 9.
pub(super) const PF_KTHREAD: u64 = 0x0020_0000;

/// Flag of a thread whose affinity user space may not change.
pub(super) const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// True if a line of `/proc/PID/stat` belongs to a task that has ended and only waits to be reaped;
/// false for a malformed line.
pub fn has_ended(stat: &[u8]) -> bool {
    let after = stat.iter().rposition(|&byte| byte == b')').map_or(&[][..], |end| &stat[end + 1..]);
    after.iter().find(|byte| **byte != b' ').is_some_and(|state| b"ZXx".contains(state))
}

/// Parses `/proc/PID/task/TID/stat`.
///
/// The name is in parentheses and may itself contain blanks, parentheses and bytes that are not
/// UTF-8, so the last closing bracket ends it.
pub fn parse_task_stat(bytes: &[u8]) -> Result<TaskStat, String> {
    let expected = || "expected TID (NAME) STATE and 50 numbers".to_owned();
    let open = bytes.iter().position(|&b| b == b'(').ok_or_else(expected)?;
    let close = bytes.iter().rposition(|&b| b == b')').filter(|&close| close > open).ok_or_else(expected)?;
    let comm: String = String::from_utf8_lossy(&bytes[open + 1..close]).chars().take(64).collect();
    let rest = String::from_utf8_lossy(&bytes[close + 1..]);
    // Field 3 of the manual page is the first after the name.
    let fields: Vec<&str> = rest.split_whitespace().take(48).collect();
    let field =
        |number: usize| fields.get(number - 3).and_then(|word| word.parse::<u64>().ok()).ok_or_else(expected);
    let flags = field(9)?;
    let policy = match field(41)? {
        1 => Some(RtPolicy::Fifo),
        2 => Some(RtPolicy::RoundRobin),
        6 => Some(RtPolicy::Deadline),
        _ => None,
    };
    Ok(TaskStat {
        comm: comm.chars().map(|c| if c.is_control() { '?' } else { c }).collect(),
        policy,
        priority: u32::try_from(field(40)?).map_err(|_| expected())?,
        cpu_ticks: field(14)?.saturating_add(field(15)?),
        start_ticks: field(22)?,
        last_cpu: Cpu(u32::try_from(field(39)?).map_err(|_| expected())?),
        kernel: flags & PF_KTHREAD != 0,
        immovable: flags & PF_NO_SETAFFINITY != 0,
        threads: field(20)?,
    })
}

/// A line as of `/proc/PID/stat` with the name, the flags that are parsed above, the priority, the
/// policy and, for a kernel thread, its start; all else is 0. This is what a capture may reveal of
/// a thread.
pub(super) fn reduced_stat(number: u32, stat: &TaskStat, threads: u64) -> String {
    let flag = |set: bool, bit: u64| if set { bit } else { 0 };
    let flags = flag(stat.kernel, PF_KTHREAD) | flag(stat.immovable, PF_NO_SETAFFINITY);
    let policy = match stat.policy {
        None => 0,
        Some(RtPolicy::Fifo) => 1,
        Some(RtPolicy::RoundRobin) => 2,
        Some(RtPolicy::Deadline) => 6,
    };
    // Fields 4 to 8, 10 to 19, 23 to 39, 42 to 52.
    let [before, times, memory, after] = [5, 10, 17, 11].map(|count| " 0".repeat(count));
    let (comm, priority) = (&stat.comm, stat.priority);
    let start = if stat.kernel { stat.start_ticks } else { 0 };
    format!(
        "{number} ({comm}) S{before} {flags}{times} {threads} 0 {start}{memory} {priority} {policy}{after}\n"
    )
}

/// Parses the allowed CPUs from `/proc/PID/task/TID/status`.
pub fn parse_allowed(text: &str) -> Result<CpuSet, String> {
    let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    CpuSet::parse(list.ok_or("expected a line 'Cpus_allowed_list:'")?)
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;
    use proptest::prelude::*;

    /// A stat line with the fields that count: 9 flags, 14 utime, 15 stime, 20 threads, 22 start,
    /// 39 CPU, 40 priority, 41 policy.
    fn stat(comm: &str, flags: u32, policy: u32, priority: u32) -> String {
        format!(
            "7 ({comm}) S 1 1 1 0 -1 {flags} 0 0 0 0 30 12 0 0 -51 0 1 0 555 0 0 18446744073709551615 \
             0 0 0 0 0 0 0 0 0 0 0 0 17 3 {priority} {policy} 0 0 0 0 0 0 0 0 0 0 0"
        )
    }

    #[test]
    fn names_with_brackets_and_blanks() {
        let task = parse_task_stat(stat("a) R 1 (b", 0x0020_8040, 1, 50).as_bytes()).unwrap();
        assert_eq!(task.comm, "a) R 1 (b");
        assert_eq!((task.policy, task.priority, task.kernel), (Some(RtPolicy::Fifo), 50, true));
        assert_eq!((task.cpu_ticks, task.start_ticks, task.last_cpu), (42, 555, Cpu(3)));
        assert_eq!((task.threads, task.immovable), (1, false));
        assert!(parse_task_stat(stat("cpuhp/0", 0x0420_8040, 0, 0).as_bytes()).unwrap().immovable);
        assert_eq!(parse_task_stat(stat("x", 0, 0, 0).as_bytes()).unwrap().policy, None);
        assert_eq!(parse_task_stat(stat("x", 0, 6, 0).as_bytes()).unwrap().policy, Some(RtPolicy::Deadline));
        for bad in ["", "1 (x", ") (", "1 (x) S 1 2 3"] {
            assert!(parse_task_stat(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_waits_to_be_reaped_has_ended() {
        assert!(has_ended(b"7 (a) b) Z 1") && has_ended(b"7 (x) X 1"));
        assert!(!has_ended(b"7 (Z) S 1") && !has_ended(b"7 (Z") && !has_ended(b""));
    }

    #[test]
    fn real_time_tasks_are_found_and_the_vanished_counted() {
        let text = format!(
            "/proc/7/task/7/stat: {}\n/proc/7/task/7/status:\n| Name: x\n| Cpus_allowed_list:\t2-3\n\
             /proc/7/task/8/stat: {}\n/proc/9/stat: gone\n/proc/10/task/10/stat: broken\n/proc/stat: cpu\n",
            stat("irq/9-acpi", 0x0020_0000, 1, 50),
            stat("bash", 0, 0, 0),
        );
        let (host, _dir) = tree(&text);
        let host = host.recording();
        let found = rt_tasks(&host);
        let found = found.known().unwrap();
        assert_eq!((found.tasks.len(), found.vanished, found.missed), (1, 1, 1));
        assert_eq!((found.tasks[0].pid, found.tasks[0].tid), (7, 7));
        assert_eq!(found.tasks[0].allowed.as_ref().map(CpuSet::to_string), Some("2-3".into()));
        assert!(host.recorded().is_some_and(|recorder| recorder.accesses().is_empty()));
    }

    #[test]
    fn a_reduced_line_keeps_what_a_capture_may_reveal() {
        let whole = parse_task_stat(stat("a) R (b", 0x0420_8040, 2, 50).as_bytes()).unwrap();
        let reduced = |stat| parse_task_stat(reduced_stat(7, stat, 1).as_bytes()).unwrap();
        let expected = TaskStat { cpu_ticks: 0, last_cpu: Cpu(0), ..whole.clone() };
        assert_eq!(reduced(&whole), expected);
        assert_eq!(expected.start_ticks, 555);
        // The start time of a program is private.
        let program = TaskStat { kernel: false, ..whole.clone() };
        assert_eq!(reduced(&program), TaskStat { kernel: false, start_ticks: 0, ..expected });
        assert_eq!(
            reduced_stat(7, &whole, 1).split_whitespace().count(),
            stat("a) R (b", 1, 1, 1).split_whitespace().count()
        );
    }

    proptest! {
        #[test]
        fn parsers_are_total(text in "[0-9]{0,3} ?\\(?\\PC{0,8}\\)?( [0-9-]{0,22}){0,50}", bytes: Vec<u8>) {
            let _ = (parse_task_stat(text.as_bytes()), parse_task_stat(&bytes));
            let _ = parse_allowed(&format!("Cpus_allowed_list:{text}"));
        }
    }
}
