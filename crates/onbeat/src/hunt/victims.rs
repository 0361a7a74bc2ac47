//! Followed threads of other programs: one thread, those of a process, or all of a name.
//!
//! Source: `/proc/PID/task/TID/{comm,stat,status}` in Documentation/filesystems/proc.rst.

use std::cmp::Reverse;

use facts::tasks::{RtPolicy, has_ended, parse_allowed, parse_task_stat};
use host::MachineFiles;
use model::error::{Failure, Result};
use model::sort::CompactSort;
use model::text::quoted_value;
use model::units::CpuSet;
use trace::event::Task;

/// Maximum number of followed threads: their filters slow down every wake-up on the machine.
pub const MAX_VICTIMS: usize = 64;

/// Thread whose wake-ups are followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    pub thread: i32,
    pub comm: String,
    /// True if it has a real-time policy.
    pub real_time: bool,
    /// `deadline`, `fifo`, `rr` or `other`; `""` if it ended before it could be read.
    pub policy: &'static str,
    pub priority: u32,
    /// Start in ticks since boot, which distinguishes threads with a reused ID.
    start: u64,
}

impl Victim {
    /// A thread as seen in an event, which does not distinguish SCHED_FIFO and SCHED_RR.
    pub fn from_event(task: &Task) -> Victim {
        let real_time = task.real_time();
        Victim {
            thread: task.pid,
            comm: task.comm.text().into_owned(),
            real_time,
            policy: match task.prio {
                ..0 => "deadline",
                _ if real_time => "",
                _ => "other",
            },
            priority: if (0..99).contains(&task.prio) { (99 - task.prio) as u32 } else { 0 },
            start: 0,
        }
    }

    /// Order of urgency as in the kernel, most urgent first: deadline, real-time by priority,
    /// others.
    pub fn urgency(&self) -> (u8, Reverse<u32>) {
        let class = match self.policy {
            "deadline" => 0,
            _ if self.real_time => 1,
            _ => 2,
        };
        (class, Reverse(self.priority))
    }

    /// True if the thread still exists.
    pub fn is_alive(&self, host: &MachineFiles) -> bool {
        thread(host, self.thread).is_some_and(|now| now.start == self.start)
    }
}

/// Selection of the threads to follow, including those that join later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FollowedKind {
    /// One thread.
    Thread,
    /// Real-time threads of a process.
    Process(i32),
    /// All threads of a name, as cut by the kernel.
    Named(String),
    /// Real-time threads of all processes of a name, as cut by the kernel.
    NamedProcesses(String),
    /// Real-time threads of a process with a thread of that name, and later ones of the name, for
    /// example after a restart of the program.
    NamedThread(String),
    /// Real-time threads of a program started by the hunt, and of its children.
    Program,
}

/// Threads that `wanted` names: the ID of a thread or process, or a name of threads or processes.
///
/// Of a process, its real-time threads, or its first thread if it has none; a name that only one
/// thread has, without a real-time policy, stands for the thread's process. At most
/// [`MAX_VICTIMS`], the most urgent ones.
pub fn find(host: &MachineFiles, wanted: &str) -> Result<(FollowedKind, Vec<Victim>)> {
    let (kind, mut found) = match wanted.parse::<i32>() {
        Ok(id) => by_id(host, id),
        Err(_) => by_name(host, wanted),
    };
    if found.is_empty() {
        return Err(Failure::usage(format!(
            "invalid --victim {}: no such thread is running. Start it first (`ps -eLo tid,comm` lists \
             names), or let the hunt start it: onbeat hunt -- PROGRAM",
            quoted_value(wanted)
        )));
    }
    // The others are counted when they run.
    found.compact_sort_by_key(|victim| (victim.urgency(), victim.thread));
    found.truncate(MAX_VICTIMS);
    Ok((kind, found))
}

/// Process of a thread, if it exists.
pub fn process_of(host: &MachineFiles, tid: i32) -> Option<i32> {
    let status = host.read_text(&format!("/proc/{tid}/status"));
    let line = status.known()?.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// All threads of a process.
pub fn threads_of(host: &MachineFiles, process: i32) -> Vec<i32> {
    numbers(host, &format!("/proc/{process}/task"))
}

fn by_id(host: &MachineFiles, id: i32) -> (FollowedKind, Vec<Victim>) {
    if process_of(host, id) != Some(id) {
        return (FollowedKind::Thread, thread(host, id).into_iter().collect());
    }
    (FollowedKind::Process(id), of_process(host, id))
}

/// Real-time threads of a process, or its first thread if it has none.
fn of_process(host: &MachineFiles, process: i32) -> Vec<Victim> {
    let mut all: Vec<Victim> =
        threads_of(host, process).into_iter().filter_map(|tid| thread(host, tid)).collect();
    let has_any = all.iter().any(|victim| victim.real_time);
    all.retain(|victim| if has_any { victim.real_time } else { victim.thread == process });
    all
}

fn by_name(host: &MachineFiles, name: &str) -> (FollowedKind, Vec<Victim>) {
    // The kernel cuts names after 15 bytes; the given one may be longer.
    let wanted = name.as_bytes();
    let wanted = &wanted[..wanted.len().min(15)];
    let found = called(host, wanted);
    let name = String::from_utf8_lossy(wanted).into_owned();
    let processes: Vec<i32> =
        found.iter().filter(|(process, victim)| *process == victim.thread).map(|of| of.0).collect();
    if processes.is_empty() {
        if let [(process, Victim { real_time: false, .. })] = found[..] {
            return (FollowedKind::NamedThread(name), of_process(host, process));
        }
        return (FollowedKind::Named(name), found.into_iter().map(|(_, victim)| victim).collect());
    }
    let elsewhere =
        found.into_iter().filter(|(process, victim)| victim.real_time && !processes.contains(process));
    let mut all: Vec<Victim> = processes.iter().flat_map(|&process| of_process(host, process)).collect();
    all.extend(elsewhere.map(|(_, victim)| victim));
    (FollowedKind::NamedProcesses(name), all)
}

/// All threads of a name, each with its process.
fn called(host: &MachineFiles, wanted: &[u8]) -> Vec<(i32, Victim)> {
    let mut found = Vec::new();
    for process in numbers(host, "/proc") {
        let threads = threads_of(host, process).into_iter().filter_map(|tid| thread(host, tid));
        let called = threads.filter(|victim| victim.comm.as_bytes() == wanted);
        found.extend(called.map(|victim| (process, victim)));
    }
    found
}

/// Processes that have a thread of a name.
pub fn processes_with(host: &MachineFiles, name: &str) -> Vec<i32> {
    let name = &name.as_bytes()[..name.len().min(15)];
    let mut processes: Vec<i32> = called(host, name).into_iter().map(|(process, _)| process).collect();
    processes.dedup();
    processes
}

/// Processes of a name, as cut by the kernel.
pub fn processes_named(host: &MachineFiles, name: &str) -> Vec<i32> {
    let is_called = |pid: &i32| thread(host, *pid).is_some_and(|victim| victim.comm == name);
    numbers(host, "/proc").into_iter().filter(is_called).collect()
}

/// State of a thread; none if it has ended.
pub fn thread(host: &MachineFiles, tid: i32) -> Option<Victim> {
    let bytes = host.read(&format!("/proc/{tid}/stat"));
    let line = bytes.known().filter(|line| !has_ended(line))?;
    let stat = parse_task_stat(line).ok()?;
    let policy = match stat.policy {
        Some(RtPolicy::Deadline) => "deadline",
        Some(RtPolicy::Fifo) => "fifo",
        Some(RtPolicy::RoundRobin) => "rr",
        None => "other",
    };
    Some(Victim {
        thread: tid,
        policy,
        real_time: stat.policy.is_some(),
        priority: stat.priority,
        comm: stat.comm,
        start: stat.start_ticks,
    })
}

/// CPUs that a thread may run on now; none if it has ended.
pub fn allowed(host: &MachineFiles, tid: i32) -> Option<CpuSet> {
    parse_allowed(host.read_text(&format!("/proc/{tid}/status")).known()?).ok()
}

fn numbers(host: &MachineFiles, dir: &str) -> Vec<i32> {
    let names = host.list(dir);
    let mut found: Vec<i32> =
        names.known().into_iter().flatten().filter_map(|name| name.parse().ok()).collect();
    found.sort_unstable();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::access::Access;
    use model::error::Exit;

    fn stat(tid: i32, comm: &str, policy: u32, priority: u32) -> Access {
        // Fields 4 to 21, 22 the start, 23 to 39, 40 the priority, 41 the policy
        // (proc_pid_stat(5)).
        let (before, between) = (" 0".repeat(18), " 0".repeat(17));
        let text = format!("{tid} ({comm}) S{before} {}{between} {priority} {policy} 0 0\n", 1000 + tid);
        Access::File(text.into_bytes())
    }

    fn host() -> MachineFiles {
        let list = |names: &[&str]| Access::List(names.iter().map(|name| (*name).to_owned()).collect());
        let status = |tgid: i32| Access::File(format!("Name:\tx\nTgid:\t{tgid}\n").into_bytes());
        let mut answers = std::collections::BTreeMap::new();
        for (path, seen) in [
            ("/proc", list(&["10", "20", "30", "self"])),
            ("/proc/30/task", list(&["30", "31", "32"])),
            ("/proc/30/status", status(30)),
            ("/proc/30/stat", stat(30, "axis", 0, 0)),
            ("/proc/31/stat", stat(31, "servo", 1, 60)),
            ("/proc/32/stat", stat(32, "worker", 0, 0)),
            ("/proc/10/task", list(&["10", "11", "12"])),
            ("/proc/20/task", list(&["20"])),
            ("/proc/10/status", status(10)),
            ("/proc/11/status", status(10)),
            ("/proc/20/status", status(20)),
            ("/proc/10/stat", stat(10, "main", 0, 0)),
            ("/proc/11/stat", stat(11, "a b) control", 1, 80)),
            ("/proc/12/stat", stat(12, "log", 0, 0)),
            ("/proc/20/stat", stat(20, "log", 0, 0)),
        ] {
            answers.insert(path.to_owned(), seen);
        }
        MachineFiles::in_memory(answers)
    }

    #[test]
    fn of_too_many_threads_the_most_urgent_are_followed() {
        let tids = || 10..10 + 3 * MAX_VICTIMS as i32;
        let names = tids().map(|tid| tid.to_string()).collect();
        let mut answers = std::collections::BTreeMap::from([
            ("/proc/10/task".to_owned(), Access::List(names)),
            ("/proc/10/status".to_owned(), Access::File(b"Tgid:\t10\n".to_vec())),
        ]);
        // The last ones are the most urgent; the very last is under SCHED_DEADLINE.
        let last = tids().end - 1;
        for tid in tids() {
            let (policy, priority) = if tid == last { (6, 0) } else { (1, 1 + (tid - 10) as u32 / 2) };
            answers.insert(format!("/proc/{tid}/stat"), stat(tid, "many", policy, priority));
        }
        let found = find(&MachineFiles::in_memory(answers), "10").expect("found").1;
        assert_eq!((found.len(), found[0].thread), (MAX_VICTIMS, last));
        assert!(found.iter().all(|victim| victim.thread > last - MAX_VICTIMS as i32), "{found:?}");
    }

    fn threads(wanted: &str) -> Vec<i32> {
        find(&host(), wanted).expect("found").1.iter().map(|victim| victim.thread).collect()
    }

    #[test]
    fn a_process_is_its_real_time_threads_and_a_name_all_that_have_it() {
        assert_eq!(threads("10"), [11]);
        assert_eq!(threads("11"), [11]);
        assert_eq!(threads("20"), [20]);
        // Process 20 has the name; thread 12, which has it too, is not real-time.
        assert_eq!(threads("log"), [20]);
        // The name of a process or thread stands for its real-time threads.
        assert_eq!((threads("main"), threads("worker")), (vec![11], vec![31]));
        assert_eq!(threads("a b) control"), [11]);
        for absent in ["99", "nobody", "", "-1"] {
            assert_eq!(find(&host(), absent).expect_err("none").exit, Exit::Usage);
        }
        let (kind, found) = find(&host(), "11").expect("found");
        assert_eq!(kind, FollowedKind::Thread);
        assert_eq!(find(&host(), "10").expect("found").0, FollowedKind::Process(10));
        assert_eq!(find(&host(), "log").expect("found").0, FollowedKind::NamedProcesses("log".to_owned()));
        let kind = |wanted: &str| find(&host(), wanted).expect("found").0;
        assert_eq!(kind("worker"), FollowedKind::NamedThread("worker".to_owned()));
        assert_eq!(kind("a b) control"), FollowedKind::Named("a b) control".to_owned()));
        let victim = &found[0];
        assert!(victim.is_alive(&host()) && (victim.real_time, victim.priority) == (true, 80));
        assert!(!Victim { start: 5, ..victim.clone() }.is_alive(&host()));
    }
}
