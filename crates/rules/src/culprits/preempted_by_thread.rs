//! A thread of higher or equal real-time priority that took the CPU within a cycle.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{RHEL_PRIORITIES, SCHED7};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "preempted-by-thread",
    title: "a real-time thread that preempted",
    signature: "Another thread of the same or a higher priority ran on the CPU of a followed thread before \
                its cycle was complete.",
    detection: "By the switch away from a thread that was still runnable, and the priorities in it. A thread \
                of the same priority can run if the followed one yields, or under SCHED_RR. Interrupt \
                threads, kernel threads and inherited priorities have separate rules.",
    remedy: "give the thread with the deadline the higher priority, or move the other one to another CPU; \
             `onbeat check` lists the threads that share its CPUs and its priority",
    kinds: &[SliceKind::Preempted],
    sources: &[
        Source { title: "sched(7), SCHED_FIFO: First in-first out scheduling", url: SCHED7 },
        Source { title: "Red Hat: priority map", url: RHEL_PRIORITIES },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["realtime-neighbours", "priority-99", "cpu-isolation"],
    provoke: "a thread under SCHED_FIFO above the followed thread's priority, pinned to its CPU, \
              that wakes within its cycles",
    grouping: Grouping::OwnName,
    fallback: true,
    matches: |context| context.higher_priority_thread().filter(|_| context.slice.who.prio < 100),
    examples: SpikeExamples {
        fires: "victim comm=loop pid=70 prio=19\npreempted ns=2000000 comm=hog pid=812 prio=9",
        silent: "victim comm=loop pid=70 prio=19\npreempted ns=2000000 comm=hog pid=812 prio=20",
    },
    ..CulpritRule::DEFAULT
};
