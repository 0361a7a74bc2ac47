//! A thread that took the CPU within a cycle by an inherited priority.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{PI_FUTEX, RT_MUTEX_DESIGN};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "preempted-by-inheritance",
    title: "a thread that preempted with an inherited priority",
    signature: "Within a cycle of a followed thread another thread runs on its CPU whose base priority is \
                lower: it holds a lock that a thread of higher priority waits for.",
    detection: "By the priority in the switch and the event sched_pi_setprio, which shows when a priority is \
                inherited and returned. Inheritance works as intended here: without it the thread above \
                would wait longer.",
    remedy: "do less under the lock, or share no lock between that thread and one above the followed thread",
    kinds: &[SliceKind::Preempted],
    sources: &[
        Source { title: "kernel: the design of rt-mutexes, priority inheritance", url: RT_MUTEX_DESIGN },
        Source { title: "a priority inversion", url: PI_FUTEX },
    ],
    evidence: EvidenceKind::Documented,
    provoke: "a fair thread that spins while it holds a mutex with PTHREAD_PRIO_INHERIT, and a \
              thread above the followed one that begins to wait for it within its cycles",
    grouping: Grouping::OwnName,
    matches: |context| {
        let from = context.slice.who.inherited_from.as_ref()?;
        let first = context.higher_priority_thread()?;
        Some(match from.comm.as_str() {
            "" => format!("{first}, by a priority that it had inherited"),
            comm => format!("{first}, by the priority of {comm}"),
        })
    },
    examples: SpikeExamples {
        fires: "victim comm=loop pid=70 prio=19\npreempted ns=20000000 comm=logger pid=812 prio=9 \
                inherits=vision",
        silent: "victim comm=loop pid=70 prio=19\npreempted ns=20000000 comm=logger pid=812 prio=9",
    },
    ..CulpritRule::DEFAULT
};
