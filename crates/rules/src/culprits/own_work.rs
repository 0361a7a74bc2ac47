//! The thread that woke late was still running.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::SCHED7;
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "own-work",
    title: "the thread's own work of the time before",
    signature: "The thread that came late had not gone to sleep yet when it was to be woken: it \
                ran on, with what it had to do before.",
    detection: "By the thread's id: the CPU ran the very thread that the spike is of. It says \
                nothing of why its work took long.",
    remedy: "do less in one cycle, make the cycle longer, or put what need not be in time into a \
             thread of lower priority",
    kinds: &[SliceKind::Thread],
    sources: &[Source { title: "sched(7), deadline scheduling: runtime and period", url: SCHED7 }],
    evidence: EvidenceKind::Documented,
    provoke: "a periodic task that computes for longer than its period",
    fallback: true,
    matches: |context| context.is_victim().then(|| format!("{} ran on", context.slice.who.comm)),
    examples: SpikeExamples {
        fires: "victim comm=loop pid=70 prio=19\nthread ns=900000 comm=loop pid=70 prio=19",
        silent: "victim comm=loop pid=70 prio=19\nthread ns=900000 comm=loop pid=71 prio=19",
    },
    ..CulpritRule::DEFAULT
};
