//! A section of kernel code that is not preempted.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{RT_CONFIG, RT_DIFFERENCES};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "preempt-off-section",
    title: "a section with preemption off",
    signature: "The thread that came late is awake, a thread of lower priority goes on running in \
                the kernel, and the stack at the switch shows the function in which preemption \
                came on again.",
    detection: "By an interrupt that found preemption off, or by the function that let it in \
                again. The function is the one in the stack at the switch, else the one in which \
                the timer's interrupt found the thread; without a stack there is none. On kernels \
                without full preemption a system call of any length looks like this, and has a \
                rule of its own where no section was found. Softirqs and interrupts in the \
                section are taken out of its time.",
    remedy: "run a kernel with PREEMPT_RT (or at least preempt=full), and keep who calls the \
             function, further up in the stack, off this CPU",
    kinds: &[SliceKind::PreemptOff],
    sources: &[
        Source { title: "kernel: how a real-time kernel differs", url: RT_DIFFERENCES },
        Source { title: "kernel: real-time kernel configuration", url: RT_CONFIG },
    ],
    evidence: EvidenceKind::Observed,
    cured_by: &["preemption-model", "lock-debugging", "latency-tracers"],
    provoke: "a kernel module that calls preempt_disable, mdelay and preempt_enable",
    grouping: Grouping::Function,
    fallback: true,
    matches: |context| {
        let (who, evidence) = (&context.slice.who, &context.slice.evidence);
        Some(match names::function_with_module(who) {
            _ if !evidence.is_empty() => format!("{}: {evidence}", names::thread_name(&who.comm)),
            function if function.is_empty() => {
                format!("{} had preemption off", names::thread_name(&who.comm))
            }
            function => format!("preemption came on again in {function}"),
        })
    },
    examples: SpikeExamples {
        fires: "preempt-off ns=20000000 comm=insmod pid=71 prio=120 function=hold_preemption \
                module=faults",
        silent: "host preempt=none\npreempt-off ns=20000000 comm=python3 pid=71 prio=120",
    },
    ..CulpritRule::DEFAULT
};
