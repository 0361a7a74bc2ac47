//! The followed thread itself ran: its own work within a cycle.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{CPUFREQ, SCHED7};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "own-time",
    title: "the thread's own running time",
    signature: "In a late cycle of a followed thread, most of the time the thread had its CPU and \
                ran: nobody took it away, and nothing was waited for.",
    detection: "By the switches to and from the thread, with interrupts on top of it taken out: \
                they have slices of their own. Which of its functions took long is in no event; \
                a slower clock, caches that others emptied, memory that another CPU uses and \
                page faults that did not sleep lie within it.",
    remedy: "see with a profiler where the thread spends its cycle, do less in one or make the \
             cycle longer, and keep the frequency of its CPU up",
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
