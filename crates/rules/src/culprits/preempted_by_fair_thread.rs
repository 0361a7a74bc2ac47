//! Another fair thread that had its turn within a cycle of a fair thread.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::SCHED7;
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "preempted-by-fair-thread",
    title: "a preempting thread of the fair scheduler",
    signature: "The followed thread has the policy SCHED_OTHER, and another thread of the same class runs on \
                its CPU before its cycle is complete.",
    detection: "By the priorities in the switch: both are 100 or more in the kernel's numbering. The \
                scheduler shares the CPU between them regardless of their deadlines.",
    remedy: "give the thread a real-time policy (SCHED_FIFO), or a separate CPU",
    kinds: &[SliceKind::Preempted],
    sources: &[Source { title: "sched(7), SCHED_OTHER", url: SCHED7 }],
    evidence: EvidenceKind::Documented,
    cured_by: &["cpu-isolation"],
    provoke: "a followed thread under SCHED_OTHER, and a busy loop on its CPU",
    grouping: Grouping::OwnName,
    fallback: true,
    matches: |context| {
        let (who, victim) = (&context.slice.who, &context.spike.victim);
        let both = who.prio >= 100 && victim.prio >= 100 && !context.is_victim();
        both.then(|| format!("{} had the CPU", names::thread_with_priority(who)))
    },
    examples: SpikeExamples {
        fires: "victim comm=loop pid=70 prio=120\npreempted ns=3000000 comm=stress pid=900 prio=120",
        silent: "victim comm=loop pid=70 prio=19\npreempted ns=3000000 comm=stress pid=900 prio=120",
    },
    ..CulpritRule::DEFAULT
};
