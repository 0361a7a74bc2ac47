//! Mutexes that are shared with threads of lower priority, without priority inheritance.

use std::collections::{BTreeMap, BTreeSet};

use super::rule::{CheckJudge, CheckRule};
use super::sources::{MUTEX_PROTOCOL3, PI_FUTEX, RTAPP};
use super::view::{ProgramView, WokenBy, enough, rank_words};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_phrases;
use facts::process::ProgramThread;
use facts::process::waits::{Wait, Waits};
use model::text::several;

pub static CHECK: CheckRule = CheckRule {
    id: "lock-without-inheritance",
    title: "a plain lock shared with a thread of lower priority",
    description: "A real-time thread waits for a mutex without priority inheritance that a thread of lower \
                  priority holds, in the same process or in another one that shares the mutex.",
    rationale: "while it waits, any thread with a priority between the two may run instead of the holder for \
                any length of time: unbounded priority inversion",
    detection: "The thread is seen asleep in a futex call as glibc, musl and Rust make it for a plain mutex \
                (FUTEX_WAIT with the value of a contended lock), and a thread of lower priority ends that \
                wait, is recorded in the lock as its holder, or, in the same process, waits for the same \
                lock. A lock for which no thread waits while onbeat samples is not seen.",
    wanted: "shared locks have priority inheritance, or no lock is shared",
    fix: "create the mutex with PTHREAD_PRIO_INHERIT (pthread_mutexattr_setprotocol), or share the data \
          without a lock",
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
        fires: "wait 101 futex 5500c0a0,80,2 times=9\nthread 102 comm=logger policy=other\n\
                release 101 102 times=9",
        silent: "wait 101 futex 5500c0a0,86,0 times=9\nthread 102 comm=logger policy=other\n\
                 release 101 102 times=9",
        unknown: "waits 101 refused",
    },
};

/// FUTEX_WAIT, FUTEX_WAIT_BITSET and the mask of commands (include/uapi/linux/futex.h).
const FUTEX_WAIT: u64 = 0;
const FUTEX_WAIT_BITSET: u64 = 9;
const COMMAND: u64 = 0x7f;
/// FUTEX_LOCK_PI, FUTEX_WAIT_REQUEUE_PI and FUTEX_LOCK_PI2.
const LOCK_PI: [u64; 3] = [6, 11, 13];
/// Value of a contended lock: glibc's (`lll_lock`) and Rust's.
const CONTENDED: u64 = 2;
/// FUTEX_WAITERS above the holder's thread ID: glibc's robust mutexes, and musl's of all types but
/// the normal one, which has EBUSY in place of the ID.
const WAITERS: u64 = 1 << 31;
const HOLDER: u64 = (1 << 30) - 1;
const EBUSY: u64 = 16;

/// A lock without priority inheritance that a thread waits for.
#[derive(Clone, Copy)]
struct PlainLock {
    address: u64,
    /// Thread that holds it, if the lock contains its ID.
    holder: Option<u32>,
}

/// The plain lock that a wait is for.
fn plain_lock(program: &ProgramView, wait: &Wait) -> Option<PlainLock> {
    let [address, op, value, ..] = wait.args;
    let command = op? & COMMAND;
    // The value is an int, and may have been extended with its sign.
    let (address, value) = (address?, value? & 0xffff_ffff);
    let lock = |holder| Some(PlainLock { address, holder });
    match value {
        CONTENDED if matches!(command, FUTEX_WAIT | FUTEX_WAIT_BITSET) => lock(None),
        // Other values have this bit, too, such as a parked Rust thread's: the holder has to exist.
        _ if command == FUTEX_WAIT && value & WAITERS != 0 => match value & HOLDER {
            EBUSY => lock(None),
            tid => lock(program.threads_seen().map(|holder| holder.tid).find(|own| u64::from(*own) == tid))
                .filter(|lock| lock.holder.is_some()),
        },
        _ => None,
    }
}

/// Plain locks that a thread was seen to wait for, with the number of observations.
fn locks(program: &ProgramView, waits: &Waits) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    for (wait, times) in waits.in_call("futex") {
        if let Some(lock) = plain_lock(program, wait) {
            *found.entry(lock.address).or_default() += times;
        }
    }
    // The value of a condition variable's futex increases; that of a contended lock stays.
    let counts = |address: &u64| {
        let same = waits.in_call("futex").filter(|(wait, _)| wait.args[0] == Some(*address));
        let values: BTreeSet<_> = same
            .filter(|(wait, _)| plain_lock(program, wait).is_none_or(|lock| lock.holder.is_none()))
            .map(|(wait, _)| wait.args[2])
            .collect();
        values.len() > 1
    };
    found.retain(|address, _| !counts(address));
    found
}

fn is_inherited(wait: &Wait) -> bool {
    wait.args[1].is_some_and(|op| LOCK_PI.contains(&(op & COMMAND)))
}

/// True if a futex is waited for as a message, rather than a lock.
pub fn is_message(program: &ProgramView, wait: &Wait) -> bool {
    wait.args[1].is_some() && !is_inherited(wait) && plain_lock(program, wait).is_none()
}

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let waits = program.waits(thread)?;
    let own = locks(program, waits);
    if own.is_empty() {
        enough(waits)?;
        return Ok(Judgement::pass(format!(
            "it waited for no plain lock in {}",
            several(waits.looks(), "sample", "samples")
        )));
    }
    let at = own.iter().map(|(address, times)| {
        let place = program.process.place(*address);
        let place = if place.is_empty() { format!("{address:#x}") } else { place };
        format!("{place} ({times} of {} samples)", waits.looks())
    });
    let at = truncate_phrases(at);
    let released = program.released_by(thread);
    let sharers = sharers(program, thread, &own, released.as_deref().unwrap_or_default());
    if !sharers.is_empty() {
        let sharers = truncate_phrases(sharers);
        return Ok(Judgement::fail(format!("it waited for a plain lock at {at}; {sharers}")));
    }
    let given = released?.iter().any(|(wait, _)| is_of(program, wait, &own));
    let gone = program.released_by_gone(thread).any(|wait| is_of(program, wait, &own));
    match (given, gone) {
        (true, false) => Ok(Judgement::pass(format!(
            "no thread of lower priority was seen to hold the plain locks at \
                                        {at}"
        ))),
        (_, true) => Err(Judgement::unknown(format!(
            "it waited for a plain lock at {at}; the thread that released it has ended, and its priority is \
             not known"
        ))),
        (false, false) => Err(Judgement::unknown(format!(
            "it waited for a plain lock at {at}; the thread that released it was not seen: use a longer \
             window (-D)"
        ))),
    }
}

/// True if a wait is for one of some locks.
fn is_of(program: &ProgramView, wait: &Wait, own: &BTreeMap<u64, u64>) -> bool {
    plain_lock(program, wait).is_some_and(|lock| own.contains_key(&lock.address))
}

/// Threads of lower priority that also use the locks, with the evidence.
fn sharers(
    program: &ProgramView,
    thread: &ProgramThread,
    own: &BTreeMap<u64, u64>,
    released: &[(&Wait, WokenBy)],
) -> Vec<String> {
    let holds = |wait: &Wait, tid: u32| {
        plain_lock(program, wait)
            .is_some_and(|lock| own.contains_key(&lock.address) && lock.holder == Some(tid))
    };
    let mut sharers = Vec::new();
    for other in program.threads_seen().filter(|other| !other.kernel && other.rank > thread.rank()) {
        let gave = released.iter().filter(|(wait, by)| by.tid == other.tid && is_of(program, wait, own));
        let gave = gave.map(|(_, waker)| waker.times).sum::<u64>();
        let held = thread.waits.known().into_iter().flat_map(|waits| waits.in_call("futex"));
        let held = held.filter(|(wait, _)| holds(wait, other.tid)).map(|(_, times)| times).sum::<u64>();
        // In another process the same address is another lock.
        let waits = program.process.thread(other.tid).and_then(|other| other.waits.known());
        let waits =
            waits.is_some_and(|waits| locks(program, waits).keys().any(|lock| own.contains_key(lock)));
        let how = match (gave, held, waits) {
            (0, 0, false) => continue,
            (0, 0, true) => "waited for it too".to_owned(),
            (0, held, _) => format!("held it in {}", several(held, "sample", "samples")),
            (gave, ..) => format!("released it {}", several(gave, "time", "times")),
        };
        let whose = if other.own { "" } else { " of another process" };
        sharers.push(format!("{} ({}){whose} {how}", other.comm, rank_words(other.rank)));
    }
    sharers
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::fixture::ExampleProgram;
    use crate::checks::woken_by_lower;
    use crate::judgement::AuditVerdict::{self, Fail, Pass, Unknown};

    fn judgement_of(edits: &str) -> (AuditVerdict, String) {
        let finding = ExampleProgram::of(edits).findings(&CHECK).remove(0).finding;
        let words = if finding.verdict == Unknown { finding.reason } else { finding.value };
        (finding.verdict, words)
    }

    /// A lock that two processes share: FUTEX_WAIT without the private flag.
    const SHARED: &str = "wait 101 futex 7f00c0a0,0,2 times=90";

    #[test]
    fn a_lock_that_another_process_gives_back() {
        let lower = format!("{SHARED}\nother 900 logger other 0 kernel=no\nrelease 101 900 times=90");
        let (verdict, value) = judgement_of(&lower);
        assert_eq!(verdict, Fail, "{value}");
        assert!(value.ends_with("logger (nice 0) of another process released it 90 times"), "{value}");
        let woken = ExampleProgram::of(&lower).findings(&woken_by_lower::CHECK).remove(0).finding;
        assert!(woken.verdict == Pass && woken.value.contains("lock-without-inheritance"), "{woken:?}");
        let higher = format!("{SHARED}\nother 900 logger fifo 90 kernel=no\nrelease 101 900 times=90");
        assert_eq!(judgement_of(&higher).0, Pass);
        let named = "wait 101 futex 7f00c0a0,0,80000384 times=90\nother 900 logger other 0 kernel=no\n\
                     release 101 900 times=90";
        assert_eq!(judgement_of(named).0, Fail, "the lock has the number of its holder in it: 900");
    }

    #[test]
    fn a_lock_whose_holder_was_not_seen_passes_nothing() {
        let (verdict, value) = judgement_of(&format!("{SHARED}\nrelease 101 900 times=90"));
        assert!(verdict == Unknown && value.contains("has ended"), "{value}");
        let (verdict, value) = judgement_of(SHARED);
        assert!(verdict == Unknown && value.contains("use a longer window"), "{value}");
    }
}
