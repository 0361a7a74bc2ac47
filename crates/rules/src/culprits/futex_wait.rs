//! A wait within a cycle for a futex without priority inheritance.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{MUTEX_PROTOCOL3, PI_FUTEX};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "futex-wait",
    title: "a wait for a futex that another thread holds or signals",
    signature: "Within a cycle a followed thread sleeps in the kernel's futex code until another thread \
                wakes it: on a mutex that is held, or a condition that is not yet signalled.",
    detection: "By the kernel stack at the switch, and the wake-up, which names the waking thread. A plain \
                mutex and a condition look the same there; `onbeat hunt --syscalls` records which of the two \
                it is, and its address in the program. The evidence shows how long the waking thread ran, \
                slept, or was runnable without a CPU; the thread that had that CPU is a priority inversion.",
    remedy: "create the mutex with PTHREAD_PRIO_INHERIT and do less while holding it, or share no mutex with \
             a thread of lower priority; for a condition, see which thread signals it and how late that \
             thread runs; `onbeat check --syscalls` shows which of the two it is. On kernels with \
             FUTEX_PRIVATE_HASH (7.2, 7.3) each new thread may grow the futex hash of its process: a program \
             that starts threads while it runs should set the size at its start (prctl, PR_FUTEX_HASH)",
    kinds: &[SliceKind::Blocked],
    sources: &[
        Source { title: "pthread_mutexattr_setprotocol(3p)", url: MUTEX_PROTOCOL3 },
        Source { title: "kernel: futexes with priority inheritance", url: PI_FUTEX },
    ],
    evidence: EvidenceKind::Documented,
    provoke: "a thread of nice 19 that computes while it holds a plain mutex which the followed \
              thread takes in each cycle",
    grouping: Grouping::OwnName,
    matches: |context| {
        let function = names::bare_function(&context.slice.who.function).trim_start_matches('_');
        let waits = function.starts_with("futex_") && function != "futex_lock_pi";
        waits.then(|| context.slice.evidence.clone())
    },
    examples: SpikeExamples {
        fires: "blocked ns=9000000 comm=logger pid=812 prio=120 function=futex_do_wait \
                evidence=futex,_woken_by_logger:812",
        silent: "blocked ns=9000000 comm=logger pid=812 prio=120 function=futex_lock_pi \
                 evidence=a_lock",
    },
    ..CulpritRule::DEFAULT
};
