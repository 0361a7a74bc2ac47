//! The thread of a device's interrupt that took the CPU within a cycle.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{GENERIC_IRQ, IRQ_AFFINITY};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "preempted-by-irq-thread",
    title: "an interrupt thread that preempted",
    signature: "Within a cycle of a followed thread irq/NUMBER-NAME runs on its CPU; the priority of such a \
                thread is 50 by default.",
    detection: "By the thread's name and the priorities in the switch away from the followed thread. The \
                interrupt handler itself has a separate slice.",
    remedy: "move the interrupt to another CPU (its thread follows), or give its thread a priority below the \
             task's, or give the task one above 50",
    kinds: &[SliceKind::Preempted],
    sources: &[
        Source { title: "kernel: generic interrupts, threaded handlers", url: GENERIC_IRQ },
        Source { title: "kernel: the affinity of interrupts", url: IRQ_AFFINITY },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["irq-affinity", "kernel-thread-priorities"],
    provoke: "traffic of a device whose interrupt is on the followed thread's CPU, on PREEMPT_RT \
              or with threadirqs, and a thread of priority 49 or less",
    grouping: Grouping::OwnName,
    matches: |context| {
        context.higher_priority_thread().filter(|_| names::irq_thread(&context.slice.who.comm).is_some())
    },
    examples: SpikeExamples {
        fires: "victim comm=audio pid=70 prio=49\npreempted ns=400000 comm=irq/24-eth0 pid=300 prio=49",
        silent: "victim comm=audio pid=70 prio=48\npreempted ns=400000 comm=irq/24-eth0 pid=300 prio=49",
    },
    ..CulpritRule::DEFAULT
};
