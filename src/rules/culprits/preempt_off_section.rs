//! A section of kernel code that is not preempted.

use super::sources::{RT_CONFIG, RT_DIFFERENCES};
use super::who;
use super::{Apart, Culprit, Examples};
use crate::rules::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "preempt-off-section",
    title: "a section with preemption off",
    looks: "The thread that came late is awake, a thread of lower priority goes on running in the kernel, and the stack at the \
           switch shows the function in which preemption came on again.",
    tell: "The function is named only if a stack was taken at the switch. On kernels without full preemption a system call of any \
           length looks like this; the function named is then where the kernel asked whether to switch. Softirqs and interrupts \
           in the section are taken out of its time.",
    remedy: "run a kernel with PREEMPT_RT (or at least preempt=full), and keep who calls the function, further up in the stack, off \
           this CPU",
    kinds: &[Slice::PreemptOff],
    sources: &[
        Source { title: "kernel: how a real-time kernel differs", url: RT_DIFFERENCES },
        Source { title: "kernel: real-time kernel configuration", url: RT_CONFIG },
    ],
    evidence: Evidence::Observed,
    cured_by: &["preemption-model", "lock-debugging", "latency-tracers"],
    provoke: "a kernel module that calls preempt_disable, mdelay and preempt_enable",
    apart: Apart::Function,
    general: true,
    matches: |sight| {
        let who = &sight.slice.who;
        (!who.function.is_empty()).then(|| format!("preemption came on again in {}", who::function(who)))
    },
    examples: Examples {
        fires: "preempt-off ns=20000000 comm=insmod pid=71 prio=120 function=hold_preemption module=faults",
        silent: "preempt-off ns=20000000 comm=insmod pid=71 prio=120",
    },
};
