//! Reads a process twice, and its waits in between.

use std::collections::{BTreeMap, BTreeSet};

use super::calls::has_own_numbers;
use super::descriptors::{Descriptor, open_kind, parse_fdinfo, parse_mounts};
use super::files::{dir_of, lives, stat_of, status_of, text, threads_of};
use super::group::{self, GroupDirs, quota, throttled};
use super::mappings::{mapping_at, parse_smaps};
use super::nodes::parse_numa_maps;
use super::pages::stack_pages;
use super::thread::{self, ThreadReading, between, reading};
use super::waits::{Look, Wait, Waits, parse_syscall};
use super::{Growth, ProcessFacts};
use crate::cgroup::parse_cgroups;
use crate::limits::parse_limits;
use crate::policy_rights::read_policy_rights;
use crate::tasks::task_number;
use host::MachineFiles;
use model::fact::Fact;
use model::units::Nanos;

/// Limit of threads that are read, some ten short files each; further ones are counted.
pub const MAX_THREADS: usize = 1024;

/// Limit of counted short-lived threads.
const MAX_BRIEF: usize = 1 << 16;

/// Limit of descriptors that are read.
const MAX_DESCRIPTORS: usize = 512;

/// Decrease, in KiB, that counts as memory given back: less is a thread that ended, or a buffer.
const GIVEN_BACK_KIB: u64 = 256;

/// Outcome of looking at a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeenThread {
    /// Asleep in a call.
    Asleep(Wait),
    /// Real-time by now, or no longer: its activity so far belongs to its start or its end, and
    /// counting starts anew.
    OtherPolicy,
    /// Running, asleep in no call, or ended.
    Elsewhere,
}

/// A process between two readings. None of it is recorded: bundles hold no other programs.
pub struct ProcessReader {
    pub(super) host: MachineFiles,
    pid: u32,
    /// Start in ticks since boot: process IDs are reused, starts are not.
    start: u64,
    comm: String,
    begun: Nanos,
    groups: Fact<GroupDirs>,
    own_numbers: Fact<bool>,
    auxiliary: Fact<Vec<u8>>,
    throttled: Fact<u64>,
    positions: BTreeMap<u32, u64>,
    growth: Fact<Growth>,
    last_kib: u64,
    last_anonymous_kib: u64,
    threads: BTreeMap<u32, ThreadReading>,
    left_out: u64,
    /// Real-time threads that were seen between two searches for new ones.
    brief: BTreeSet<u32>,
}

impl ProcessReader {
    /// Reads the process for the first time; none if it does not exist, or no longer.
    pub fn begin(host: &MachineFiles, pid: u32, now: Nanos) -> Option<ProcessReader> {
        let host = host.unrecorded();
        let stat = stat_of(&host, &format!("/proc/{pid}")).known()?.clone();
        let dir = dir_of(&host, pid);
        let groups = text(&host, &format!("{dir}/cgroup")).parse(|text| parse_cgroups(&text));
        let groups = group::find(&host, &groups);
        let tids = threads_of(&host, pid);
        let left_out = tids.len().saturating_sub(MAX_THREADS) as u64;
        let read = |tid: u32| Some((tid, reading(&host, pid, tid, now)?));
        let threads = most_important(&host, pid, tids).into_iter().filter_map(read).collect();
        let positions = descriptors(&host, &dir, &BTreeMap::new()).known().cloned().unwrap_or_default();
        let positions = positions.into_iter().map(|open| (open.number, open.position)).collect();
        let throttled = throttled(&host, &groups);
        let auxiliary = auxiliary(&host, pid);
        let own_numbers = auxiliary.clone().parse(|bytes| has_own_numbers(&bytes));
        let growth = Fact::Known(Growth { least_kib: u64::MAX, ..Growth::default() });
        let mut reader = ProcessReader {
            host,
            pid,
            start: stat.start_ticks,
            comm: stat.comm,
            begun: now,
            groups,
            own_numbers,
            auxiliary,
            throttled,
            positions,
            growth,
            last_kib: 0,
            last_anonymous_kib: 0,
            threads,
            left_out,
            brief: BTreeSet::new(),
        };
        reader.look_at_size();
        Some(reader)
    }

    /// IDs of the real-time threads, ascending.
    pub fn real_time(&self) -> Vec<u32> {
        let own = self.threads.iter().filter(|(_, reading)| reading.state.policy.is_some());
        own.map(|(tid, _)| *tid).collect()
    }

    /// IDs of the other threads, ascending.
    pub fn others(&self) -> Vec<u32> {
        let own = self.threads.iter().filter(|(_, reading)| reading.state.policy.is_none());
        own.map(|(tid, _)| *tid).collect()
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// True while the process exists.
    pub fn lives(&self) -> bool {
        goes_on(&self.host, self.pid, self.start)
    }

    /// True if it has executed another program since the first reading, which replaces the memory
    /// and the threads that were read: an execution creates a new auxiliary vector, with other
    /// addresses (`create_elf_tables()` of fs/binfmt_elf.c).
    pub fn has_executed(&self) -> bool {
        match (&self.auxiliary, auxiliary(&self.host, self.pid)) {
            (Fact::Known(then), Fact::Known(now)) => !now.is_empty() && *then != now,
            _ => false,
        }
    }

    /// Reads the threads that appeared since the last call, up to the limit.
    pub fn find_new(&mut self, now: Nanos) {
        for tid in threads_of(&self.host, self.pid) {
            if self.threads.len() >= MAX_THREADS {
                break;
            }
            if !self.threads.contains_key(&tid) {
                self.threads.extend(reading(&self.host, self.pid, tid, now).map(|reading| (tid, reading)));
            }
        }
    }

    /// Looks for real-time threads that may end before new ones are searched for; their activity is
    /// not read.
    pub fn look_for_brief(&mut self) {
        // Each thread over the limit would be read again at every call.
        if self.threads.len() >= MAX_THREADS {
            return;
        }
        for tid in threads_of(&self.host, self.pid) {
            let room = self.brief.len() < MAX_BRIEF;
            if room && !self.threads.contains_key(&tid) && !self.brief.contains(&tid) {
                let stat = stat_of(&self.host, &format!("/proc/{}/task/{tid}", self.pid));
                if stat.known().is_some_and(|stat| stat.policy.is_some()) {
                    self.brief.insert(tid);
                }
            }
        }
    }

    /// Reads in what call a thread waits and on which CPU it ran; between the two readings.
    pub fn look_at(&mut self, tid: u32, now: Nanos) -> SeenThread {
        let (host, pid) = (&self.host, self.pid);
        let Some(reading) = self.threads.get_mut(&tid) else { return SeenThread::Elsewhere };
        let look = text(host, &format!("/proc/{pid}/task/{tid}/syscall")).parse(|text| parse_syscall(&text));
        let named = self.own_numbers == Fact::Known(true);
        let look = if named { look } else { look.map(Look::without_name) };
        let asleep = match &look {
            Fact::Known(Look::Asleep { wait, .. }) => wait.clone(),
            _ => None,
        };
        match (look, &mut reading.state.waits) {
            (Fact::Known(look), Fact::Known(waits)) => waits.add(look),
            (Fact::Known(look), waits) => {
                let mut first = Waits::default();
                first.add(look);
                *waits = Fact::Known(first);
            }
            // Earlier observations remain.
            (_, Fact::Known(waits)) if waits.looks() > 0 => {}
            (outcome, waits) => *waits = outcome.map(|_| Waits::default()),
        }
        if let Fact::Known(stat) = stat_of(host, &format!("/proc/{pid}/task/{tid}")) {
            // A thread that becomes real-time is observed from then on.
            if stat.policy.is_some() != reading.state.policy.is_some() {
                let Some(anew) = thread::reading(host, pid, tid, now) else { return SeenThread::Elsewhere };
                *reading = anew;
                return SeenThread::OtherPolicy;
            }
            reading.state.seen_on.insert(stat.last_cpu);
        }
        asleep.map_or(SeenThread::Elsewhere, SeenThread::Asleep)
    }

    /// Samples the size of its writable memory.
    pub fn look_at_size(&mut self) {
        let Fact::Known(growth) = &mut self.growth else { return };
        match status_of(&self.host, self.pid) {
            Fact::Known(status) => {
                growth.looks += 1;
                growth.changes += u64::from(growth.looks > 1 && status.data_kib != self.last_kib);
                growth.least_kib = growth.least_kib.min(status.data_kib);
                growth.most_kib = growth.most_kib.max(status.data_kib);
                self.last_kib = status.data_kib;
                // Memory in swap was not given back by the program.
                if let Some(there) = status.anonymous_kib.filter(|_| status.swapped_kib == 0) {
                    growth.given_back += u64::from(there + GIVEN_BACK_KIB <= self.last_anonymous_kib);
                    self.last_anonymous_kib = there;
                }
            }
            outcome => self.growth = outcome.map(|_| Growth::default()),
        }
    }

    /// Reads the process for the second time; none if it ended before all was read.
    pub fn end(mut self, now: Nanos) -> Option<ProcessFacts> {
        self.look_at_size();
        let (pid, host) = (self.pid, self.host);
        let dir = dir_of(&host, pid);
        let of = |name: &str| format!("{dir}/{name}");
        let tids = threads_of(&host, pid);
        let mut threads = Vec::new();
        let unknown = tids.iter().filter(|tid| !self.threads.contains_key(tid));
        // The first thread stays listed after its end.
        let mut changed =
            unknown.filter(|tid| lives(&host, &format!("/proc/{pid}/task/{tid}"))).count() as u64;
        changed = changed.saturating_sub(self.left_out);
        let ended = |tid: &&u32| !tids.contains(*tid);
        let brief = self.brief.iter().filter(ended).filter(|tid| !self.threads.contains_key(tid));
        let known = self.threads.iter().filter(|(tid, own)| ended(tid) && own.state.policy.is_some());
        let real_time_ended = (brief.count() + known.count()) as u64;
        for (tid, before) in self.threads {
            // If its policy changed since the last look, most of its activity was under the other.
            let same = |after: &ThreadReading| {
                after.start == before.start && after.state.policy.is_some() == before.state.policy.is_some()
            };
            match reading(&host, pid, tid, now).filter(same) {
                Some(after) => threads.push(between(before, after)),
                None => changed += 1,
            }
        }
        let mappings = text(&host, &of("smaps")).parse(|text| parse_smaps(&text));
        for thread in threads.iter_mut().filter(|thread| thread.policy.is_some()) {
            let pointer = thread.waits.known().and_then(|waits| waits.stack);
            let at = pointer.and_then(|pointer| Some((pointer, mapping_at(mappings.known()?, pointer)?)));
            thread.stack = at.map_or(Fact::Absent, |(pointer, at)| stack_pages(&host, &dir, at, pointer));
        }
        let found = ProcessFacts {
            pid,
            comm: self.comm,
            window: now - self.begun,
            status: status_of(&host, pid),
            own_numbers: self.own_numbers,
            rights: read_policy_rights(&host, &dir),
            limits: text(&host, &of("limits")).parse(|text| parse_limits(&text)),
            mappings,
            nodes: text(&host, &of("numa_maps")).parse(|text| parse_numa_maps(&text)),
            descriptors: descriptors(&host, &dir, &self.positions),
            growth: self.growth,
            throttled: difference(throttled(&host, &self.groups), self.throttled),
            quota: quota(&host, &self.groups),
            threads,
            threads_left_out: self.left_out,
            threads_changed: changed,
            real_time_ended,
        };
        // Missing files of an ending process would look like things that it never had.
        goes_on(&host, pid, self.start).then_some(found)
    }
}

fn auxiliary(host: &MachineFiles, pid: u32) -> Fact<Vec<u8>> {
    host.read_at_most(&format!("{}/auxv", dir_of(host, pid)), 4096)
}

/// True if a process exists and one of its threads is alive.
fn goes_on(host: &MachineFiles, pid: u32, start: u64) -> bool {
    let stat = stat_of(host, &format!("/proc/{pid}"));
    stat.known().is_some_and(|stat| stat.start_ticks == start) && lives(host, &dir_of(host, pid))
}

/// IDs of the processes whose first thread has a name, truncated to 15 bytes as in the kernel.
pub fn processes_named(host: &MachineFiles, name: &str) -> Vec<u32> {
    let host = host.unrecorded();
    let wanted: Vec<u8> = name.bytes().take(15).collect();
    let names = host.list("/proc").known().cloned().unwrap_or_default();
    let mut pids: Vec<u32> = names.iter().filter_map(|name| task_number(name)).collect();
    pids.sort_unstable();
    pids.retain(|pid| {
        let comm = host.read_at_most(&format!("/proc/{pid}/comm"), 64);
        comm.known().is_some_and(|comm| comm.strip_suffix(b"\n") == Some(&wanted[..]))
    });
    pids
}

/// As many of the threads as the limit permits, those of a real-time policy first.
fn most_important(host: &MachineFiles, pid: u32, mut tids: Vec<u32>) -> Vec<u32> {
    if tids.len() > MAX_THREADS {
        let stat = |tid: u32| stat_of(host, &format!("/proc/{pid}/task/{tid}"));
        tids.sort_by_cached_key(|tid| stat(*tid).known().is_none_or(|stat| stat.policy.is_none()));
        tids.truncate(MAX_THREADS);
    }
    tids
}

fn difference(now: Fact<u64>, then: Fact<u64>) -> Fact<u64> {
    match (now, then) {
        (Fact::Known(now), Fact::Known(then)) => Fact::Known(now.saturating_sub(then)),
        (Fact::Known(_), other) | (other, _) => other,
    }
}

fn descriptors(host: &MachineFiles, dir: &str, before: &BTreeMap<u32, u64>) -> Fact<Vec<Descriptor>> {
    let mounts = text(host, &format!("{dir}/mountinfo")).map(|text| parse_mounts(&text));
    let mounts = mounts.known().cloned().unwrap_or_default();
    host.list(&format!("{dir}/fd")).map(|names| {
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| task_number(name)).collect();
        numbers.sort_unstable();
        let one = |number: u32| {
            let name = host.link(&format!("{dir}/fd/{number}"));
            let name = name.known()?.trim_end_matches(" (deleted)").to_owned();
            let state = text(host, &format!("{dir}/fdinfo/{number}")).parse(|text| parse_fdinfo(&text));
            let state = *state.known()?;
            let filesystem = mounts.get(&state.mount).map_or("", String::as_str);
            Some(Descriptor {
                number,
                kind: open_kind(&name, filesystem),
                name: name.chars().take(64).map(|c| if c.is_control() { '?' } else { c }).collect(),
                writable: state.writable,
                position: state.position,
                timer: state.timer,
                moved: before.get(&number).is_some_and(|then| *then != state.position),
            })
        };
        numbers.into_iter().take(MAX_DESCRIPTORS).filter_map(one).collect()
    })
}
