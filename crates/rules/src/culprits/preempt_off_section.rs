//! A section of kernel code that is not preempted.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{RT_CONFIG, RT_DIFFERENCES};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "preempt-off-section",
    title: "a section with preemption off",
    signature: "The late thread is awake, a thread of lower priority keeps running in the kernel, and the \
                stack at the switch shows the function in which preemption was enabled again.",
    detection: "By an interrupt that found preemption off, or by the function that enabled it again. The \
                function is the one in the stack at the switch, or else the one in which the timer interrupt \
                found the thread; without a stack no function is named. On kernels without full preemption \
                any long system call looks like this; if no section was found, it has a separate rule. The \
                time of softirqs and interrupts in the section is subtracted.",
    remedy: "run a kernel with PREEMPT_RT (or at least preempt=full), and keep the callers of the function, \
             further up in the stack, off this CPU",
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
            function => format!("preemption was enabled again in {function}"),
        })
    },
    examples: SpikeExamples {
        fires: "preempt-off ns=20000000 comm=insmod pid=71 prio=120 function=hold_preemption \
                module=faults",
        silent: "host preempt=none\npreempt-off ns=20000000 comm=python3 pid=71 prio=120",
    },
    ..CulpritRule::DEFAULT
};
