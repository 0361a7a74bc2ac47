//! A thread of higher or equal real-time priority.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{RHEL_PRIORITIES, SCHED7};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "realtime-thread",
    title: "a real-time thread that runs first",
    signature: "Between the wake-up and the switch to the late thread another thread runs whose priority is \
                the same or higher.",
    detection: "By the priorities in the switch. A thread of the same priority is not preempted under \
                SCHED_FIFO. Interrupt threads, the kernel's softirq threads and inherited priorities have \
                separate rules; this rule does not name a thread of lower priority.",
    remedy: "give the thread with the deadline the higher priority, or move the other one to another CPU",
    kinds: &[SliceKind::Thread],
    sources: &[
        Source { title: "sched(7), SCHED_FIFO: First in-first out scheduling", url: SCHED7 },
        Source { title: "Red Hat: priority map", url: RHEL_PRIORITIES },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["realtime-neighbours", "priority-99", "starvation-monitor", "cpu-isolation"],
    provoke: "a thread under SCHED_FIFO above the victim's priority, pinned to its CPU, that \
              spins for some milliseconds",
    grouping: Grouping::Thread,
    fallback: true,
    matches: |context| context.higher_priority_thread().filter(|_| context.slice.who.prio < 100),
    examples: SpikeExamples {
        fires: "victim comm=onbeat prio=19\nthread ns=2000000 comm=hog pid=812 prio=9",
        silent: "victim comm=onbeat prio=19\nthread ns=2000000 comm=hog pid=812 prio=20",
    },
    ..CulpritRule::DEFAULT
};
