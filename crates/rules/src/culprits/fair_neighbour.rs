//! Other threads of the fair scheduler, if the one that woke late is a fair one, too.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::SCHED7;
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "fair-neighbour",
    title: "other threads of the fair scheduler",
    signature: "The late thread has the policy SCHED_OTHER, and other threads of the same class run before \
                it.",
    detection: "By the priorities in the switch: both are 100 or more in the kernel's numbering. This rule \
                never names a fair thread that ran before a real-time one.",
    remedy: "give the thread a real-time policy (SCHED_FIFO), or a separate CPU",
    kinds: &[SliceKind::Thread],
    sources: &[Source { title: "sched(7), SCHED_OTHER", url: SCHED7 }],
    evidence: EvidenceKind::Documented,
    cured_by: &["cpu-isolation", "cgroup-cpuset", "cpuset-partition", "group-placement"],
    provoke: "a thread under SCHED_OTHER as the victim, and a busy loop on its CPU",
    grouping: Grouping::Thread,
    fallback: true,
    matches: |context| {
        let who = &context.slice.who;
        let both = who.prio >= 100
            && context.spike.victim.prio >= 100
            && !who.comm.is_empty()
            && !context.is_victim();
        both.then(|| format!("{} had the CPU", names::thread_with_priority(who)))
    },
    examples: SpikeExamples {
        fires: "victim comm=onbeat prio=120\nthread ns=3000000 comm=stress pid=900 prio=120",
        silent: "victim comm=onbeat prio=19\nthread ns=3000000 comm=stress pid=900 prio=120",
    },
    ..CulpritRule::DEFAULT
};
