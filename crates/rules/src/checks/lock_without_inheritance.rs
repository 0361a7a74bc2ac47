//! Mutexes that are shared with threads of lower priority, without priority inheritance.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::{CheckJudge, CheckRule};
use super::sources::{MUTEX_PROTOCOL3, PI_FUTEX, RTAPP};
use super::view::{ProgramView, rank_words};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_words;
use facts::process::ProgramThread;
use facts::process::waits::{Wait, Waits};
use model::text::several;

pub static CHECK: CheckRule = CheckRule {
    id: "lock-without-inheritance",
    title: "a plain lock shared with a lower priority",
    description: "A real-time thread waits for a mutex without priority inheritance that a thread of lower \
                  priority of the same process holds.",
    rationale: "while it waits, any thread of a priority between the two may run instead of the holder, for \
                as long as it likes: a priority inversion without bound",
    detection: "The thread is seen asleep in a futex call as C libraries make it for a plain mutex \
                (FUTEX_WAIT with the value of a contended lock), and a thread of lower priority of the \
                process wakes it, or waits for the same lock. A lock that nobody waits for while onbeat \
                looks does not show.",
    wanted: "locks with priority inheritance, or none that both share",
    fix: "give the mutex PTHREAD_PRIO_INHERIT (pthread_mutexattr_setprotocol), or share the data without a \
          lock",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "kernel: real-time application monitors, sleep", url: RTAPP },
        Source { title: "kernel: futexes with priority inheritance", url: PI_FUTEX },
        Source { title: "pthread_mutexattr_setprotocol(3p)", url: MUTEX_PROTOCOL3 },
    ],
    reads: &["/proc/PID/task/TID/syscall", "sched:sched_waking"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "wait 101 futex 5500c0a0,80,2 times=9\nthread 102 comm=logger policy=other\nwaker 101 102 times=40",
        silent: "wait 101 futex 5500c0a0,86,0 times=9\nthread 102 comm=logger policy=other\nwaker 101 102 times=40",
        unknown: "waits 101 refused",
    },
    ..CheckRule::DEFAULT
};

/// FUTEX_WAIT, FUTEX_WAIT_BITSET and the mask of commands (include/uapi/linux/futex.h).
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
const COMMAND: u64 = 0x7f;
/// FUTEX_LOCK_PI, FUTEX_WAIT_REQUEUE_PI and FUTEX_LOCK_PI2.
const LOCK_PI: [u64; 3] = [6, 11, 13];
/// The marks of a lock that others wait for: glibc's and Rust's, and musl's.
const CONTENDED: u64 = 2;
const MUSL_WAITERS: u64 = 1 << 31;

/// The address of the plain lock that a wait is for.
fn plain_lock(wait: &Wait) -> Option<u64> {
    let [address, op, value, ..] = wait.args;
    let plain = matches!(op? & COMMAND, FUTEX_WAIT | FUTEX_WAIT_BITSET);
    // The value is an int, and may have been extended with its sign.
    let value = value? & 0xffff_ffff;
    (plain && (value == CONTENDED || value & MUSL_WAITERS != 0)).then_some(address?)
}

/// The plain locks that a thread was seen to wait for, with how often.
fn locks(waits: &Waits) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    for (wait, times) in waits.in_call("futex") {
        if let Some(address) = plain_lock(wait) {
            *found.entry(address).or_default() += times;
        }
    }
    // What a condition variable waits with counts up; a lock's mark stays.
    let other = |address: &u64| {
        let same = waits.in_call("futex").filter(|(wait, _)| wait.args[0] == Some(*address));
        same.map(|(wait, _)| wait.args[2]).collect::<BTreeSet<_>>().len() > 1
    };
    found.retain(|address, _| !other(address));
    found
}

/// Whether a thread was seen to wait for a lock, plain or with inheritance.
pub fn waits_for_lock(program: &ProgramView, thread: &ProgramThread) -> bool {
    let inherits = |waits: &Waits| waits.in_call("futex").any(|(wait, _)| is_inherited(wait));
    program.waits(thread).is_ok_and(|waits| !locks(waits).is_empty() || inherits(waits))
}

fn is_inherited(wait: &Wait) -> bool {
    wait.args[1].is_some_and(|op| LOCK_PI.contains(&(op & COMMAND)))
}

/// Whether a futex is waited for as a message, and not as a lock.
pub fn is_message(wait: &Wait) -> bool {
    wait.args[1].is_some() && !is_inherited(wait) && plain_lock(wait).is_none()
}

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let waits = program.waits(thread)?;
    let own = locks(waits);
    if own.is_empty() {
        return Ok(Judgement::pass(format!(
            "it waited for no plain lock at {}",
            several(waits.looks(), "look", "looks")
        )));
    }
    let mut sharers: Vec<String> = Vec::new();
    let lower = |rank: i64| rank > thread.rank();
    let wakers = program.woken_by(thread);
    for waker in wakers.iter().flatten().filter(|waker| waker.own && lower(waker.rank)) {
        sharers.push(format!(
            "{} ({}) woke it {}",
            waker.comm,
            rank_words(waker.rank),
            several(waker.times, "time", "times")
        ));
    }
    for other in program.process.threads.iter().filter(|other| lower(other.rank())) {
        let shares =
            other.waits.known().is_some_and(|waits| locks(waits).keys().any(|lock| own.contains_key(lock)));
        if shares {
            sharers.push(format!("{} ({}) waited for it too", other.comm, rank_words(other.rank())));
        }
    }
    let at = own.iter().map(|(address, times)| {
        let place = program.process.place(*address);
        format!(
            "{} ({times} of {} looks)",
            if place.is_empty() { format!("{address:#x}") } else { place },
            waits.looks()
        )
    });
    let at = truncate_words(at);
    if sharers.is_empty() {
        wakers?;
        return Ok(Judgement::pass(format!(
            "the plain locks that it waits for are held by no lower priority: {at}"
        )));
    }
    Ok(Judgement::fail(format!("it waited for a plain lock at {at}; {}", truncate_words(sharers))))
}
