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
    title: "a plain lock shared with a lower priority",
    description: "A real-time thread waits for a mutex without priority inheritance that a thread of lower \
                  priority of the same process holds.",
    rationale: "while it waits, any thread of a priority between the two may run instead of the holder, for \
                as long as it likes: a priority inversion without bound",
    detection: "The thread is seen asleep in a futex call as glibc, musl and Rust make it for a plain mutex \
                (FUTEX_WAIT with the value of a contended lock), and a thread of lower priority of the \
                process ends that very wait, is named in the lock as its holder, or waits for the same \
                lock. A lock that nobody waits for while onbeat looks does not show.",
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
/// The mark of a lock that others wait for: glibc's (`lll_lock`) and Rust's.
const CONTENDED: u64 = 2;
/// FUTEX_WAITERS above the holder's number: glibc's robust mutexes, and musl's of all types but the
/// normal one, which has EBUSY in its place.
const WAITERS: u64 = 1 << 31;
const HOLDER: u64 = (1 << 30) - 1;
const EBUSY: u64 = 16;

/// A plain lock that is waited for.
#[derive(Clone, Copy)]
struct PlainLock {
    address: u64,
    /// The thread that holds it, where the lock names it.
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
        // Other words have this bit, too, a parked Rust thread's for one: the holder has to be one.
        _ if command == FUTEX_WAIT && value & WAITERS != 0 => match value & HOLDER {
            EBUSY => lock(None),
            tid => lock(program.process.thread(tid as u32).map(|holder| holder.tid))
                .filter(|lock| lock.holder.is_some()),
        },
        _ => None,
    }
}

/// The plain locks that a thread was seen to wait for, with how often.
fn locks(program: &ProgramView, waits: &Waits) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    for (wait, times) in waits.in_call("futex") {
        if let Some(lock) = plain_lock(program, wait) {
            *found.entry(lock.address).or_default() += times;
        }
    }
    // What a condition variable waits with counts up; a lock's mark stays.
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

/// Whether a futex is waited for as a message, and not as a lock.
pub fn is_message(program: &ProgramView, wait: &Wait) -> bool {
    wait.args[1].is_some() && !is_inherited(wait) && plain_lock(program, wait).is_none()
}

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let waits = program.waits(thread)?;
    let own = locks(program, waits);
    if own.is_empty() {
        enough(waits)?;
        return Ok(Judgement::pass(format!(
            "it waited for no plain lock at {}",
            several(waits.looks(), "look", "looks")
        )));
    }
    let at = own.iter().map(|(address, times)| {
        let place = program.process.place(*address);
        let place = if place.is_empty() { format!("{address:#x}") } else { place };
        format!("{place} ({times} of {} looks)", waits.looks())
    });
    let at = truncate_phrases(at);
    let released = program.released_by(thread);
    let sharers = sharers(program, thread, &own, released.as_deref().unwrap_or_default());
    if sharers.is_empty() {
        released?;
        return Ok(Judgement::pass(format!("no lower priority was seen to hold the plain locks at {at}")));
    }
    Ok(Judgement::fail(format!("it waited for a plain lock at {at}; {}", truncate_phrases(sharers))))
}

/// The threads of lower priority that have the locks, too, and how that shows.
fn sharers(
    program: &ProgramView,
    thread: &ProgramThread,
    own: &BTreeMap<u64, u64>,
    released: &[(&Wait, WokenBy)],
) -> Vec<String> {
    let lock_of = |wait: &Wait| plain_lock(program, wait).filter(|lock| own.contains_key(&lock.address));
    let mut sharers = Vec::new();
    for other in program.process.threads.iter().filter(|other| other.rank() > thread.rank()) {
        let gave = released.iter().filter(|(wait, waker)| waker.tid == other.tid && lock_of(wait).is_some());
        let gave = gave.map(|(_, waker)| waker.times).sum::<u64>();
        let held = thread.waits.known().into_iter().flat_map(|waits| waits.in_call("futex"));
        let held = held.filter(|(wait, _)| lock_of(wait).is_some_and(|lock| lock.holder == Some(other.tid)));
        let held = held.map(|(_, times)| times).sum::<u64>();
        let waits = other.waits.known();
        let waits =
            waits.is_some_and(|waits| locks(program, waits).keys().any(|lock| own.contains_key(lock)));
        let how = match (gave, held, waits) {
            (0, 0, false) => continue,
            (0, 0, true) => "waited for it too".to_owned(),
            (0, held, _) => format!("held it at {}", several(held, "look", "looks")),
            (gave, ..) => format!("gave it back {}", several(gave, "time", "times")),
        };
        sharers.push(format!("{} ({}) {how}", other.comm, rank_words(other.rank())));
    }
    sharers
}
