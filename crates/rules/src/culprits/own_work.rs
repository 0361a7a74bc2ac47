//! The thread that woke late was still running.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::SCHED7;
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "own-work",
    title: "unfinished work of the previous cycle",
    signature: "The late thread was not yet asleep when its wake-up was due: it was still doing earlier \
                work.",
    detection: "By the thread's id: the CPU ran the late thread itself. Why its work took long is not \
                known.",
    remedy: "do less in one cycle, make the cycle longer, or move work without a deadline into a thread of \
             lower priority",
    kinds: &[SliceKind::Thread],
    sources: &[Source { title: "sched(7), deadline scheduling: runtime and period", url: SCHED7 }],
    evidence: EvidenceKind::Documented,
    provoke: "a periodic task that computes for longer than its period",
    fallback: true,
    matches: |context| context.is_victim().then(|| format!("{} was still running", context.slice.who.comm)),
    examples: SpikeExamples {
        fires: "victim comm=loop pid=70 prio=19\nthread ns=900000 comm=loop pid=70 prio=19",
        silent: "victim comm=loop pid=70 prio=19\nthread ns=900000 comm=loop pid=71 prio=19",
    },
    ..CulpritRule::DEFAULT
};
