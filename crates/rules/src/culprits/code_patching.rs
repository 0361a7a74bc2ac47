//! Kernel code that is patched while all CPUs run it.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::ALTERNATIVE_C;
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "code-patching",
    title: "patching of kernel code",
    signature: "An interrupt from another CPU, in which do_sync_core (x86) or ipi_remote_fence_i \
                (RISC-V) runs; several within microseconds, on all CPUs at once.",
    detection: "By the function's exact name, which only code patching runs on other CPUs (ftrace_sync_ipi: \
                the patching of traced functions). On RISC-V a program that writes code and flushes the \
                instruction caches causes it too. The sender did the patching: it switched a static key, a \
                tracepoint, a probe or a BPF program, or loaded a module. On arm64 the function is \
                do_nothing, which other code uses as well: it counts as a function run for another CPU.",
    remedy: "do not switch tracing, probes, BPF programs, packet timestamps or modules on or off while the \
             real-time task runs; switch on beforehand what is needed",
    kinds: &[SliceKind::Ipi],
    sources: &[Source { title: "kernel: arch/x86/kernel/alternative.c", url: ALTERNATIVE_C }],
    evidence: EvidenceKind::Source,
    cured_by: &["kfence"],
    provoke: "switching a tracepoint on and off on another CPU: echo 1 and 0 to \
              events/sched/sched_switch/enable in a trace instance",
    matches: |context| {
        context.function_in(FUNCTIONS).map(|function| super::remote_call::asked(function, context.slice))
    },
    examples: SpikeExamples {
        fires: "ipi ns=30000 function=do_sync_core irq=call_function from=0 comm=sender",
        silent: "ipi ns=30000 function=ipi_sync_core irq=call_function from=0 comm=sender",
    },
    ..CulpritRule::DEFAULT
};

/// Functions that other CPUs have to run.
const FUNCTIONS: &[&str] = &["do_sync_core", "ftrace_sync_ipi", "ipi_remote_fence_i"];
