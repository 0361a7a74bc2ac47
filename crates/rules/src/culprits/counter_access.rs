//! Performance counters that are read or moved from another CPU.

use super::sources::EVENTS_CORE_C;
use super::{Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "counter-access",
    title: "performance events handled on this CPU for another",
    looks: "An interrupt from another CPU, in which a function of the performance events runs; the sender profiles or monitors.",
    tell: "By the functions' exact names in kernel/events/core.c. Whether the sender reads, adds or removes an event is not seen, \
           but for __perf_event_read, which reads.",
    remedy: "stop profiling (perf, an exporter of metrics), or open events for housekeeping CPUs alone",
    kinds: &[Slice::Ipi],
    sources: &[Source {
        title: "kernel: kernel/events/core.c, cpu_function_call and perf_event_read",
        url: EVENTS_CORE_C,
    }],
    evidence: Evidence::Source,
    provoke: "perf stat -a -I 10 on another CPU",
    matches: |sight| {
        sight.function_in(FUNCTIONS).map(|function| super::remote_call::asked(function, sight.slice))
    },
    examples: Examples {
        fires: "ipi ns=30000 function=remote_function irq=call_function from=0 comm=sender",
        silent: "ipi ns=30000 function=__rdmsr_on_cpu irq=call_function from=0 comm=sender",
    },
    ..Culprit::DEFAULT
};

/// What other CPUs are asked to run.
const FUNCTIONS: &[&str] = &["__perf_event_read", "remote_function"];
