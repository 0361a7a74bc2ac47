//! Packets that are handled in a softirq.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{NET_SCALING, PER_CPU_KTHREADS};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "network-softirq",
    title: "network packets handled on this CPU",
    signature: "The softirq NET_RX or NET_TX runs on the CPU before the thread does, for up to its budget of \
                2 ms, possibly repeatedly.",
    detection: "By the softirq's name. The event does not name the device; its interrupt on the same CPU \
                usually comes right before.",
    remedy: "move the interrupts of the network queues to other CPUs, steer packets away \
             (rps_cpus), or use fewer queues",
    kinds: &[SliceKind::Softirq],
    sources: &[
        Source { title: "kernel: jitter of per-CPU threads, NET_TX and NET_RX", url: PER_CPU_KTHREADS },
        Source { title: "kernel: what networking spreads over CPUs", url: NET_SCALING },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["network-queues", "irq-affinity", "threaded-interrupts", "kernel-thread-priorities"],
    provoke: "a packet flood to a network card whose interrupts are on the victim's CPU",
    grouping: Grouping::Irq,
    matches: |context| {
        let irq = context.slice.who.irq.as_str();
        ["NET_RX", "NET_TX"].contains(&irq).then(|| format!("the softirq {irq} ran"))
    },
    examples: SpikeExamples {
        fires: "softirq ns=700000 irq=NET_RX comm=swapper/1",
        silent: "softirq ns=700000 irq=BLOCK comm=swapper/1",
    },
    ..CulpritRule::DEFAULT
};
