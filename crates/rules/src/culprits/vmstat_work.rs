//! Memory statistics that each CPU adds to the machine's.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{PER_CPU_KTHREADS, VMSTAT_C};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "vmstat-work",
    title: "update of memory statistics",
    signature: "A kernel worker runs vmstat_update on the CPU, every second by default.",
    detection: "By the exact function of the work, or by that function in the stack of a worker that could \
                not be preempted. It is named only if the worker delayed the thread.",
    remedy: "increase vm.stat_interval",
    kinds: &[SliceKind::Workqueue, SliceKind::PreemptOff],
    sources: &[
        Source { title: "kernel: jitter of per-CPU threads, vmstat_update", url: PER_CPU_KTHREADS },
        Source { title: "kernel: mm/vmstat.c", url: VMSTAT_C },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["vmstat-interval"],
    provoke: "vm.stat_interval=1, and memory allocated and freed on the victim's CPU, under \
              SCHED_OTHER",
    matches: |context| {
        context.work_item_in(FUNCTIONS).map(|function| format!("{function} ran in a kernel worker"))
    },
    examples: SpikeExamples {
        fires: "victim comm=logger prio=120\nworkqueue ns=90000 function=vmstat_update \
                comm=kworker/1:2 pid=60 prio=120",
        silent: "victim comm=logger prio=120\nworkqueue ns=90000 function=lru_add_drain_per_cpu \
                 comm=kworker/1:2 pid=60 prio=120",
    },
    ..CulpritRule::DEFAULT
};

/// Functions of its work items.
const FUNCTIONS: &[&str] = &["vmstat_shepherd", "vmstat_update"];
