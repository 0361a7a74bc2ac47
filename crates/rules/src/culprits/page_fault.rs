//! The thread accesses memory that is not resident.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{MLOCK2, SYSCTL_VM};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "page-fault",
    title: "a page fault of the thread itself",
    signature: "Between the switch to the thread and its first instruction, or while it works, the kernel \
                handles a page fault of the thread.",
    detection: "By the kernel's event of a page fault in the late thread. Possible causes: memory that was \
                not touched before, was swapped out, moved or merged, or was unmapped to find out which CPU \
                uses it (NUMA balancing).",
    remedy: "lock all memory (mlockall) and touch all of it, including stacks, before the real-time phase \
             starts",
    kinds: &[SliceKind::PageFault],
    sources: &[
        Source { title: "mlock(2), NOTES: real-time processes", url: MLOCK2 },
        Source { title: "kernel: /proc/sys/vm", url: SYSCTL_VM },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &[
        "locked-memory-limit",
        "swap",
        "transparent-hugepages",
        "numa-balancing",
        "kernel-samepage-merging",
        "unevictable-compaction",
    ],
    provoke: "a task that maps fresh memory and writes one byte of it in each cycle",
    fallback: true,
    matches: |_| Some("the kernel's event of a page fault".to_owned()),
    examples: SpikeExamples {
        fires: "page-fault ns=90000 comm=onbeat prio=19",
        silent: "return-to-user ns=90000 comm=onbeat prio=19",
    },
    ..CulpritRule::DEFAULT
};
