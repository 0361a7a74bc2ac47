//! A wait within a cycle for a mutex with priority inheritance.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{PI_FUTEX, RT_MUTEX_DESIGN};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "inheriting-lock-wait",
    title: "a wait for a mutex with priority inheritance",
    signature: "Within a cycle a followed thread sleeps on a mutex with PTHREAD_PRIO_INHERIT until its \
                holder releases it, a time-out expires, or a signal arrives; while the holder runs on \
                another CPU, the thread spins instead.",
    detection: "By the call futex_lock_pi in the kernel stack at the switch. The waking thread was the \
                holder if it returned an inherited priority right before (sched_pi_setprio); after a \
                time-out, a signal, or with a holder of the same priority no holder is named. A spinning \
                thread has lent its priority to the holder and keeps its CPU until the holder returns it. \
                The holder ran with the waiting thread's priority: the time was lost in its critical \
                section, in a wait inside it, or to a thread above both.",
    remedy: "do less while holding the mutex, and nothing that waits: no file, no log, no other lock; or \
             pass the data without a lock",
    kinds: &[SliceKind::Blocked],
    sources: &[
        Source { title: "kernel: futexes with priority inheritance", url: PI_FUTEX },
        Source { title: "kernel: the design of rt-mutexes, priority inheritance", url: RT_MUTEX_DESIGN },
    ],
    evidence: EvidenceKind::Documented,
    provoke: "a thread that computes while it holds a mutex with PTHREAD_PRIO_INHERIT which the \
              followed thread takes in each cycle",
    grouping: Grouping::OwnName,
    matches: |context| {
        let function = names::bare_function(&context.slice.who.function).trim_start_matches('_');
        matches!(function, "futex_lock_pi" | names::SPINS).then(|| context.slice.evidence.clone())
    },
    examples: SpikeExamples {
        fires: "blocked ns=9000000 comm=logger pid=812 prio=19 function=futex_lock_pi \
                evidence=a_lock_with_priority_inheritance,_released_by_logger:812",
        silent: "blocked ns=9000000 comm=logger pid=812 prio=19 function=futex_do_wait \
                 evidence=futex",
    },
    ..CulpritRule::DEFAULT
};
