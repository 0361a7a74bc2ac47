//! State of the culprits' threads in /proc at the end of a hunt.
//!
//! Source: `/proc/PID/{stat,status,exe,cgroup}` in Documentation/filesystems/proc.rst.

use facts::cgroup::parse_cgroups;
use facts::tasks::{RtPolicy, TaskStat, has_ended, parse_allowed, parse_task_stat};
use facts::whole;
use host::MachineFiles;
use model::fact::{Fact, errno_name};
use model::run::{CulpritThread, FoundThread, Run};
use model::units::Nanos;
use model::wall_time::wall_time;

use super::victims::process_of;

/// Maximum number of threads that are looked up, those of the first culprits.
const MAX_THREADS: usize = 64;
/// Clock tick of /proc (USER_HZ).
const TICK: i64 = 10_000_000;

/// Offsets of the boot-time clock and the wall clock from CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClockOffsets {
    pub boot: Nanos,
    pub wall: Nanos,
}

/// Looks up the culprits' threads. Reads of other users' programs go into no record of accesses.
pub fn find(run: &mut Run, host: &MachineFiles, offsets: ClockOffsets) {
    let host = host.unrecorded();
    let threads = run.culprits.iter_mut().flat_map(|culprit| &mut culprit.threads);
    for thread in threads.take(MAX_THREADS) {
        thread.found = Some(thread_now(&host, thread, offsets));
    }
    rules::culprits::advice::renew(run);
}

fn thread_now(host: &MachineFiles, thread: &CulpritThread, offsets: ClockOffsets) -> FoundThread {
    let dir = format!("/proc/{}", thread.tid);
    let ended = || FoundThread { state: "ended".into(), ..FoundThread::default() };
    let line = whole::bytes(host, &format!("{dir}/stat"));
    if line.known().is_some_and(|line| has_ended(line)) {
        return ended();
    }
    let stat = match line.parse(|line| parse_task_stat(&line)) {
        Fact::Known(stat) if is_same(&stat, thread, offsets) => stat,
        Fact::Known(_) | Fact::Absent | Fact::Refused(libc::ESRCH) => return ended(),
        other => {
            let unread = unread("its stat file", &other).into_iter().collect();
            return FoundThread { state: "unknown".into(), unread, ..FoundThread::default() };
        }
    };
    let process = process_of(host, thread.tid);
    let started = Nanos((stat.start_ticks as i64).saturating_mul(TICK)) - offsets.boot;
    let mut found = FoundThread {
        state: "alive".into(),
        kernel: Some(stat.kernel),
        process,
        policy: policy(stat.policy).into(),
        priority: stat.policy.map(|_| stat.priority).filter(|priority| *priority > 0),
        started: wall_time(started + offsets.wall),
        ..FoundThread::default()
    };
    let allowed = whole::text(host, &format!("{dir}/status")).parse(|text| parse_allowed(&text));
    match &allowed {
        Fact::Known(cpus) => found.cpus = cpus.to_string(),
        other => found.unread.extend(unread("its CPUs", other)),
    }
    if stat.kernel {
        return found;
    }
    match host.link_path(&format!("{dir}/exe")) {
        Fact::Known(path) => found.program = path,
        other => found.unread.extend(unread("its program", &other)),
    }
    match whole::text(host, &format!("{dir}/cgroup")).parse(|text| parse_cgroups(&text)) {
        Fact::Known(groups) => {
            let path = groups.unified.filter(|path| !path.is_empty()).or(groups.cpu.map(|(_, path)| path));
            found.unit = path.as_deref().and_then(|path| path.rsplit('/').next()).unwrap_or_default().into();
        }
        // A kernel without control groups.
        Fact::Absent => {}
        other => found.unread.extend(unread("its control group", &other)),
    }
    found
}

/// True if this is the thread in the trace: thread IDs are reused. One that started after the
/// thread's last turn is another; a thread may have changed its name since.
fn is_same(stat: &TaskStat, thread: &CulpritThread, offsets: ClockOffsets) -> bool {
    let started = Nanos((stat.start_ticks as i64).saturating_mul(TICK)) - offsets.boot;
    let named = stat.comm == thread.comm;
    started <= thread.last_ns && (named || started < thread.first_ns - Nanos(2 * TICK))
}

fn policy(policy: Option<RtPolicy>) -> &'static str {
    match policy {
        Some(RtPolicy::Deadline) => "deadline",
        Some(RtPolicy::Fifo) => "fifo",
        Some(RtPolicy::RoundRobin) => "rr",
        None => "other",
    }
}

fn unread<T>(what: &str, outcome: &Fact<T>) -> Option<String> {
    Some(match outcome {
        Fact::Known(_) => return None,
        Fact::Absent | Fact::NotCaptured | Fact::NotRunning => format!("{what} is not in /proc"),
        Fact::Refused(errno) => format!("{what} could not be read ({})", errno_name(*errno)),
        Fact::Malformed(why) => format!("{what} could not be parsed ({why})"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::access::Access;
    use model::run::Culprit;
    use std::collections::BTreeMap;

    fn stat(comm: &str, start: u64, flags: u64) -> Access {
        // Fields 4 to 8, 9 the flags, 10 to 21, 22 the start, 23 to 39, 40 the priority, 41 the
        // policy (proc_pid_stat(5)).
        let zeros = |many: usize| " 0".repeat(many);
        let text = format!("7 ({comm}) S{} {flags}{} {start}{} 95 1 0 0\n", zeros(5), zeros(12), zeros(17));
        Access::File(text.into_bytes())
    }

    fn machine(stat: Access, exe: Access) -> MachineFiles {
        let file = |text: &str| Access::File(text.as_bytes().to_vec());
        let answers: BTreeMap<String, Access> = [
            ("/proc/7/stat", stat),
            ("/proc/7/status", file("Name:\tx\nTgid:\t6\nCpus_allowed_list:\t0\n")),
            ("/proc/7/cgroup", file("0::/system.slice/fieldbus.service\n")),
            ("/proc/7/exe", exe),
        ]
        .map(|(path, seen)| (path.to_owned(), seen))
        .into();
        MachineFiles::in_memory(answers)
    }

    fn exe() -> Access {
        Access::Link("/usr/sbin/fieldbusd".into())
    }

    fn sample_thread(host: &MachineFiles) -> FoundThread {
        // Seen from 50 s to 60 s after boot, 5 s of which were a suspension.
        let thread = CulpritThread {
            tid: 7,
            comm: "fieldbusd".into(),
            first_ns: Nanos(45_000_000_000),
            last_ns: Nanos(55_000_000_000),
            ..CulpritThread::default()
        };
        let culprit = Culprit { threads: vec![thread], threads_seen: 1, ..Culprit::default() };
        let mut run = Run { culprits: vec![culprit], ..Run::default() };
        find(&mut run, host, ClockOffsets { boot: Nanos(5_000_000_000), wall: Nanos(1_000_000_000) });
        run.culprits[0].threads[0].found.clone().expect("looked for")
    }

    #[test]
    fn a_thread_that_is_there_is_told_with_its_program_and_its_cpus() {
        let found = sample_thread(&machine(stat("fieldbusd", 1_000, 0), exe()));
        assert_eq!((found.state.as_str(), found.process, found.kernel), ("alive", Some(6), Some(false)));
        assert_eq!(
            (found.program.as_str(), found.unit.as_str()),
            ("/usr/sbin/fieldbusd", "fieldbus.service")
        );
        assert_eq!((found.policy.as_str(), found.priority, found.cpus.as_str()), ("fifo", Some(95), "0"));
        assert!(found.started.starts_with("1970-01-01T00:00:06") && found.unread.is_empty(), "{found:?}");
        assert_eq!(sample_thread(&machine(stat("renamed", 1_000, 0), exe())).state, "alive");
        let refused = sample_thread(&machine(stat("fieldbusd", 1_000, 0), Access::Refused(libc::EACCES)));
        assert_eq!(refused.unread, ["its program could not be read (EACCES, permission denied)"]);
    }

    #[test]
    fn another_with_its_number_and_one_that_is_gone_are_ended() {
        for start in [5_990, 6_100] {
            let other = if start > 6_000 { "fieldbusd" } else { "sh" };
            assert_eq!(sample_thread(&machine(stat(other, start, 0), exe())).state, "ended", "{start}");
        }
        assert_eq!(sample_thread(&MachineFiles::in_memory(BTreeMap::new())).state, "ended");
        let denied = machine(Access::Refused(libc::EACCES), exe());
        assert_eq!(sample_thread(&denied).state, "unknown");
    }

    #[test]
    fn a_thread_of_the_kernel_has_no_program() {
        let found = sample_thread(&machine(stat("fieldbusd", 1_000, 0x0020_0000), exe()));
        assert_eq!((found.kernel, found.program.as_str(), found.unread.len()), (Some(true), "", 0));
    }
}
