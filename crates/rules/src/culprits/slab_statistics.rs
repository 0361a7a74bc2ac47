//! Statistics of the slab allocator, which are counted with a lock held.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{SLAB, SLUB_SOURCE};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "slab-statistics",
    title: "reading slab statistics",
    signature: "A section with interrupts off, or a contended lock, with get_slabinfo or count_partial in \
                the stack: a program reads /proc/slabinfo or /sys/kernel/slab.",
    detection: "By the functions' exact names in the stack. From 6.10 on the kernel counts at \
                most 10,000 slabs of a list exactly and estimates the rest, under \
                count_partial_free_approx.",
    remedy: "stop programs that read /proc/slabinfo or /sys/kernel/slab: slabtop, monitoring agents; only \
             root can read these files by default",
    kinds: &[SliceKind::IrqsOff, SliceKind::PreemptOff, SliceKind::LockContention],
    sources: &[
        Source { title: "kernel: mm/slub.c", url: SLUB_SOURCE },
        Source { title: "kernel: SLUB", url: SLAB },
    ],
    evidence: EvidenceKind::Source,
    cured_by: &["slabinfo-readers", "preemption-model"],
    provoke: "cat /proc/slabinfo in a loop after filling a cache with some 100,000 objects",
    matches: |context| {
        context.stack_function_in(FUNCTIONS).map(|function| format!("{function} in the stack"))
    },
    examples: SpikeExamples {
        fires: "irqs-off ns=300000 comm=meminfo prio=120 function=get_slabinfo \
                stack=count_partial<get_slabinfo<slab_show",
        silent: "irqs-off ns=300000 comm=meminfo prio=120 function=get_partial_node \
                 stack=get_partial_node<___slab_alloc",
    },
    ..CulpritRule::DEFAULT
};

/// Functions that count the objects of lists of slabs.
const FUNCTIONS: &[&str] = &["count_partial", "count_partial_free_approx", "get_slabinfo"];
