//! Performance counters that are read or moved from another CPU.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::EVENTS_CORE_C;
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "counter-access",
    title: "performance events handled for another CPU",
    signature: "An interrupt from another CPU that runs a function of the perf events subsystem; the sender \
                profiles or monitors.",
    detection: "By the functions' exact names in kernel/events/core.c. Whether the sender reads, adds or \
                removes an event is not visible, except that __perf_event_read reads.",
    remedy: "stop profiling (perf, an exporter of metrics), or open events only on housekeeping CPUs",
    kinds: &[SliceKind::Ipi],
    sources: &[Source {
        title: "kernel: kernel/events/core.c, cpu_function_call and perf_event_read",
        url: EVENTS_CORE_C,
    }],
    evidence: EvidenceKind::Source,
    provoke: "perf stat -a -I 10 on another CPU",
    matches: |context| {
        context.function_in(FUNCTIONS).map(|function| super::remote_call::asked(function, context.slice))
    },
    examples: SpikeExamples {
        fires: "ipi ns=30000 function=remote_function irq=call_function from=0 comm=sender",
        silent: "ipi ns=30000 function=__rdmsr_on_cpu irq=call_function from=0 comm=sender",
    },
    ..CulpritRule::DEFAULT
};

/// Functions that other CPUs have to run.
const FUNCTIONS: &[&str] = &["__perf_event_read", "remote_function"];
