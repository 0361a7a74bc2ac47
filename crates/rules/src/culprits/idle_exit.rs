//! The CPU leaves an idle state.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{CPUIDLE, RT_HARDWARE};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "idle-exit",
    title: "exit from an idle state",
    signature: "The CPU is in an idle state when the timer expires, and the interrupt starts late by about \
                the exit latency of that state.",
    detection: "By the kernel's event of the entered state, no other event in between, and a delay that fits \
                the state. In a virtual machine the delay comes from the hypervisor, which has to schedule \
                the virtual CPU again.",
    remedy: "forbid deep idle states on this CPU: hold /dev/cpu_dma_latency open, or set \
             pm_qos_resume_latency_us",
    kinds: &[SliceKind::IdleExit],
    sources: &[
        Source { title: "kernel: idle states", url: CPUIDLE },
        Source { title: "kernel: real-time hardware, power saving", url: RT_HARDWARE },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["idle-states", "resume-latency-qos", "guest-halt-poll"],
    provoke: "on hardware: a cycle of 10 ms is enough while /dev/cpu_dma_latency is not held open",
    grouping: Grouping::Irq,
    fallback: true,
    matches: |context| {
        Some(match context.slice.who.irq.as_str() {
            "" => "the CPU was idle".to_owned(),
            state => format!("the CPU was in {state}"),
        })
    },
    examples: SpikeExamples {
        fires: "idle-exit ns=180000 irq=C6 comm=swapper/1",
        silent: "irqs-off ns=180000 comm=swapper/1",
    },
    ..CulpritRule::DEFAULT
};
