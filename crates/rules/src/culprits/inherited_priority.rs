//! A thread that runs before the one that woke late by an inherited priority.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{PI_FUTEX, RT_MUTEX_DESIGN};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "inherited-priority",
    title: "a thread with an inherited priority",
    signature: "Between the wake-up and the switch to the late thread another thread runs whose base \
                priority is lower: it holds a lock that a thread of higher priority waits for, and has the \
                priority of that thread until it releases the lock.",
    detection: "By the priority in the switch and the event sched_pi_setprio, which shows when a priority is \
                inherited and returned; the thread that lent it is known if that thread itself started to \
                wait in the recording. Inheritance works as intended here: without it the thread above would \
                wait longer.",
    remedy: "do less under the lock, or share no lock between that thread and one above the task with the \
             deadline",
    kinds: &[SliceKind::Thread, SliceKind::Workqueue],
    sources: &[
        Source { title: "kernel: the design of rt-mutexes, priority inheritance", url: RT_MUTEX_DESIGN },
        Source { title: "a priority inversion", url: PI_FUTEX },
    ],
    evidence: EvidenceKind::Documented,
    provoke: "a fair thread that spins while it holds a mutex with PTHREAD_PRIO_INHERIT, a thread \
              above the victim that waits for it, all on the victim's CPU",
    grouping: Grouping::Thread,
    matches: |context| {
        let from = context.slice.who.inherited_from.as_ref()?;
        let first = context.higher_priority_thread()?;
        Some(match from.comm.as_str() {
            "" => format!("{first}, by a priority that it had inherited"),
            comm => format!("{first}, by the priority of {comm}"),
        })
    },
    examples: SpikeExamples {
        fires: "victim comm=onbeat prio=19\nthread ns=20000000 comm=logger pid=812 prio=9 \
                inherits=vision",
        silent: "victim comm=onbeat prio=19\nthread ns=20000000 comm=logger pid=812 prio=9",
    },
    ..CulpritRule::DEFAULT
};
