//! A thread of lower priority holds what the one that woke late waits for.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{PI_FUTEX, SCHED7};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule =
    CulpritRule {
        id: "inverted-priority",
        title: "a priority inversion",
        signature: "The thread that came late sleeps, and is woken at last by a thread of lower \
                    priority, which others kept from running in between.",
        detection: "By the waking: it comes from a thread of lower priority, and not from a timer \
                    or an interrupt. Who ran while that one was ready and did not run is named, \
                    and so is that one itself while it held what was waited for. What it held, a \
                    lock or a promise, is not told.",
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
