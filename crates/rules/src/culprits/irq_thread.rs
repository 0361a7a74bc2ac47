//! The thread of a device's interrupt, of higher or equal priority.

use super::sources::{GENERIC_IRQ, IRQ_AFFINITY};
use super::who;
use super::{Apart, Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "irq-thread",
    title: "an interrupt's thread that goes first",
    looks: "Between the wake-up and the switch to the thread that came late a thread irq/NUMBER-NAME runs; its priority is 50 \
           unless somebody changed it.",
    tell: "By the thread's name and the priorities in the switch. Below the victim's priority it is not named.",
    remedy: "move the interrupt to another CPU (its thread follows), or give its thread a priority below the task's, or the task \
           one above 50",
    kinds: &[Slice::Thread],
    sources: &[
        Source { title: "kernel: generic interrupts, threaded handlers", url: GENERIC_IRQ },
        Source { title: "kernel: the affinity of interrupts", url: IRQ_AFFINITY },
    ],
    evidence: Evidence::Documented,
    cured_by: &["irq-affinity", "kernel-thread-priorities", "isolation-lists", "housekeeping-left"],
    provoke: "traffic of a device whose interrupt is on the victim's CPU, on PREEMPT_RT or with threadirqs, and a victim of priority \
           49 or less",
    apart: Apart::Thread,
    matches: |sight| sight.goes_first().filter(|_| who::irq_thread(&sight.slice.who.comm).is_some()),
    examples: Examples {
        fires: "victim comm=audio prio=49\nthread ns=400000 comm=irq/24-eth0 pid=300 prio=49",
        silent: "victim comm=audio prio=48\nthread ns=400000 comm=irq/24-eth0 pid=300 prio=49",
    },
    ..Culprit::DEFAULT
};
