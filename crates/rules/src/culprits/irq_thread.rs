//! The thread of a device's interrupt, of higher or equal priority.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{GENERIC_IRQ, IRQ_AFFINITY};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "irq-thread",
    title: "an interrupt thread that runs first",
    signature: "Between the wake-up and the switch to the late thread, a thread irq/NUMBER-NAME runs; its \
                priority is 50 by default.",
    detection: "By the thread's name and the priorities in the switch. A thread below the victim's priority \
                is not named.",
    remedy: "move the interrupt to another CPU (its thread follows), or give its thread a priority below the \
             task's, or give the task one above 50",
    kinds: &[SliceKind::Thread],
    sources: &[
        Source { title: "kernel: generic interrupts, threaded handlers", url: GENERIC_IRQ },
        Source { title: "kernel: the affinity of interrupts", url: IRQ_AFFINITY },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["irq-affinity", "kernel-thread-priorities", "isolation-lists", "housekeeping-left"],
    provoke: "traffic of a device whose interrupt is on the victim's CPU, on PREEMPT_RT or with \
              threadirqs, and a victim of priority 49 or less",
    grouping: Grouping::Thread,
    matches: |context| {
        context.higher_priority_thread().filter(|_| names::irq_thread(&context.slice.who.comm).is_some())
    },
    examples: SpikeExamples {
        fires: "victim comm=audio prio=49\nthread ns=400000 comm=irq/24-eth0 pid=300 prio=49",
        silent: "victim comm=audio prio=48\nthread ns=400000 comm=irq/24-eth0 pid=300 prio=49",
    },
    ..CulpritRule::DEFAULT
};
