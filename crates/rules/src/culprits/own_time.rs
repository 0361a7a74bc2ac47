//! The followed thread itself ran: its own work within a cycle.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{CPUFREQ, SCHED7};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "own-time",
    title: "the thread's running time",
    signature: "In a late cycle of a followed thread, the thread was running for most of the time: it was \
                not preempted and did not wait.",
    detection: "By the switches to and from the thread, minus the interrupts in between, which have separate \
                slices. No event shows which function of the program took long; a slower clock, evicted \
                caches, memory contention with other CPUs and page faults that did not sleep are included.",
    remedy: "profile the cycle of the thread, do less in it or make the cycle longer, and keep the frequency \
             of its CPU high",
    kinds: &[SliceKind::Own],
    sources: &[
        Source { title: "sched(7), deadline scheduling: runtime, deadline and period", url: SCHED7 },
        Source { title: "kernel: CPU performance scaling", url: CPUFREQ },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["cpufreq-governor", "cpufreq-limit"],
    provoke: "a periodic task that computes for longer than its deadline",
    grouping: Grouping::OwnName,
    fallback: true,
    matches: |context| context.is_victim().then(|| context.slice.evidence.clone()),
    examples: SpikeExamples {
        fires: "victim comm=loop pid=70 prio=19\nown ns=900000 comm=loop pid=70 prio=19",
        silent: "victim comm=loop pid=70 prio=19\nown ns=900000 comm=loop pid=71 prio=19",
    },
    ..CulpritRule::DEFAULT
};
