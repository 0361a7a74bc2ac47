//! Real-time threads are stopped for the rest of the period.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{RT_GROUP, SYSCTL_KERNEL};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "rt-throttled",
    title: "real-time throttling",
    signature: "A runnable real-time thread waits while the idle thread or a fair thread runs, for the rest \
                of the second: 50 ms by default.",
    detection: "By a real-time thread that was runnable but not chosen until the period timer ran, on a \
                kernel with classic throttling (before 6.12, or with real-time groups).",
    remedy: "set sched_rt_runtime_us to -1, after making sure that no real-time thread spins forever",
    kinds: &[SliceKind::Throttled],
    sources: &[
        Source { title: "kernel: real-time group scheduling", url: RT_GROUP },
        Source { title: "kernel: /proc/sys/kernel, sched_rt_runtime_us", url: SYSCTL_KERNEL },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["rt-throttling", "rt-group-sched"],
    provoke: "a SCHED_FIFO thread that spins for longer than 0.95 s on Linux 6.1",
    fallback: true,
    matches: |_| Some("a real-time thread was runnable but not chosen".to_owned()),
    examples: SpikeExamples {
        fires: "throttled ns=50000000 comm=swapper/1",
        silent: "thread ns=50000000 comm=swapper/1 prio=120",
    },
    ..CulpritRule::DEFAULT
};
