//! The scheduler moves threads between CPUs.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::PER_CPU_KTHREADS;
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "load-balancing",
    title: "scheduler load balancing",
    signature: "The softirq SCHED runs on the CPU before the thread does, after a tick.",
    detection: "By the softirq's name. The scheduler also uses it when an idle CPU balances for \
                others.",
    remedy: "take the CPU out of load balancing: an isolated cpuset partition, or isolcpus=domain",
    kinds: &[SliceKind::Softirq],
    sources: &[Source { title: "kernel: jitter of per-CPU threads, SCHED_SOFTIRQ", url: PER_CPU_KTHREADS }],
    evidence: EvidenceKind::Documented,
    cured_by: &["isolation-lists", "cpu-isolation", "cpuset-partition"],
    provoke: "many busy threads without affinity on a machine with many CPUs",
    matches: |context| (context.slice.who.irq == "SCHED").then(|| "the softirq SCHED ran".to_owned()),
    examples: SpikeExamples {
        fires: "softirq ns=60000 irq=SCHED comm=stress",
        silent: "softirq ns=60000 irq=RCU comm=stress",
    },
    ..CulpritRule::DEFAULT
};
