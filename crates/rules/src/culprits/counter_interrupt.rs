//! Interrupts of the performance counters, which nothing can mask.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::LOCKUP_WATCHDOGS;
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "counter-interrupt",
    title: "a non-maskable interrupt of the performance counters",
    signature: "An interrupt that nothing can mask, whose handler is perf_event_nmi_handler.",
    detection: "By the handler's exact name. It does not show whether the hard lockup detector or a profiler \
                set the counter; interrupts at regular intervals of some seconds come from the detector.",
    remedy: "switch the hard lockup detector off (kernel.nmi_watchdog=0), and do not profile while the \
             real-time task runs",
    kinds: &[SliceKind::Nmi],
    sources: &[Source { title: "kernel: lockup detectors", url: LOCKUP_WATCHDOGS }],
    evidence: EvidenceKind::Documented,
    cured_by: &["watchdog"],
    provoke: "perf record -a -e cycles on hardware with counters",
    matches: |context| {
        context.function_in(&["perf_event_nmi_handler"]).map(|function| format!("{function} ran"))
    },
    examples: SpikeExamples {
        fires: "nmi ns=9000 function=perf_event_nmi_handler",
        silent: "nmi ns=9000 function=nmi_cpu_backtrace_handler",
    },
    ..CulpritRule::DEFAULT
};
