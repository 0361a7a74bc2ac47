//! Reads one thread, and its activity between two readings.

use super::ProgramThread;
use super::counters::{self, CallCounters, ThreadCounters};
use super::files::text;
use super::waits::Waits;
use crate::line::parse_u64;
use crate::tasks::{has_ended, parse_allowed, parse_task_stat};
use crate::whole;
use host::MachineFiles;
use model::fact::Fact;
use model::units::Nanos;

/// A thread at one reading.
pub struct ThreadReading {
    pub start: u64,
    /// Time of the reading.
    pub at: Nanos,
    pub state: ProgramThread,
    pub counted: Fact<ThreadCounters>,
    pub calls: Fact<CallCounters>,
}

/// Reads a thread; none if it has ended.
pub fn reading(host: &MachineFiles, pid: u32, tid: u32, now: Nanos) -> Option<ThreadReading> {
    let dir = format!("/proc/{pid}/task/{tid}");
    let line = whole::bytes(host, &format!("{dir}/stat"));
    let bytes = line.known()?;
    let stat = parse_task_stat(bytes).ok().filter(|_| !has_ended(bytes))?;
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
        waits: Fact::Known(Waits::default()),
        stack: Fact::Absent,
        window: Nanos(0),
    };
    let calls = text(host, &format!("{dir}/io")).parse(|text| counters::parse_io(&text));
    Some(ThreadReading { start: stat.start_ticks, at: now, state, counted, calls })
}

/// A thread over the window: its state at the end, with the increase of its counters.
pub fn between(before: ThreadReading, after: ThreadReading) -> ProgramThread {
    let mut state = after.state;
    state.waits = before.state.waits;
    state.seen_on.extend(before.state.seen_on);
    state.window = after.at - before.at;
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
