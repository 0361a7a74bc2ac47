//! Calls that a loop should avoid.

use super::rule::{CheckJudge, CheckRule};
use super::sources::RTAPP;
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_words;
use facts::process::ProgramThread;

pub static CHECK: CheckRule = CheckRule {
    id: "blocking-calls",
    title: "calls that may block",
    description: "A real-time thread opens or flushes files, creates threads or processes, connects sockets \
                  or configures devices while it works.",
    rationale: "such calls take locks that threads of any priority hold, wait for devices and networks, or \
                interrupt all CPUs",
    detection: "With --syscalls, by the calls themselves (raw_syscalls:sys_enter); without it, by the calls \
                in which the thread is seen asleep. Reads, writes and memory have separate checks.",
    wanted: "none in the loop",
    fix: "make these calls before the loop, or in a thread without a real-time policy",
    severity: Severity::Medium,
    evidence: EvidenceKind::Practice,
    sources: &[Source { title: "kernel: real-time application monitors", url: RTAPP }],
    reads: &["raw_syscalls:sys_enter", "/proc/PID/task/TID/syscall"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "wait 101 fsync 3 times=4",
        silent: "call 101 clock_nanosleep 1,1 times=500",
        unknown: "",
    },
};

const CALLS: &[&str] = &[
    "accept4",
    "clone",
    "clone3",
    "connect",
    "execve",
    "fdatasync",
    "fork",
    "fsync",
    "membarrier",
    "msync",
    "open",
    "openat",
    "sched_setaffinity",
    "socket",
    "vfork",
];

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    if let Some(calls) = program.calls(thread) {
        let names = calls.words(CALLS);
        return if !names.is_empty() {
            Ok(Judgement::fail(format!("it called {names} in {}", thread.window.spoken())))
        } else if calls.complete {
            Ok(Judgement::pass(format!("none in {}", thread.window.spoken())))
        } else {
            Err(Judgement::unknown("events were lost, and a rare call may be among them"))
        };
    }
    let waits = program.waits(thread)?;
    let seen = CALLS.iter().filter_map(|call| {
        let times = waits.in_call(call).map(|(_, times)| times).sum::<u64>();
        (times > 0).then(|| format!("{call} at {times} of {} samples", waits.looks()))
    });
    let names = truncate_words(seen);
    if names.is_empty() {
        return Err(
            program.needs_calls("it was asleep in none of them; calls that did not sleep are not seen")
        );
    }
    Ok(Judgement::fail(format!("it slept in {names}")))
}
