//! membarrier(2), which makes other CPUs execute a barrier.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{MEMBARRIER_C, MEMBARRIER2};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "memory-barrier-call",
    title: "membarrier(2) of another thread",
    signature: "An interrupt from another CPU, in which one of membarrier's functions runs; the \
                sender is a thread that called it.",
    detection: "By the functions' exact names in kernel/sched/membarrier.c. A private barrier interrupts \
                only CPUs that run threads of the same process, a global expedited one those of processes \
                that registered for it.",
    remedy: "garbage collectors and user-space RCU call membarrier: keep such a thread out of the real-time \
             process, or the process off this CPU",
    kinds: &[SliceKind::Ipi],
    sources: &[
        Source { title: "membarrier(2)", url: MEMBARRIER2 },
        Source { title: "kernel: kernel/sched/membarrier.c", url: MEMBARRIER_C },
    ],
    evidence: EvidenceKind::Source,
    provoke: "a thread that calls membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) in a loop while \
              the victim is a thread of the same process",
    matches: |context| {
        context.function_in(FUNCTIONS).map(|function| super::remote_call::asked(function, context.slice))
    },
    examples: SpikeExamples {
        fires: "ipi ns=30000 function=ipi_mb irq=call_function from=0 comm=sender",
        silent: "ipi ns=30000 function=do_sync_core irq=call_function from=0 comm=sender",
    },
    ..CulpritRule::DEFAULT
};

/// Functions that other CPUs have to run.
const FUNCTIONS: &[&str] = &["ipi_mb", "ipi_rseq", "ipi_sync_core", "ipi_sync_rq_state"];
