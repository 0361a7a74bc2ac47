//! The threads relevant to isolation and priorities: kernel threads, those of real-time policy, and
//! programs that change settings by themselves.
//!
//! Source: `/proc/PID/{stat,status}` in Documentation/filesystems/proc.rst and proc_pid_stat(5).
//! Every process is looked at, and of most nothing may be recorded: all of it is read unrecorded,
//! and what goes into a record is cut down to the lines and fields that are used here, of the
//! listed threads.

use std::collections::{BTreeMap, BTreeSet};

use super::tasks::{RtPolicy, TaskStat, parse_allowed, parse_task_stat, reduced_stat, task_number};
use super::whole;
use host::MachineFiles;
use host::access::Access;
use model::fact::Fact;
use model::units::CpuSet;

/// Threads beyond this many are not listed; 8192 CPUs have some ten kernel threads each.
const THREADS_LIMIT: usize = 100_000;

/// CPUs in all sets together beyond which threads are not listed: a bound on memory.
const CPUS_LIMIT: usize = 4 << 20;

/// The threads of a machine that settings are about. None of onbeat's own is among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// The kernel's threads by name, without the workers of workqueues (`kworker/`): their names
    /// change from second to second, and their CPUs follow from the masks of the workqueues. Empty
    /// only where processes are hidden: in a container, or by `hidepid=` of proc(5).
    pub kernel: Vec<Thread>,
    /// The threads of programs that have a real-time policy, by name.
    pub realtime: Vec<Thread>,
    /// The virtual machines that run, by the names of their threads.
    pub guests: Vec<GuestThreads>,
    /// Those of the requested programs that run.
    pub programs: BTreeSet<String>,
    /// Programs that were asked for and that a capture was not asked for: whether they run is not
    /// known.
    pub unasked: BTreeSet<String>,
    /// Whether every process that showed could be read, and none was over the bound; those that
    /// ended while they were looked at do not count.
    pub complete: bool,
}

/// A program that runs a virtual machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestThreads {
    /// Its first thread, by which its others that are no CPUs of the guest are placed.
    pub emulator: Thread,
    /// The threads that are CPUs of the guest, whatever their policy.
    pub vcpus: Vec<Thread>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Of a thread of the kernel its start in ticks since boot, which tells it from a later one
    /// with its number; 0 for a program's, which no capture reveals.
    pub start: u64,
    pub comm: String,
    /// Its policy, if it is a real-time one.
    pub policy: Option<RtPolicy>,
    /// 1 to 99; 0 without a real-time policy and for deadline threads.
    pub priority: u32,
    /// The CPUs that it may run on; absent for an immovable thread that has no real-time policy.
    pub allowed: Fact<CpuSet>,
    /// Whether the kernel refuses any other affinity: it belongs where it is.
    pub immovable: bool,
}

/// Where a capture keeps the names of the programs that it was asked for, as if it were a
/// directory.
const ASKED: &str = "/proc/*/comm";

/// Looks at all threads: one short file each, and one more for those that are listed.
///
/// `programs` are the names to look for, of 15 characters at most, as the kernel cuts them.
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
        kept: BTreeMap::new(),
        room,
        cpus: 0,
    };
    look.found.complete = true;
    let names: BTreeSet<String> = programs.iter().map(|&name| name.to_owned()).collect();
    let asked = match quiet.list(ASKED) {
        Fact::Known(asked) => asked.into_iter().collect(),
        // A machine can be asked for any.
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
    look.kept.into_iter().for_each(|(path, seen)| host.record_as(&path, seen));
    let mut found = look.found;
    found.kernel.sort_by(|a, b| (&a.comm, a.priority).cmp(&(&b.comm, b.priority)));
    found.realtime.sort_by(|a, b| (&a.comm, a.priority).cmp(&(&b.comm, b.priority)));
    listed.map(|_| found)
}

fn numbers(names: &[String]) -> Vec<u32> {
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| task_number(name)).collect();
    numbers.sort_unstable();
    numbers
}

/// What was found so far, and what of it goes into a record: enough to find the same again.
struct Look<'a> {
    host: &'a MachineFiles,
    programs: &'a [&'a str],
    found: Threads,
    /// Of the program that is looked at.
    vcpus: Vec<Thread>,
    kept: BTreeMap<String, Access>,
    room: usize,
    cpus: usize,
}

impl Look<'_> {
    /// Looks at a process; whether a record needs it.
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
        let told = stat.policy.is_some() && self.thread(dir, pid, &stat);
        let others = if stat.threads > 1 { self.others(pid, dir) } else { None };
        let vcpus = std::mem::take(&mut self.vcpus);
        let emulator = if vcpus.is_empty() { None } else { self.seen(dir, pid, &stat) };
        let emulates = emulator.is_some();
        self.found.guests.extend(emulator.map(|emulator| GuestThreads { emulator, vcpus }));
        if !asked && !told && !emulates {
            // Only its threads are of interest: its name is not needed.
            stat = TaskStat { comm: String::new(), policy: None, priority: 0, immovable: false, ..stat };
        }
        if asked || told || emulates || others.is_some() {
            self.keep_stat(dir, pid, &stat, 1 + u64::from(others.is_some()));
        }
        if let Some(seen) = others {
            self.kept.insert(format!("{dir}/task"), seen);
            return true;
        }
        asked || told || emulates
    }

    /// Looks at the threads of a process but its first; what a record needs to know of their
    /// directory.
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

    /// The scheduling parameters of a thread; else whether the capture must contain that it could
    /// not be read.
    fn stat(&mut self, dir: &str) -> Result<TaskStat, bool> {
        let path = format!("{dir}/stat");
        let stat = whole::bytes(self.host, &path).parse(|bytes| parse_task_stat(&bytes));
        match stat {
            Fact::Known(stat) => Ok(TaskStat { comm: without_address(&stat.comm), ..stat }),
            outcome => {
                let needed = self.missed(&outcome);
                if needed {
                    self.kept.insert(path, Access::of(&outcome, |_| Access::Absent));
                }
                Err(needed)
            }
        }
    }

    /// Notes what could not be read; whether it is the first, which a record has to repeat.
    fn missed<T>(&mut self, outcome: &Fact<T>) -> bool {
        // A thread that ended shows as a missing file, or as ESRCH where the file was already open.
        !ended(outcome) && std::mem::replace(&mut self.found.complete, false)
    }

    /// Takes a thread in; whether a record needs it.
    fn thread(&mut self, dir: &str, tid: u32, stat: &TaskStat) -> bool {
        let complete = self.found.complete;
        let Some(thread) = self.seen(dir, tid, stat) else {
            // The first that there is no room for is in the record, too.
            return complete && !self.found.complete;
        };
        let list = if stat.kernel { &mut self.found.kernel } else { &mut self.found.realtime };
        list.push(thread);
        true
    }

    /// Takes in a thread that is a CPU of a guest; whether a record needs it.
    fn vcpu(&mut self, dir: &str, tid: u32, stat: &TaskStat) -> bool {
        let complete = self.found.complete;
        let Some(thread) = self.seen(dir, tid, stat) else { return complete && !self.found.complete };
        if stat.policy.is_some() {
            self.found.realtime.push(thread.clone());
        }
        self.vcpus.push(thread);
        true
    }

    /// A thread with its CPUs; none where it has ended, or where there is no room for it.
    fn seen(&mut self, dir: &str, tid: u32, stat: &TaskStat) -> Option<Thread> {
        if self.room == 0 || self.cpus > CPUS_LIMIT {
            self.found.complete = false;
            return None;
        }
        let allowed = match stat.immovable && stat.policy.is_none() {
            true => Fact::Absent,
            false => self.allowed(dir)?,
        };
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

    /// The CPUs that a thread may run on; none if it has ended meanwhile.
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
        self.kept.insert(path, Access::of(&line, |line| Access::File(line.clone().into_bytes())));
        Some(line.parse(|line| parse_allowed(&line)))
    }

    fn keep_stat(&mut self, dir: &str, number: u32, stat: &TaskStat, threads: u64) {
        self.kept
            .insert(format!("{dir}/stat"), Access::File(reduced_stat(number, stat, threads).into_bytes()));
    }
}

/// Tells a thread that is a CPU of a guest, by the names that QEMU (with debug-threads=on, as
/// libvirt has it), cloud-hypervisor, Firecracker and crosvm give them.
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
