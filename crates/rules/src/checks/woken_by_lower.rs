//! Releases that come from threads of lower priority.

use super::lock_without_inheritance::{is_message, waits_for_lock};
use super::rule::{CheckJudge, CheckRule};
use super::sources::RTAPP;
use super::view::{ProgramView, rank_words};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_words;
use facts::process::ProgramThread;

pub static CHECK: CheckRule = CheckRule {
    id: "woken-by-lower",
    title: "a release by a thread of lower priority",
    description: "A real-time thread waits, by a condition variable, a pipe or a semaphore, for something \
                  that a thread of lower priority does.",
    rationale: "the release is as late as the thread that gives it, which anything of a priority between \
                the two delays; no inheritance helps, because nobody holds what is waited for",
    detection: "By who wakes it (sched:sched_waking), where the thread is seen asleep in a call that waits \
                for others: a futex that is no lock, read, poll, epoll, recv. Interrupts and threads of \
                the kernel are left out, and so are its own process's threads where it is seen to wait for \
                a lock (lock-without-inheritance): those wake it too. A thread that only passes a message \
                on looks the same as one that is waited for.",
    wanted: "releases by timers, interrupts, or threads of its priority or above",
    fix: "give the releasing thread a priority of at least the waiting one, or have the waiting thread \
          look for messages at its own period",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[Source { title: "kernel: real-time application monitors, sleep", url: RTAPP }],
    reads: &["sched:sched_waking", "/proc/PID/task/TID/syscall"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 102 comm=planner policy=other\nwaker 101 102 times=500\nwait 101 futex 7f00,80,0 times=90",
        silent: "thread 102 comm=planner policy=other\nwaker 101 102 times=500\nwait 101 futex 7f00,86,0 times=90",
        unknown: "trace refused",
    },
    ..CheckRule::DEFAULT
};

/// A few are a start, or an end.
const SEVERAL: u64 = 3;

/// Calls that wait for what others do.
const WAITS: &[&str] =
    &["accept4", "epoll_pwait", "epoll_wait", "futex", "poll", "ppoll", "read", "recvfrom", "recvmsg"];

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let wakers = program.woken_by(thread)?;
    let locked = waits_for_lock(program, thread);
    let below = wakers.iter().filter(|waker| {
        !waker.kernel && !(locked && waker.own) && waker.rank > thread.rank() && waker.times >= SEVERAL
    });
    let named = below.map(|waker| {
        let whose = if waker.own { "" } else { " of another process" };
        format!("{} ({}){whose} {} times", waker.comm, rank_words(waker.rank), waker.times)
    });
    let named = truncate_words(named);
    if named.is_empty() {
        return Ok(Judgement::pass("no program below it wakes it"));
    }
    // Whoever gives a lock back wakes a thread, too, and a lock may be waited for too shortly to show.
    let waits = program.waits(thread)?;
    if !WAITS.iter().any(|call| waits.in_call(call).any(|(wait, _)| *call != "futex" || is_message(wait))) {
        return Err(Judgement::unknown(format!(
            "woken by {named}; in which call it waits then was not seen"
        )));
    }
    Ok(Judgement::fail(format!("woken by {named}")))
}
