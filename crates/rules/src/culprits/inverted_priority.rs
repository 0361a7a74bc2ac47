//! A thread of lower priority that holds the lock for which the late thread waits.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{PI_FUTEX, SCHED7};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule =
    CulpritRule {
        id: "inverted-priority",
        title: "a priority inversion",
        signature: "The thread that came late, or whose cycle did, sleeps for a lock until a thread \
                    of lower priority gives it free, which others kept from running in between.",
        detection: "By the stack where it slept, the waking, and the switches on all CPUs. Who ran \
                    while the holder was ready and did not run is named; of holders that wait for \
                    one another, the last one counts. A plain mutex and a condition look the same \
                    in a stack: without `onbeat hunt --syscalls` the one that woke the thread \
                    counts as a holder only if it was at work when the wait began. Of a pipe, a \
                    queue, a condition that is known to be one, a mutex with priority inheritance \
                    and where events were lost, no inversion is claimed.",
        remedy: "give the mutex the protocol PTHREAD_PRIO_INHERIT, and share none without it \
                 between threads of different priority",
        kinds: &[SliceKind::PriorityInversion],
        sources: &[
            Source { title: "kernel: lightweight PI-futexes", url: PI_FUTEX },
            Source { title: "sched(7), scheduling policies", url: SCHED7 },
        ],
        evidence: EvidenceKind::Documented,
        provoke: "three threads on one CPU: a low one that holds a plain pthread mutex, a middle \
                  one that spins, a high one that takes the mutex",
        grouping: Grouping::Thread,
        fallback: true,
        matches: |context| {
            let slice = context.slice;
            let told = (!slice.evidence.is_empty()).then(|| slice.evidence.clone());
            Some(told.unwrap_or_else(|| {
                format!("{} had the CPU meanwhile", names::thread_with_priority(&slice.who))
            }))
        },
        examples: SpikeExamples {
            fires: "priority-inversion ns=20000000 comm=low prio=98",
            silent: "thread ns=20000000 comm=low prio=98",
        },
        ..CulpritRule::DEFAULT
    };
