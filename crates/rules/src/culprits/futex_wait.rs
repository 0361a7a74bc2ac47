//! A wait within a cycle for a futex without priority inheritance.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{MUTEX_PROTOCOL3, PI_FUTEX};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "futex-wait",
    title: "a wait for a futex that another thread holds or signals",
    signature: "Within a cycle a followed thread sleeps in the kernel's futex code until another \
                thread wakes it: a mutex that was taken, or a condition that was not yet given.",
    detection: "By the kernel stack at the switch, and the waking, which tells who woke it. A \
                plain mutex and a condition look the same there; `onbeat hunt --syscalls` records \
                which one, and where it lies in the program. Its evidence says how long the one \
                that woke it ran, slept, or was ready without a CPU; the thread that had that CPU \
                is a priority inversion.",
    remedy: "make the mutex one with PTHREAD_PRIO_INHERIT and do less while it is held, or share \
             none with a thread of lower priority; of a condition, look at who gives it and how \
             late that runs; `onbeat check --syscalls` tells which it is. On kernels with \
             FUTEX_PRIVATE_HASH (7.2, 7.3) each new thread may grow the hash of its process's \
             futexes: a program that starts threads while it runs sets the size at its start \
             (prctl, PR_FUTEX_HASH)",
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
