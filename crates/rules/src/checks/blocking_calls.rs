//! Calls that a loop does without.

use super::rule::{CheckJudge, CheckRule};
use super::sources::RTAPP;
use super::view::{ProgramView, needs_calls};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_words;
use facts::process::ProgramThread;
use model::text::several;

pub static CHECK: CheckRule = CheckRule {
    id: "blocking-calls",
    title: "calls that wait for others",
    description: "A real-time thread opens or flushes files, makes threads or processes, connects or \
                  configures devices while it works.",
    rationale: "such calls take locks that threads of any priority hold, wait for devices and networks, or \
                interrupt all CPUs",
    detection: "With --syscalls by the calls themselves (raw_syscalls:sys_enter); without, by the calls in \
                which the thread is seen asleep. Reading, writing and memory have checks of their own.",
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
    ..CheckRule::DEFAULT
};

const CALLS: &[&str] = &[
    "accept4",
    "clone",
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
    let recorded = program.calls(thread);
    if let Some(calls) = &recorded {
        let sum =
            |name: &str| calls.iter().filter(|(own, ..)| *own == name).map(|(.., times)| times).sum::<u64>();
        let made = CALLS.iter().map(|name| (name, sum(name))).filter(|(_, times)| *times > 0);
        let said =
            truncate_words(made.map(|(name, times)| format!("{name} {}", several(times, "time", "times"))));
        return Ok(match said.is_empty() {
            true => Judgement::pass(format!("none in {}", program.span())),
            false => Judgement::fail(format!("it called {said} in {}", program.span())),
        });
    }
    let waits = program.waits(thread)?;
    let seen = CALLS.iter().filter_map(|call| {
        let times = waits.in_call(call).map(|(_, times)| times).sum::<u64>();
        (times > 0).then(|| format!("{call} at {times} of {} looks", waits.looks()))
    });
    let said = truncate_words(seen);
    if said.is_empty() {
        return Err(needs_calls("it was asleep in none of them, and those that did not wait do not show"));
    }
    Ok(Judgement::fail(format!("it slept in {said}")))
}
