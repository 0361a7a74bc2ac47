//! A thread that ran in place of another within a cycle, for no reason of priority.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{RT_MUTEX_DESIGN, SCHED7};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "preempted-out-of-order",
    title: "a thread of lower priority that ran instead",
    signature: "Within a cycle of a followed real-time thread another thread runs on its CPU whose priority \
                in the switch is lower, or whose name is not in the events.",
    detection: "By the priorities in the switch. Its priority may have been raised without an event, by \
                sched_setscheduler() or by a lock that was taken before the recording began; no event shows \
                which.",
    remedy: "look at a late cycle's evidence and stack; a lock that both share, or a program that changes \
             priorities (chrt, rtkit), may be the reason",
    kinds: &[SliceKind::Preempted],
    sources: &[
        Source { title: "sched(7), scheduling policies", url: SCHED7 },
        Source { title: "kernel: the design of rt-mutexes, priority inheritance", url: RT_MUTEX_DESIGN },
    ],
    evidence: EvidenceKind::Documented,
    provoke: "a thread of lower priority that is raised with chrt while the followed one is in its \
              cycle",
    grouping: Grouping::OwnName,
    fallback: true,
    matches: |context| {
        let (who, victim) = (&context.slice.who, &context.spike.victim);
        let below = who.prio > victim.prio && victim.prio < 100;
        let ranked = context.higher_priority_thread().is_some() || who.prio >= 100 && victim.prio >= 100;
        (below || !ranked).then(|| context.slice.evidence.clone())
    },
    examples: SpikeExamples {
        fires: "victim comm=loop pid=70 prio=19\npreempted ns=2000000 comm=raised pid=812 prio=30",
        silent: "victim comm=loop pid=70 prio=19\npreempted ns=2000000 comm=hog pid=812 prio=9",
    },
    ..CulpritRule::DEFAULT
};
