//! The handler of a device's interrupt.

use super::sources::{IRQ_AFFINITY, ISOLATION};
use super::{Apart, Culprit, Examples};
use crate::rules::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "device-interrupt",
    title: "a device's interrupt",
    looks: "A handler with the device's name runs on the CPU before the thread does.",
    tell: "By the kernel's events of the handler's begin and end, with the name under which it was requested. Its thread, where \
           it has one, is another rule's.",
    remedy: "move the interrupt to another CPU (smp_affinity_list), and see that nothing moves it back",
    kinds: &[Slice::Irq],
    sources: &[
        Source { title: "kernel: the affinity of interrupts", url: IRQ_AFFINITY },
        Source { title: "kernel: CPU isolation", url: ISOLATION },
    ],
    evidence: Evidence::Documented,
    cured_by: &[
        "irq-affinity",
        "irqbalance",
        "managed-interrupts",
        "default-irq-affinity",
        "isolation-lists",
        "housekeeping-left",
        "threaded-interrupts",
    ],
    provoke: "traffic of a device whose smp_affinity_list holds the victim's CPU",
    apart: Apart::Irq,
    general: true,
    matches: |sight| {
        (!sight.slice.who.irq.is_empty()).then(|| format!("the handler of {} ran", sight.slice.who.irq))
    },
    examples: Examples { fires: "irq ns=80000 irq=nvme0q1", silent: "irq ns=80000" },
};
