//! Examines a running program from outside for some seconds: stops nothing and writes nothing into
//! it.
//!
//! `find` (the process to check), `below` (real-time threads of its descendants), `source` (kernel
//! events of its threads), `cost` (cost of recording them per wake-up). `facts::process` reads,
//! `rules::checks` judges.

mod below;
mod cost;
pub mod find;
pub mod source;
pub mod started;

use std::collections::BTreeSet;

use crate::measure::call_time::call_time;
use cost::Calibration;
use facts::process::surroundings::{read_surroundings, thread_of_machine};
use facts::process::{MAX_THREADS, ProcessFacts, ProcessReader, SeenThread};
use host::rt::{self, Woken};
use host::{MachineFiles, children, clock};
use model::error::{Exit, Failure, Result};
use model::fact::Fact;
use model::text::several;
use model::units::Nanos;
use rules::checks::findings::{CheckCost, ProgramCheck, check};
use rules::checks::releases::Releases;
use rules::checks::view::{CALLS, ProgramView, Recorded, WAKING};
use source::CheckSource;
use trace::activity::{Activity, Waker};

/// Process, window and options of a check.
#[derive(Clone, Copy, Debug)]
pub struct CheckPlan {
    pub pid: u32,
    pub window: Nanos,
    /// True if system calls are recorded, which slows down every process of the machine.
    pub syscalls: bool,
    /// True if onbeat started the program: its background processes are children of onbeat then.
    pub started: bool,
}

/// Result of a check.
pub struct Checked {
    pub check: ProgramCheck,
    /// True if a signal ended the window early.
    pub interrupted: bool,
}

/// Mean interval between looks at the threads: 200 a second.
const LOOK: Nanos = Nanos(5_000_000);
/// Looks per look at a thread without a real-time policy.
const OTHERS: usize = 4;
/// Maximum number of threads per look, so that each of many threads is seen several times.
const MAX_AT_ONCE: usize = 10;
/// Looks between reads of the kernel's buffers and of the process's size.
const ROUND: usize = 4;
/// Looks between searches for new threads.
const NEWS: usize = 40;

/// Examines a process and judges it.
pub fn run(host: &MachineFiles, plan: &CheckPlan) -> Result<Checked> {
    let own = std::process::id();
    let mut machine = read_surroundings(host, &[plan.pid, own]);
    let before = Calibration::measure();
    let call_before = call_time();
    let mut looking = Looking::begin(host, plan)?;
    let begun = clock::monotonic();
    let interrupted = looking.look(plan.window)?;
    let Looking { reader, source, calibration, call_time, releases, .. } = looking;
    let recorded: Recorded = source.and_then(CheckSource::end);
    if reader.has_executed() {
        return Err(executed(plan.pid));
    }
    let Some(process) = reader.end(clock::monotonic()) else {
        let ended = ended(plan.pid, clock::monotonic() - begun);
        // Ctrl-C in a terminal also ends a program that was started for the check.
        return Err(if interrupted { Failure { exit: Exit::Interrupted, ..ended } } else { ended });
    };
    let recorded = recorded.and_then(|activity| believed(activity, &process));
    let wakeup = match &recorded {
        Ok(_) => calibration.and_then(|armed| armed.above(before)),
        Err(_) => Some(0),
    };
    let call = if has_calls(&recorded) {
        call_time.zip(call_before).map(|(armed, before)| (armed - before).0.max(1) as u64)
    } else {
        Some(0)
    };
    machine.wakers = wakers(host, &recorded, &process);
    let cost = CheckCost { wakeup, call };
    let mut remarks = remarks(&process, &recorded, call);
    if process.real_time().next().is_none() {
        // After the remark that the process has no real-time thread.
        below::remark(plan.pid, plan.started).into_iter().for_each(|said| remarks.insert(1, said));
    }
    let view = ProgramView {
        process: &process,
        machine: &machine,
        recorded: &recorded,
        calls_asked: plan.syscalls,
        releases: &releases,
    };
    Ok(Checked { check: check(&view, cost, remarks), interrupted })
}

/// State of the process during the window, and the events of its threads.
struct Looking {
    reader: ProcessReader,
    source: Result<CheckSource, String>,
    /// Cost of a wake-up while events are recorded.
    calibration: Option<Calibration>,
    /// Duration of a system call while events are recorded.
    call_time: Option<Nanos>,
    /// Threads to look at: those with a real-time policy, and others.
    threads: [Vec<u32>; 2],
    releases: Releases,
    started: bool,
}

impl Looking {
    fn begin(host: &MachineFiles, plan: &CheckPlan) -> Result<Looking> {
        let gone = || ended(plan.pid, Nanos(0));
        let reader = ProcessReader::begin(host, plan.pid, clock::monotonic()).ok_or_else(gone)?;
        let threads = [reader.real_time(), reader.others()];
        let recorded = if threads[0].is_empty() { reader.others() } else { threads[0].clone() };
        let source = CheckSource::open(&recorded, plan.syscalls);
        let calibration = source.as_ref().ok().map(|_| Calibration::measure());
        let call_time = source.as_ref().ok().and_then(|_| call_time());
        // Counts from before the events were armed do not belong to the window.
        let reader = ProcessReader::begin(host, plan.pid, clock::monotonic()).ok_or_else(gone)?;
        let (releases, started) = (Releases::default(), plan.started);
        Ok(Looking { reader, source, calibration, call_time, threads, releases, started })
    }

    /// Looks until the window ends or a signal comes; true if one came.
    fn look(&mut self, window: Nanos) -> Result<bool> {
        let (from, mut at) = (clock::monotonic(), [0; 2]);
        let mut round = 0;
        loop {
            let now = clock::monotonic();
            if now - from >= window {
                break Ok(false);
            }
            // At random times, not at the same point of each cycle.
            let next = now + Nanos(LOOK.0 / 2 + (host::random_u64() % LOOK.0 as u64) as i64);
            let woken = rt::wait_until(next.min(from + window));
            let at_once = (self.threads[0].len() / 20).clamp(1, MAX_AT_ONCE);
            (0..at_once).for_each(|_| self.next(0, &mut at));
            if round % OTHERS == 0 {
                self.next(1, &mut at);
            }
            round += 1;
            if round % NEWS == 0 {
                self.find_new();
                if self.started {
                    // Reaps background processes of the program that have ended.
                    children::left_beside(self.reader.pid());
                }
            }
            if round % ROUND == 0 {
                self.reader.look_at_size();
                self.reader.look_for_brief();
                self.take();
                if !self.reader.lives() {
                    return Err(ended(self.reader.pid(), clock::monotonic() - from));
                }
            }
            if woken == Woken::Stop {
                break Ok(true);
            }
        }
    }

    fn next(&mut self, kind: usize, at: &mut [usize; 2]) {
        let count = self.threads[kind].len().max(1);
        if let Some(tid) = self.threads[kind].get(at[kind] % count).copied() {
            let from = clock::monotonic();
            match self.reader.look_at(tid, from) {
                SeenThread::Asleep(wait) if self.source.is_ok() => {
                    self.releases.look(tid, from, clock::monotonic(), wait);
                }
                SeenThread::OtherPolicy => self.begin_anew(tid),
                _ => {}
            }
        }
        at[kind] += 1;
    }

    /// Discards the events of a thread under its earlier policy, as its counters are discarded.
    fn begin_anew(&mut self, tid: u32) {
        // Events still in the buffers belong to that time, too.
        self.take();
        if let Ok(source) = &mut self.source {
            source.forget(tid);
        }
        self.releases.forget(tid);
    }

    /// Follows new threads, and those that became real-time.
    fn find_new(&mut self) {
        self.reader.find_new(clock::monotonic());
        self.threads = [self.reader.real_time(), self.reader.others()];
        if let (Ok(source), [own, _]) = (&mut self.source, &self.threads) {
            source.follow(own);
        }
    }

    /// Takes the events up to now.
    fn take(&mut self) {
        let until = clock::monotonic();
        if let Ok(source) = &mut self.source {
            self.releases.wakings(source.take(), until);
        }
    }
}

/// Failure for a process that ended before it could be judged.
fn ended(pid: u32, after: Nanos) -> Failure {
    Failure {
        exit: Exit::Inconclusive,
        message: format!(
            "process {pid} ended {} after the check began, too early for a verdict: keep it running during \
             the check (-D)",
            after.spoken()
        ),
    }
}

/// Failure for a process that executed another program, which replaced its memory and threads.
fn executed(pid: u32) -> Failure {
    Failure {
        exit: Exit::Inconclusive,
        message: format!(
            "process {pid} executed another program during the check: repeat the check once that program is \
             working"
        ),
    }
}

/// The recorded events, unless they cannot be those of these threads: in a PID namespace the
/// kernel's events have other thread IDs.
fn believed(activity: Activity, process: &ProcessFacts) -> Recorded {
    /// Number of sleeps that cannot all have been missed.
    const MANY: u64 = 20;
    let slept =
        process.real_time().filter_map(|thread| thread.counted.known()).map(|counted| counted.voluntary);
    let woken = activity.threads.values().any(|thread| !thread.wakers.is_empty());
    if !woken && activity.has_event(WAKING) && slept.sum::<u64>() >= MANY {
        return Err("no event has the numbers of its threads, though they slept: in a PID namespace (a \
                    container) the kernel uses other numbers; run onbeat outside the container"
            .to_owned());
    }
    Ok(activity)
}

/// Threads of other processes that woke those of the process, if they still exist.
fn wakers(
    host: &MachineFiles,
    recorded: &Recorded,
    process: &ProcessFacts,
) -> std::collections::BTreeMap<u32, facts::process::surroundings::WakingThread> {
    let activity = recorded.iter().flat_map(|activity| activity.threads.values());
    let wakers = activity.flat_map(|thread| thread.wakers.keys());
    let tids: BTreeSet<u32> = wakers
        .filter_map(|waker| match waker {
            Waker::Thread(tid) => u32::try_from(*tid).ok(),
            Waker::Interrupt => None,
        })
        .collect();
    let others = tids.into_iter().filter(|tid| process.thread(*tid).is_none());
    others.filter_map(|tid| Some((tid, thread_of_machine(host, tid)?))).collect()
}

fn has_calls(recorded: &Recorded) -> bool {
    recorded.as_ref().is_ok_and(|activity| activity.has_event(CALLS))
}

/// Remarks on omitted threads and on the cost of recording system calls.
fn remarks(process: &ProcessFacts, recorded: &Recorded, call: Option<u64>) -> Vec<String> {
    let mut remarks = Vec::new();
    let none = process.real_time().next().is_none();
    match process.real_time_ended {
        0 if none => remarks.push(format!(
            "No thread had a real-time policy in {}: checks of real-time threads were skipped.",
            process.window.spoken()
        )),
        0 => {}
        brief => remarks.push(format!(
            "At least {} ended within {} and could not be checked.",
            several(brief, "thread with a real-time policy", "threads with a real-time policy"),
            process.window.spoken()
        )),
    }
    if process.threads_left_out > 0 {
        let count = several(process.threads_left_out, "thread was", "threads were");
        remarks.push(format!("{count} skipped: at most {MAX_THREADS} are checked, real-time ones first."));
    }
    if process.threads_changed > 0 {
        let count = several(process.threads_changed, "thread", "threads");
        remarks.push(format!("{count} started, ended or changed policy during the check and were skipped."));
    }
    if process.own_numbers == Fact::Known(false) {
        remarks.push("Its system calls have no names: it uses the numbers of another word size.".to_owned());
    }
    match recorded {
        Err(why) => remarks.push(format!("No event was recorded: {why}.")),
        Ok(activity) if activity.lost > 0 => {
            let count = several(activity.lost, "event", "events");
            remarks.push(format!("{count} of the kernel were lost: rare ones may be missing."));
        }
        Ok(_) => {}
    }
    if has_calls(recorded) {
        let longer = |call| format!("{} longer", Nanos(call as i64).spaced());
        let longer = call.map_or("longer".to_owned(), longer);
        remarks.push(format!(
            "While system calls were recorded, each call of the program took {longer}; calls of other \
             processes were slowed down by at most that much."
        ));
    }
    remarks.push(
        "Not visible from outside: locks without waiters, the order of taking locks, caches, the maximum \
         stack depth, and allocations served from the heap's free lists."
            .to_owned(),
    );
    remarks
}
