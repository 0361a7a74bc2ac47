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
        signature: "The late thread, or the thread of the late cycle, sleeps on a lock until a thread of \
                    lower priority releases it; other threads kept that one from running.",
        detection: "By the stack where it slept, the wake-up, and the switches on all CPUs. The rule names \
                    the thread that ran while the holder was runnable; if holders wait for one another, the \
                    last one counts. A plain mutex and a condition look the same in a stack: without `onbeat \
                    hunt --syscalls` the waking thread counts as the holder only if it was running or \
                    runnable when the wait began. No inversion is reported for a pipe, a queue, a known \
                    condition or a mutex with priority inheritance, or if events were lost.",
        remedy: "create the mutex with PTHREAD_PRIO_INHERIT, and share no other mutex between threads of \
                 different priorities",
        kinds: &[SliceKind::PriorityInversion],
        sources: &[
            Source { title: "kernel: lightweight PI-futexes", url: PI_FUTEX },
            Source { title: "sched(7), scheduling policies", url: SCHED7 },
        ],
        evidence: EvidenceKind::Documented,
        provoke: "three threads on one CPU: one of low priority that holds a plain pthread mutex, one of \
                  middle priority that spins, one of high priority that takes the mutex",
        grouping: Grouping::Thread,
        fallback: true,
        matches: |context| {
            let slice = context.slice;
            let evidence = (!slice.evidence.is_empty()).then(|| slice.evidence.clone());
            Some(evidence.unwrap_or_else(|| {
                format!("{} had the CPU instead", names::thread_with_priority(&slice.who))
            }))
        },
        examples: SpikeExamples {
            fires: "priority-inversion ns=20000000 comm=low prio=98",
            silent: "thread ns=20000000 comm=low prio=98",
        },
        ..CulpritRule::DEFAULT
    };
