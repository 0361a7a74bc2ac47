//! Threads of higher priority than the interrupt threads that they wait for.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{RT_DIFFERENCES, SCHED7};
use super::view::{ProgramView, rank_words};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_phrases;
use facts::process::ProgramThread;

pub static CHECK: CheckRule = CheckRule {
    id: "above-interrupt-thread",
    title: "a priority above the interrupt that it waits for",
    description: "The thread is woken by the thread of an interrupt (irq/N-NAME) or by a kernel thread whose \
                  priority is below its own.",
    rationale: "what the thread waits for is done at the lower priority: any thread with a priority between \
                the two delays the release, and the thread's own work delays its next release",
    detection: "By the thread that wakes it (sched:sched_waking) and the priority of that thread, which is \
                50 for interrupt threads by default. Workqueues are not included: they serve many users.",
    wanted: "the interrupt's thread has a higher priority than the threads that wait for it",
    fix: "raise the priority of the interrupt's thread above that of the waiting thread (chrt -f -p N TID), \
          or lower the waiting thread",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "kernel: how realtime kernels differ, threaded interrupts", url: RT_DIFFERENCES },
        Source { title: "sched(7)", url: SCHED7 },
    ],
    reads: &["sched:sched_waking"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "other 40 irq/30-can0 fifo 50 kernel=yes\nwaker 101 40 times=500",
        silent: "other 40 irq/30-can0 fifo 90 kernel=yes\nwaker 101 40 times=500",
        unknown: "trace refused",
    },
};

/// Number of wake-ups from which on they form a pattern.
const SEVERAL: u64 = 3;

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let wakers = program.woken_by(thread)?;
    let mut below = wakers
        .iter()
        .filter(|waker| {
            waker.kernel
                && waker.comm.starts_with("irq/")
                && waker.rank > thread.rank()
                && waker.times >= SEVERAL
        })
        .peekable();
    if below.peek().is_none() {
        program.all_wakings(thread)?;
        return Ok(Judgement::pass("no interrupt thread of lower priority wakes it"));
    }
    let named =
        below.map(|waker| format!("{} ({}) {} times", waker.comm, rank_words(waker.rank), waker.times));
    Ok(Judgement::fail(format!(
        "it has {} and is woken by {}",
        rank_words(thread.rank()),
        truncate_phrases(named)
    )))
}
