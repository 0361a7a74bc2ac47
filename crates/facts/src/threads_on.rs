//! Threads of a machine, or those that may run on some CPUs: of programs and of the kernel,
//! including its workers.
//!
//! Source: `/proc/PID/task/TID/{stat,status,cgroup}` in Documentation/filesystems/proc.rst. Every
//! thread of the machine is read, so nothing of it is recorded.

use super::tasks::{TaskStat, parse_allowed, parse_task_stat, task_number};
use super::whole;
use host::MachineFiles;
use model::fact::Fact;
use model::sort::CompactSort;
use model::units::CpuSet;

/// Limit of listed threads; further ones are counted.
const THREADS_LIMIT: usize = 100_000;

/// A thread that may run on the requested CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadOn {
    pub tid: u32,
    /// ID of its process.
    pub pid: u32,
    /// Scheduling parameters and accounting.
    pub stat: TaskStat,
    /// CPUs that it may run on.
    pub allowed: CpuSet,
    /// Control group of its process in version 2, from the root of the mount; `""` if not known.
    pub group: String,
}

/// Threads that may run on some CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadsOn {
    /// Threads by number.
    pub threads: Vec<ThreadOn>,
    /// Threads that could not be read, and those over the limit.
    pub missed: u64,
}

/// Looks for the threads that may run on any of these CPUs, or for all, without recording; threads
/// of this process are not listed.
pub fn read_threads_on(host: &MachineFiles, cpus: Option<&CpuSet>) -> Fact<ThreadsOn> {
    let host = &host.unrecorded();
    let own = host.link("/proc/self").known().and_then(|name| task_number(name));
    host.list("/proc").map(|names| {
        let mut found = ThreadsOn::default();
        for pid in names.iter().filter_map(|name| task_number(name)).filter(|&pid| Some(pid) != own) {
            let names = match host.list(&format!("/proc/{pid}/task")) {
                Fact::Known(names) => names,
                other => {
                    found.missed += u64::from(!has_ended(&other));
                    continue;
                }
            };
            for tid in names.iter().filter_map(|name| task_number(name)) {
                match thread(host, pid, tid) {
                    Fact::Known(thread) if cpus.is_some_and(|cpus| thread.allowed.and(cpus).is_empty()) => {}
                    Fact::Known(thread) if found.threads.len() < THREADS_LIMIT => found.threads.push(thread),
                    other => found.missed += u64::from(!has_ended(&other)),
                }
            }
        }
        found.threads.compact_sort_by_key(|thread| thread.tid);
        found
    })
}

fn thread(host: &MachineFiles, pid: u32, tid: u32) -> Fact<ThreadOn> {
    let dir = format!("/proc/{pid}/task/{tid}");
    let status = whole::bytes(host, &format!("{dir}/status"));
    let allowed = status.parse(|bytes| parse_allowed(&String::from_utf8_lossy(&bytes)));
    let stat = whole::bytes(host, &format!("{dir}/stat")).parse(|bytes| parse_task_stat(&bytes));
    allowed.then(|allowed| stat.map(|stat| ThreadOn { tid, pid, stat, allowed, group: group(host, &dir) }))
}

fn group(host: &MachineFiles, dir: &str) -> String {
    let text = host.read_text(&format!("{dir}/cgroup"));
    let line = text.known().and_then(|text| text.lines().find_map(|line| line.strip_prefix("0::")));
    line.unwrap_or_default().chars().filter(|c| !c.is_control()).take(4096).collect()
}

/// True for a thread that ended: a missing file, or ESRCH if the file was already open.
fn has_ended<T>(outcome: &Fact<T>) -> bool {
    matches!(outcome, Fact::Absent | Fact::Refused(libc::ESRCH))
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;

    const STAT: &str = "S 2 0 0 0 -1 FLAGS 0 0 0 0 0 0 0 0 20 0 1 0 345 0 0 18446744073709551615 0 0 0 \
        0 0 0 0 \
                        2147483647 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0";

    #[test]
    fn threads_that_may_run_there_are_listed_with_their_groups() {
        let stat = |tid: u32, comm: &str, flags: u32| {
            format!("{tid} ({comm}) {}", STAT.replace("FLAGS", &flags.to_string()))
        };
        let (host, _dir) = tree(&format!(
            "/proc/9/task/9/stat: {}
             /proc/9/task/9/status: Cpus_allowed_list:\t2
             /proc/9/task/9/cgroup: 0::/
             /proc/20/task/20/stat: {}
             /proc/20/task/20/status: Cpus_allowed_list:\t0-1
             /proc/20/task/21/stat: {}
             /proc/20/task/21/status: Cpus_allowed_list:\t3
             /proc/20/task/21/cgroup: 0::/onbeat/rt
             /proc/30/task/30/stat: nonsense
             /proc/30/task/30/status: Cpus_allowed_list:\t3",
            stat(9, "ksoftirqd/2", 0x0420_8040),
            stat(20, "main", 0),
            stat(21, "worker", 0),
        ));
        let found = read_threads_on(&host, Some(&CpuSet::parse("2-3").unwrap()));
        let found = found.known().unwrap();
        let of = |thread: &ThreadOn| {
            let stat = &thread.stat;
            (thread.tid, stat.kernel, stat.immovable, thread.group.clone())
        };
        let all: Vec<_> = found.threads.iter().map(of).collect();
        assert_eq!(all, [(9, true, true, "/".to_owned()), (21, false, false, "/onbeat/rt".to_owned())]);
        assert_eq!(found.missed, 1);
        let all = read_threads_on(&host, None).known().cloned().unwrap();
        assert_eq!(all.threads.iter().map(|thread| thread.pid).collect::<Vec<_>>(), [9, 20, 20]);
    }
}
