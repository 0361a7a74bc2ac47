//! Code of the kernel that is changed while all CPUs run it.

use super::sources::ALTERNATIVE_C;
use super::{Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "code-patching",
    title: "the kernel's code being patched",
    looks: "An interrupt from another CPU, in which do_sync_core runs; several within microseconds, on all CPUs at once.",
    tell: "By the function's exact name, which only the patching of code on x86 asks other CPUs to run. Who patched is the \
           sender: a static key that was switched, a tracepoint, a probe, a BPF program, a module being loaded.",
    remedy: "keep what switches tracing, probes, BPF programs, packet timestamps or modules on and off from running while the real- \
           time task does; what is to be on, switch on before",
    kinds: &[Slice::Ipi],
    sources: &[Source { title: "kernel: arch/x86/kernel/alternative.c", url: ALTERNATIVE_C }],
    evidence: Evidence::Source,
    cured_by: &["kfence"],
    provoke: "switching a tracepoint on and off on another CPU: echo 1 and 0 to events/sched/sched_switch/enable in a trace instance",
    matches: |sight| {
        sight.function_in(FUNCTIONS).map(|function| super::remote_call::asked(function, sight.slice))
    },
    examples: Examples {
        fires: "ipi ns=30000 function=do_sync_core irq=call_function from=0 comm=sender",
        silent: "ipi ns=30000 function=ipi_sync_core irq=call_function from=0 comm=sender",
    },
    ..Culprit::DEFAULT
};

/// What other CPUs are asked to run.
const FUNCTIONS: &[&str] = &["do_sync_core"];
