//! RCU callbacks run in a softirq.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{PARAMETERS, PER_CPU_KTHREADS};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "rcu-softirq",
    title: "RCU callbacks on this CPU",
    signature: "The softirq RCU runs on the CPU before the thread does, most often after a tick.",
    detection: "By the softirq's name. It does not show which callbacks ran, and which code queued them.",
    remedy: "offload the callbacks of this CPU with rcu_nocbs=, and bind the offload threads to other CPUs",
    kinds: &[SliceKind::Softirq],
    sources: &[
        Source { title: "kernel: jitter of per-CPU threads, RCU_SOFTIRQ", url: PER_CPU_KTHREADS },
        Source { title: "kernel: kernel-parameters, rcu_nocbs", url: PARAMETERS },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["rcu-callbacks"],
    provoke: "closing many files or forking in a loop on the victim's CPU, without rcu_nocbs",
    matches: |context| (context.slice.who.irq == "RCU").then(|| "the softirq RCU ran".to_owned()),
    examples: SpikeExamples {
        fires: "softirq ns=300000 irq=RCU comm=sh",
        silent: "softirq ns=300000 irq=SCHED comm=sh",
    },
    ..CulpritRule::DEFAULT
};
