//! A wait within a cycle for a mutex with priority inheritance.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{PI_FUTEX, RT_MUTEX_DESIGN};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "inheriting-lock-wait",
    title: "a wait for a mutex with priority inheritance",
    signature: "Within a cycle a followed thread sleeps for a mutex with PTHREAD_PRIO_INHERIT \
                until its holder gives it free, \
                its time is out, or a signal comes; while the holder runs on another CPU it spins \
                for it instead.",
    detection: "By the call futex_lock_pi in the kernel stack at the switch. Who woke the thread \
                was the holder if it gave an inherited priority back right before \
                (sched_pi_setprio); a time-out, a signal and a holder of the same priority show \
                none, and no holder is named then. One that spins has lent its priority to the \
                holder and is not switched away from until that one gives it back. The holder ran \
                with the waiting thread's priority: what took its time was its section, a wait of \
                its own within it, or a thread above both.",
    remedy: "do less while the mutex is held, and nothing that waits: no file, no log, no other \
             lock; or hand the data over without a lock",
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
