//! Reads a process twice, and its waits in between.

use std::collections::BTreeMap;

use super::counters::{self, CallCounters, ThreadCounters};
use super::descriptors::{Descriptor, open_kind, parse_fdinfo, parse_mounts};
use super::mappings::parse_smaps;
use super::nodes::parse_numa_maps;
use super::status::{ProcessStatus, parse_status};
use super::waits::{Look, Wait, Waits, parse_syscall};
use super::{Growth, ProcessFacts, ProgramThread};
use crate::cgroup::{Cgroups, parse_cgroups};
use crate::limits::parse_limits;
use crate::line::parse_u64;
use crate::tasks::{TaskStat, parse_allowed, parse_task_stat, task_number};
use crate::whole;
use host::MachineFiles;
use model::fact::Fact;
use model::units::Nanos;

/// Threads beyond these are counted, and not looked at: each takes some ten short files.
pub const MAX_THREADS: usize = 1024;

/// Descriptors beyond these are not looked at.
const MAX_DESCRIPTORS: usize = 512;

/// Less than this is a thread that ended, or a buffer.
const GIVEN_BACK_KIB: u64 = 256;

/// A process between two readings. Nothing of it is recorded: a bundle holds no other program.
pub struct ProcessReader {
    host: MachineFiles,
    pid: u32,
    /// Its start in ticks since boot: a number is used again, a start is not.
    start: u64,
    groups: Cgroups,
    throttled: Fact<u64>,
    positions: BTreeMap<u32, u64>,
    growth: Fact<Growth>,
    last_kib: u64,
    last_anonymous_kib: u64,
    threads: BTreeMap<u32, Reading>,
    left_out: u64,
}

/// A thread as it was found.
struct Reading {
    start: u64,
    state: ProgramThread,
    counted: Fact<ThreadCounters>,
    calls: Fact<CallCounters>,
}

impl ProcessReader {
    /// Reads it for the first time; nothing where there is no such process, or no more.
    pub fn begin(host: &MachineFiles, pid: u32) -> Option<ProcessReader> {
        let host = host.unrecorded();
        let stat = stat_of(&host, &format!("/proc/{pid}")).known()?.clone();
        let groups = text(&host, &format!("/proc/{pid}/cgroup")).parse(|text| parse_cgroups(&text));
        let groups = groups.known().cloned().unwrap_or_default();
        let tids = threads_of(&host, pid);
        let left_out = tids.len().saturating_sub(MAX_THREADS) as u64;
        let read = |tid: u32| Some((tid, reading(&host, pid, tid)?));
        let threads = most_important(&host, pid, tids).into_iter().filter_map(read).collect();
        let positions = descriptors(&host, pid, &BTreeMap::new()).known().cloned().unwrap_or_default();
        let positions = positions.into_iter().map(|open| (open.number, open.position)).collect();
        let throttled = throttled(&host, &groups);
        let growth = Fact::Known(Growth { least_kib: u64::MAX, ..Growth::default() });
        let mut reader = ProcessReader {
            host,
            pid,
            start: stat.start_ticks,
            groups,
            throttled,
            positions,
            growth,
            last_kib: 0,
            last_anonymous_kib: 0,
            threads,
            left_out,
        };
        reader.look_at_size();
        Some(reader)
    }

    /// The threads of a real-time policy, by number.
    pub fn real_time(&self) -> Vec<u32> {
        let own = self.threads.iter().filter(|(_, reading)| reading.state.policy.is_some());
        own.map(|(tid, _)| *tid).collect()
    }

    /// The other threads, by number.
    pub fn others(&self) -> Vec<u32> {
        let own = self.threads.iter().filter(|(_, reading)| reading.state.policy.is_none());
        own.map(|(tid, _)| *tid).collect()
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the process is still there.
    pub fn lives(&self) -> bool {
        let stat = whole::bytes(&self.host, &format!("/proc/{}/stat", self.pid));
        let ended = |line: &Vec<u8>| {
            let state = line.iter().rposition(|byte| *byte == b')').and_then(|end| line.get(end + 2));
            state.is_none_or(|state| b"ZXx".contains(state))
        };
        let start = |line: &Vec<u8>| parse_task_stat(line).is_ok_and(|stat| stat.start_ticks == self.start);
        stat.known().is_some_and(|line| !ended(line) && start(line))
    }

    /// Looks at how a thread waits, and where it is; between the two readings. The call that it
    /// sleeps in, if it does.
    pub fn look_at(&mut self, tid: u32) -> Option<Wait> {
        let (host, pid) = (&self.host, self.pid);
        let reading = self.threads.get_mut(&tid)?;
        let look = text(host, &format!("/proc/{pid}/task/{tid}/syscall")).parse(|text| parse_syscall(&text));
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
            // What was seen before stays.
            (_, Fact::Known(_)) => {}
            (outcome, waits) => *waits = outcome.map(|_| Waits::default()),
        }
        if let Fact::Known(stat) = stat_of(host, &format!("/proc/{pid}/task/{tid}")) {
            reading.state.seen_on.insert(stat.last_cpu);
        }
        asleep
    }

    /// Looks at how large its writable memory is.
    pub fn look_at_size(&mut self) {
        let Fact::Known(growth) = &mut self.growth else { return };
        match status_of(&self.host, self.pid) {
            Fact::Known(status) => {
                growth.looks += 1;
                growth.changes += u64::from(growth.looks > 1 && status.data_kib != self.last_kib);
                growth.least_kib = growth.least_kib.min(status.data_kib);
                growth.most_kib = growth.most_kib.max(status.data_kib);
                self.last_kib = status.data_kib;
                // What went to a swap device was not given back by the program.
                if let Some(there) = status.anonymous_kib.filter(|_| status.swapped_kib == 0) {
                    growth.given_back += u64::from(there + GIVEN_BACK_KIB <= self.last_anonymous_kib);
                    self.last_anonymous_kib = there;
                }
            }
            outcome => self.growth = outcome.map(|_| Growth::default()),
        }
    }

    /// Reads it for the second time.
    pub fn end(mut self, window: Nanos) -> ProcessFacts {
        self.look_at_size();
        let (pid, host) = (self.pid, self.host);
        let of = |name: &str| format!("/proc/{pid}/{name}");
        let now = threads_of(&host, pid);
        let mut threads = Vec::new();
        let mut changed = now.iter().filter(|tid| !self.threads.contains_key(tid)).count() as u64;
        changed = changed.saturating_sub(self.left_out);
        for (tid, before) in self.threads {
            match reading(&host, pid, tid).filter(|after| after.start == before.start) {
                Some(after) => threads.push(between(before, after)),
                None => changed += 1,
            }
        }
        let comm = threads.iter().find(|thread| thread.tid == pid).map(|thread| thread.comm.clone());
        let quota = of_group(&host, &self.groups.v2_paths("cpu.max"), parse_quota);
        ProcessFacts {
            pid,
            comm: comm.unwrap_or_default(),
            window,
            status: status_of(&host, pid),
            limits: text(&host, &of("limits")).parse(|text| parse_limits(&text)),
            mappings: text(&host, &of("smaps")).parse(|text| parse_smaps(&text)),
            nodes: text(&host, &of("numa_maps")).parse(|text| parse_numa_maps(&text)),
            descriptors: descriptors(&host, pid, &self.positions),
            growth: self.growth,
            throttled: difference(throttled(&host, &self.groups), self.throttled),
            quota,
            threads,
            threads_left_out: self.left_out,
            threads_changed: changed,
        }
    }
}

/// The processes whose first thread has a name, as the kernel cuts it after 15 bytes.
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

fn text(host: &MachineFiles, path: &str) -> Fact<String> {
    whole::bytes(host, path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn status_of(host: &MachineFiles, pid: u32) -> Fact<ProcessStatus> {
    text(host, &format!("/proc/{pid}/status")).parse(|text| parse_status(&text))
}

fn stat_of(host: &MachineFiles, dir: &str) -> Fact<TaskStat> {
    whole::bytes(host, &format!("{dir}/stat")).parse(|bytes| parse_task_stat(&bytes))
}

fn threads_of(host: &MachineFiles, pid: u32) -> Vec<u32> {
    let names = host.list(&format!("/proc/{pid}/task")).known().cloned().unwrap_or_default();
    let mut tids: Vec<u32> = names.iter().filter_map(|name| task_number(name)).collect();
    tids.sort_unstable();
    tids
}

/// As many of some threads as are looked at, those of a real-time policy first.
fn most_important(host: &MachineFiles, pid: u32, mut tids: Vec<u32>) -> Vec<u32> {
    if tids.len() > MAX_THREADS {
        let stat = |tid: u32| stat_of(host, &format!("/proc/{pid}/task/{tid}"));
        tids.sort_by_cached_key(|tid| stat(*tid).known().is_none_or(|stat| stat.policy.is_none()));
        tids.truncate(MAX_THREADS);
    }
    tids
}

/// A thread of this moment; nothing where it has ended.
fn reading(host: &MachineFiles, pid: u32, tid: u32) -> Option<Reading> {
    let dir = format!("/proc/{pid}/task/{tid}");
    let line = whole::bytes(host, &format!("{dir}/stat"));
    let bytes = line.known()?;
    let stat = parse_task_stat(bytes).ok()?;
    let (minor_faults, major_faults, nice) = counters::parse_faults_and_nice(bytes).ok()?;
    let status = text(host, &format!("{dir}/status"));
    let allowed = status.clone().parse(|text| parse_allowed(&text));
    let run_ns = text(host, &format!("{dir}/schedstat")).parse(|text| counters::parse_run_ns(&text));
    let counted = status.parse(|text| counters::parse_switches(&text)).map(|(voluntary, involuntary)| {
        let run_ns = run_ns.known().copied();
        ThreadCounters { minor_faults, major_faults, run_ns, voluntary, involuntary }
    });
    let state = ProgramThread {
        tid,
        comm: stat.comm,
        policy: stat.policy,
        priority: stat.priority,
        nice,
        allowed,
        seen_on: [stat.last_cpu].into(),
        counted: Fact::Absent,
        calls: Fact::Absent,
        slack_ns: text(host, &format!("/proc/{tid}/timerslack_ns")).parse(|text| parse_u64(&text)),
        waits: Fact::Absent,
    };
    let calls = text(host, &format!("{dir}/io")).parse(|text| counters::parse_io(&text));
    Some(Reading { start: stat.start_ticks, state, counted, calls })
}

/// A thread over the window: as it is at the end, with what was counted meanwhile.
fn between(before: Reading, after: Reading) -> ProgramThread {
    let mut state = after.state;
    state.waits = before.state.waits;
    state.seen_on.extend(before.state.seen_on);
    let counted = (after.counted, before.counted);
    state.counted = match counted {
        (Fact::Known(now), Fact::Known(then)) => Fact::Known(now.since(&then)),
        (Fact::Known(_), other) | (other, _) => other,
    };
    state.calls = match (after.calls, before.calls) {
        (Fact::Known(now), Fact::Known(then)) => Fact::Known(now.since(&then)),
        (Fact::Known(_), other) | (other, _) => other,
    };
    state
}

fn difference(now: Fact<u64>, then: Fact<u64>) -> Fact<u64> {
    match (now, then) {
        (Fact::Known(now), Fact::Known(then)) => Fact::Known(now.saturating_sub(then)),
        (Fact::Known(_), other) | (other, _) => other,
    }
}

fn descriptors(host: &MachineFiles, pid: u32, before: &BTreeMap<u32, u64>) -> Fact<Vec<Descriptor>> {
    let mounts = text(host, &format!("/proc/{pid}/mountinfo")).map(|text| parse_mounts(&text));
    let mounts = mounts.known().cloned().unwrap_or_default();
    host.list(&format!("/proc/{pid}/fd")).map(|names| {
        let mut numbers: Vec<u32> = names.iter().filter_map(|name| task_number(name)).collect();
        numbers.sort_unstable();
        let one = |number: u32| {
            let name = host.link(&format!("/proc/{pid}/fd/{number}"));
            let name = name.known()?.trim_end_matches(" (deleted)").to_owned();
            let state = text(host, &format!("/proc/{pid}/fdinfo/{number}")).parse(|text| parse_fdinfo(&text));
            let state = *state.known()?;
            let filesystem = mounts.get(&state.mount).map_or("", String::as_str);
            Some(Descriptor {
                number,
                kind: open_kind(&name, filesystem),
                name: name.chars().take(64).map(|c| if c.is_control() { '?' } else { c }).collect(),
                writable: state.writable,
                position: state.position,
                moved: before.get(&number).is_some_and(|then| *then != state.position),
            })
        };
        numbers.into_iter().take(MAX_DESCRIPTORS).filter_map(one).collect()
    })
}

/// How often the group of a process, or one above it, was held back until now.
fn throttled(host: &MachineFiles, groups: &Cgroups) -> Fact<u64> {
    let count = |text: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
        line.map_or(Ok(None), |number| parse_u64(number).map(Some))
    };
    let paths =
        groups.v2_paths("cpu.stat").into_iter().chain(groups.v1_paths("cpu.stat")).collect::<Vec<_>>();
    of_group(host, &paths, count).then(|count| count.map_or(Fact::Absent, Fact::Known))
}

/// The first of some places where a file of a control group can be.
fn of_group<T>(host: &MachineFiles, paths: &[String], parse: impl Fn(&str) -> Result<T, String>) -> Fact<T> {
    for path in paths {
        match text(host, path).parse(|text| parse(&text)) {
            Fact::Absent => {}
            outcome => return outcome,
        }
    }
    Fact::Absent
}

/// Parses `cpu.max`: microseconds, or `max`, and the period.
fn parse_quota(text: &str) -> Result<Option<(u64, u64)>, String> {
    let expected = || "expected a quota and a period".to_owned();
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["max", _] => Ok(None),
        [quota, period] => {
            let number = |word: &str| word.parse::<u64>().map_err(|_| expected());
            Ok(Some((number(quota)?, number(period)?)))
        }
        _ => Err(expected()),
    }
}
