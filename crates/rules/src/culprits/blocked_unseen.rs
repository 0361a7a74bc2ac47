//! A sleep within a cycle whose position no stack shows.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{RTAPP, SCHED7};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "blocked-unseen",
    title: "a sleep at a place that was not recorded",
    signature: "Within a cycle a followed thread sleeps, and no stack of the sleep was recorded.",
    detection: "By the switch away from the thread and its wake-up only: stacks were not requested, were \
                refused, or their event was lost.",
    remedy: "see in a typical spike which thread woke it; if the kernel provides stacks, a hunt without \
             --no-stacks shows what it waited for",
    kinds: &[SliceKind::Blocked],
    sources: &[
        Source { title: "kernel: monitors of real-time applications", url: RTAPP },
        Source { title: "sched(7), scheduling policies", url: SCHED7 },
    ],
    evidence: EvidenceKind::Documented,
    provoke: "onbeat hunt --no-stacks of a thread that waits for a lock in each cycle",
    grouping: Grouping::OwnName,
    fallback: true,
    matches: |context| context.slice.who.function.is_empty().then(|| context.slice.evidence.clone()),
    examples: SpikeExamples {
        fires: "blocked ns=9000000 comm=logger pid=812 prio=120 evidence=it_slept",
        silent: "blocked ns=9000000 comm=logger pid=812 prio=120 function=pipe_read evidence=it_slept",
    },
    ..CulpritRule::DEFAULT
};
