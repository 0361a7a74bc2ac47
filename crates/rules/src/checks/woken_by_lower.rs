//! Wake-ups by threads of lower priority.

use std::collections::BTreeSet;

use super::lock_without_inheritance::is_message;
use super::rule::{CheckJudge, CheckRule};
use super::sources::RTAPP;
use super::view::{ProgramView, WokenBy, rank_words};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_phrases;
use facts::process::ProgramThread;
use facts::process::waits::Wait;

pub static CHECK: CheckRule = CheckRule {
    id: "woken-by-lower",
    title: "a release by a thread of lower priority",
    description: "A real-time thread waits on a condition variable, a pipe or a semaphore for a thread of \
                  lower priority.",
    rationale: "the release is as late as the releasing thread, which any thread with a priority between the \
                two delays; priority is inherited only through a mutex with PTHREAD_PRIO_INHERIT, not \
                through a message, a semaphore, a read-write lock or a user-defined lock",
    detection: "By the thread that wakes it (sched:sched_waking) and the call that it slept in \
                (/proc/PID/task/TID/syscall): each sample of the sleeping thread is matched with the next \
                wake-up. Calls that wait for other threads count: a futex that is not a lock, read, poll, \
                epoll, recv. Interrupts and kernel threads are not included. A thread that only forwards a \
                message looks the same as the one that is waited for, and a lock that is not a mutex looks \
                like a message.",
    wanted: "releases come from timers, interrupts, or threads of the same or a higher priority",
    fix: "give the releasing thread a priority of at least the waiting one, or let the waiting thread poll \
          for messages once per period; if it is a lock, use a mutex with PTHREAD_PRIO_INHERIT",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[Source { title: "kernel: real-time application monitors, sleep", url: RTAPP }],
    reads: &["sched:sched_waking", "/proc/PID/task/TID/syscall"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 102 comm=planner policy=other\nwaker 101 102 times=500\n\
                wait 101 futex 7f00,80,0 times=90\nrelease 101 102 times=90",
        silent: "thread 102 comm=planner policy=other\nwaker 101 102 times=500\n\
                 wait 101 futex 7f00,86,0 times=90\nrelease 101 102 times=90",
        unknown: "trace refused",
    },
};

/// Number of wake-ups from which on they form a loop; fewer are part of a start or an end.
const SEVERAL: u64 = 3;

/// Calls that wait for other threads or processes.
const WAITS: &[&str] =
    &["accept4", "epoll_pwait", "epoll_wait", "futex", "poll", "ppoll", "read", "recvfrom", "recvmsg"];

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let lower = |waker: &WokenBy| !waker.kernel && waker.rank > thread.rank();
    let wakers = program.woken_by(thread)?;
    let below: Vec<&WokenBy> = wakers.iter().filter(|waker| lower(waker) && waker.times >= SEVERAL).collect();
    if below.is_empty() {
        program.all_wakings(thread)?;
        return Ok(Judgement::pass("no program of lower priority wakes it"));
    }
    program.waits(thread)?;
    let released = program.released_by(thread)?;
    let message =
        |wait: &Wait| WAITS.contains(&wait.call) && (wait.call != "futex" || is_message(program, wait));
    let seen = |waker: &WokenBy, messages: bool| {
        let own = released.iter().filter(|(wait, by)| by.tid == waker.tid && message(wait) == messages);
        own.map(|(_, by)| by.times).sum::<u64>()
    };
    let named = |waker: &&WokenBy| {
        let whose = if waker.own { "" } else { " of another process" };
        format!("{} ({}){whose} {} times", waker.comm, rank_words(waker.rank), waker.times)
    };
    let gives: Vec<&WokenBy> = below.iter().copied().filter(|waker| seen(waker, true) > 0).collect();
    if !gives.is_empty() {
        let calls: BTreeSet<&str> = released
            .iter()
            .filter(|(wait, by)| lower(by) && message(wait))
            .map(|(wait, _)| wait.call)
            .collect();
        // Read-write locks, semaphores and conditions wait in the same call.
        let words = |call: &str| match call {
            "futex" => "futex (a message, or a lock other than a mutex)".to_owned(),
            call => call.to_owned(),
        };
        let calls = truncate_phrases(calls.into_iter().map(words));
        return Ok(Judgement::fail(format!(
            "woken out of {calls} by {}",
            truncate_phrases(gives.iter().map(named))
        )));
    }
    // A thread that releases a lock wakes a thread, too.
    if below.iter().all(|waker| seen(waker, false) > 0) {
        return Ok(Judgement::pass(
            "threads of lower priority only release locks for it: see lock-without-inheritance",
        ));
    }
    Err(Judgement::unknown(format!(
        "woken by {}; the call in which it waited was not seen",
        truncate_phrases(below.iter().map(named))
    )))
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::fixture::ExampleProgram;
    use crate::judgement::AuditVerdict;

    /// A read-write lock of glibc waits by FUTEX_WAIT_BITSET with 3, a condition with a count.
    #[test]
    fn what_may_be_a_lock_is_not_called_a_message() {
        let lower = "thread 102 comm=logger policy=other\nwaker 101 102 times=90\n";
        let edits = format!("{lower}wait 101 futex 7f00,189,3,0 times=90\nrelease 101 102 times=90");
        let finding = ExampleProgram::of(&edits).findings(&CHECK).remove(0).finding;
        assert_eq!(finding.verdict, AuditVerdict::Fail);
        assert!(finding.value.contains("or a lock other than a mutex"), "{}", finding.value);
        assert!(!finding.reason.contains("nobody holds"), "{}", finding.reason);
    }
}
