//! Threads relevant to isolation and priorities: kernel threads, real-time threads, and programs
//! that change settings on their own.
//!
//! Source: `/proc/PID/{stat,status}` in Documentation/filesystems/proc.rst and proc_pid_stat(5).
//! Every process is read, but most must not be recorded: reading is unrecorded, and the record is
//! reduced to the lines and fields that are used here, of the listed threads.

use std::collections::{BTreeMap, BTreeSet};

use super::tasks::{RtPolicy, TaskStat, parse_allowed, parse_task_stat, reduced_stat, task_number};
use super::whole;
use host::MachineFiles;
use host::access::Access;
use model::fact::Fact;
use model::sort::CompactSort;
use model::units::{Cpu, CpuSet};

/// Limit of listed threads; 8192 CPUs have some ten kernel threads each.
const THREADS_LIMIT: usize = 100_000;

/// Limit of CPUs in all sets together, beyond which threads are not listed: it bounds memory.
const CPUS_LIMIT: usize = 4 << 20;

/// Threads of a machine that settings concern, without onbeat's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Kernel threads by name, without the workers of workqueues (`kworker/`): their names change
    /// every second, and their CPUs follow from the masks of the workqueues. Empty only if
    /// processes are hidden: in a container, or by `hidepid=` of proc(5).
    pub kernel: Vec<Thread>,
    /// Threads of programs with a real-time policy, by name.
    pub realtime: Vec<Thread>,
    /// Running virtual machines, by the names of their threads.
    pub guests: Vec<GuestThreads>,
    /// Requested programs that are running.
    pub programs: BTreeSet<String>,
    /// Requested programs that the capture did not look for: whether they run is not known.
    pub unasked: BTreeSet<String>,
    /// True if every visible process could be read, and none was over the limit; threads that ended
    /// during the reading do not count.
    pub complete: bool,
}

/// A program that runs a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestThreads {
    /// Its first thread, by which its threads other than vCPUs are placed.
    pub emulator: Thread,
    /// Threads that are vCPUs of the guest, whatever their policy.
    pub vcpus: Vec<Thread>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Thread ID.
    pub tid: u32,
    /// Start of a kernel thread in ticks since boot, which distinguishes it from a later one with
    /// the same ID; 0 for a program's thread, whose start no capture reveals.
    pub start: u64,
    pub comm: String,
    /// Real-time policy, if it has one.
    pub policy: Option<RtPolicy>,
    /// 1 to 99; 0 without a real-time policy and for deadline threads.
    pub priority: u32,
    /// CPUs that it may run on; absent for an immovable thread without a real-time policy.
    pub allowed: Fact<CpuSet>,
    /// True if the kernel refuses any other affinity.
    pub immovable: bool,
}

impl Thread {
    /// CPUs that it may run on; none if not known. A per-CPU thread names its CPU, as in `cpuhp/3`.
    pub fn cpus(&self) -> Option<CpuSet> {
        match &self.allowed {
            Fact::Absent => {
                let number = self.comm.rsplit_once('/').and_then(|(_, number)| number.parse::<u32>().ok());
                Some(number.and_then(|number| Cpu::try_from(number).ok()).into_iter().collect())
            }
            allowed => allowed.known().cloned(),
        }
    }
}

/// Entry of a capture that holds the names of the programs that were looked for, in the form of a
/// directory.
const ASKED: &str = "/proc/*/comm";

/// Reads all threads: one short file each, and one more for those that are listed.
///
/// `programs` are the names to look for, at most 15 bytes long, as the kernel truncates them.
pub fn read_threads(host: &MachineFiles, programs: &[&str]) -> Fact<Threads> {
    read_at_most(host, programs, THREADS_LIMIT)
}

fn read_at_most(host: &MachineFiles, programs: &[&str], room: usize) -> Fact<Threads> {
    let quiet = host.unrecorded();
    let mut look = Look {
        host: &quiet,
        programs,
        found: Threads::default(),
        vcpus: Vec::new(),
        recording: BTreeMap::new(),
        room,
        cpus: 0,
    };
    look.found.complete = true;
    let names: BTreeSet<String> = programs.iter().map(|&name| name.to_owned()).collect();
    let asked = match quiet.list(ASKED) {
        Fact::Known(asked) => asked.into_iter().collect(),
        // A running machine can be asked for any program.
        Fact::Absent => names.clone(),
        _ => BTreeSet::new(),
    };
    look.found.unasked = names.difference(&asked).cloned().collect();
    host.record_as(ASKED, Access::List(asked.into_iter().collect()));
    let listed = quiet.list("/proc").map(|names| {
        let own = quiet.link("/proc/self").known().and_then(|name| task_number(name));
        let pids: Vec<u32> = numbers(&names).into_iter().filter(|&pid| Some(pid) != own).collect();
        pids.into_iter().filter(|&pid| look.process(pid)).map(|pid| pid.to_string()).collect::<Vec<_>>()
    });
    host.record_as("/proc", Access::of(&listed, |pids| Access::List(pids.clone())));
    look.recording.into_iter().for_each(|(path, seen)| host.record_as(&path, seen));
    let mut found = look.found;
    found.kernel.compact_sort_by(|a, b| (&a.comm, a.priority).cmp(&(&b.comm, b.priority)));
    found.realtime.compact_sort_by(|a, b| (&a.comm, a.priority).cmp(&(&b.comm, b.priority)));
    listed.map(|_| found)
}

fn numbers(names: &[String]) -> Vec<u32> {
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| task_number(name)).collect();
    numbers.sort_unstable();
    numbers
}

/// Threads found so far, and the part of them that is recorded: enough to find the same again.
struct Look<'a> {
    host: &'a MachineFiles,
    programs: &'a [&'a str],
    found: Threads,
    /// Threads of the current program that are vCPUs.
    vcpus: Vec<Thread>,
    recording: BTreeMap<String, Access>,
    room: usize,
    cpus: usize,
}

impl Look<'_> {
    /// Reads a process; true if a record needs it.
    fn process(&mut self, pid: u32) -> bool {
        let dir = format!("/proc/{pid}");
        let stat = match self.stat(&dir) {
            Ok(stat) => stat,
            Err(needed) => return needed,
        };
        if !stat.kernel {
            return self.program(pid, &dir, stat);
        }
        // Threads of the kernel are processes of one thread each.
        let needed = !stat.comm.starts_with("kworker/") && self.thread(&dir, pid, &stat);
        if needed {
            self.keep_stat(&dir, pid, &stat, 1);
        }
        needed
    }

    fn program(&mut self, pid: u32, dir: &str, mut stat: TaskStat) -> bool {
        let asked =
            self.programs.contains(&stat.comm.as_str()) && self.found.programs.insert(stat.comm.clone());
        let is_added = stat.policy.is_some() && self.thread(dir, pid, &stat);
        let others = if stat.threads > 1 { self.others(pid, dir) } else { None };
        let vcpus = std::mem::take(&mut self.vcpus);
        let emulator = if vcpus.is_empty() { None } else { self.seen(dir, pid, &stat) };
        let emulates = emulator.is_some();
        self.found.guests.extend(emulator.map(|emulator| GuestThreads { emulator, vcpus }));
        if !asked && !is_added && !emulates {
            // Only its threads matter: its name is not needed.
            stat = TaskStat { comm: String::new(), policy: None, priority: 0, immovable: false, ..stat };
        }
        if asked || is_added || emulates || others.is_some() {
            self.keep_stat(dir, pid, &stat, 1 + u64::from(others.is_some()));
        }
        if let Some(seen) = others {
            self.recording.insert(format!("{dir}/task"), seen);
            return true;
        }
        asked || is_added || emulates
    }

    /// Reads the threads of a process except its first; returns the listing of their directory if a
    /// record needs it.
    fn others(&mut self, pid: u32, dir: &str) -> Option<Access> {
        let listed = self.host.list(&format!("{dir}/task"));
        let Fact::Known(names) = &listed else {
            return self.missed(&listed).then(|| Access::of(&listed, |_| Access::Absent));
        };
        let mut needed = Vec::new();
        for tid in numbers(names).into_iter().filter(|&tid| tid != pid) {
            let dir = format!("{dir}/task/{tid}");
            match self.stat(&dir) {
                Ok(stat) if is_vcpu(&stat.comm) && self.vcpu(&dir, tid, &stat) => {
                    self.keep_stat(&dir, tid, &stat, 1);
                    needed.push(tid.to_string());
                }
                Ok(stat)
                    if stat.policy.is_some() && !is_vcpu(&stat.comm) && self.thread(&dir, tid, &stat) =>
                {
                    self.keep_stat(&dir, tid, &stat, 1);
                    needed.push(tid.to_string());
                }
                Err(true) => needed.push(tid.to_string()),
                _ => {}
            }
        }
        (!needed.is_empty()).then_some(Access::List(needed))
    }

    /// Scheduling parameters of a thread; else true if the capture must contain the failure to read
    /// it.
    fn stat(&mut self, dir: &str) -> Result<TaskStat, bool> {
        let path = format!("{dir}/stat");
        let stat = whole::bytes(self.host, &path).parse(|bytes| parse_task_stat(&bytes));
        match stat {
            Fact::Known(stat) => Ok(TaskStat { comm: without_address(&stat.comm), ..stat }),
            outcome => {
                let needed = self.missed(&outcome);
                if needed {
                    self.recording.insert(path, Access::of(&outcome, |_| Access::Absent));
                }
                Err(needed)
            }
        }
    }

    /// Notes a failure to read; true if it is the first, which a record has to repeat.
    fn missed<T>(&mut self, outcome: &Fact<T>) -> bool {
        // A thread that ended shows as a missing file, or as ESRCH where the file was already open.
        !ended(outcome) && std::mem::replace(&mut self.found.complete, false)
    }

    /// Adds a thread to the result; true if a record needs it.
    fn thread(&mut self, dir: &str, tid: u32, stat: &TaskStat) -> bool {
        let complete = self.found.complete;
        let Some(thread) = self.seen(dir, tid, stat) else {
            // The first thread over the limit is recorded as well.
            return complete && !self.found.complete;
        };
        let list = if stat.kernel { &mut self.found.kernel } else { &mut self.found.realtime };
        list.push(thread);
        true
    }

    /// Adds a vCPU of a guest to the result; true if a record needs it.
    fn vcpu(&mut self, dir: &str, tid: u32, stat: &TaskStat) -> bool {
        let complete = self.found.complete;
        let Some(thread) = self.seen(dir, tid, stat) else { return complete && !self.found.complete };
        if stat.policy.is_some() {
            self.found.realtime.push(thread.clone());
        }
        self.vcpus.push(thread);
        true
    }

    /// A thread with its CPUs; none if it has ended or is over the limit.
    fn seen(&mut self, dir: &str, tid: u32, stat: &TaskStat) -> Option<Thread> {
        if self.room == 0 || self.cpus > CPUS_LIMIT {
            self.found.complete = false;
            return None;
        }
        let allowed = if stat.immovable && stat.policy.is_none() { Fact::Absent } else { self.allowed(dir)? };
        self.room -= 1;
        self.cpus += allowed.known().map_or(0, CpuSet::len);
        Some(Thread {
            tid,
            start: if stat.kernel { stat.start_ticks } else { 0 },
            comm: stat.comm.clone(),
            policy: stat.policy,
            priority: stat.priority,
            allowed,
            immovable: stat.immovable,
        })
    }

    /// CPUs that a thread may run on; none if it has ended.
    fn allowed(&mut self, dir: &str) -> Option<Fact<CpuSet>> {
        let path = format!("{dir}/status");
        let status = whole::bytes(self.host, &path);
        if ended(&status) && ended(&whole::bytes(self.host, &format!("{dir}/stat"))) {
            return None;
        }
        let line = status.map(|bytes| {
            let text = String::from_utf8_lossy(&bytes);
            let line = text.lines().find(|line| line.starts_with("Cpus_allowed_list:"));
            format!("{}\n", line.unwrap_or_default())
        });
        self.recording.insert(path, Access::of(&line, |line| Access::File(line.clone().into_bytes())));
        Some(line.parse(|line| parse_allowed(&line)))
    }

    fn keep_stat(&mut self, dir: &str, number: u32, stat: &TaskStat, threads: u64) {
        self.recording
            .insert(format!("{dir}/stat"), Access::File(reduced_stat(number, stat, threads).into_bytes()));
    }
}

/// True for a vCPU of a guest, by the thread names of QEMU (with debug-threads=on, as libvirt sets
/// it), cloud-hypervisor, Firecracker and crosvm.
fn is_vcpu(comm: &str) -> bool {
    let qemu = comm.strip_prefix("CPU ").and_then(|rest| rest.strip_suffix("/KVM"));
    let others = ["vcpu", "fc_vcpu ", "crosvm_vcpu"];
    let number = qemu.or_else(|| others.iter().find_map(|prefix| comm.strip_prefix(prefix)));
    number.is_some_and(|number| task_number(number).is_some())
}

fn ended<T>(outcome: &Fact<T>) -> bool {
    matches!(outcome, Fact::Absent | Fact::Refused(libc::ESRCH))
}

/// Before 5.17 a kernel thread's name is cut at 15 characters, and with it the MAC address of the
/// interface that it is called after: too short to distinguish it from a word.
fn without_address(comm: &str) -> String {
    for prefix in ["enx", "wlx", "wwx", "usx"] {
        let Some((before, rest)) = comm.split_once(prefix) else { continue };
        if rest.len() >= 4 && rest.bytes().all(|b| b.is_ascii_hexdigit()) {
            return format!("{before}{prefix}-address");
        }
    }
    comm.to_owned()
}

#[cfg(test)]
mod tests;
