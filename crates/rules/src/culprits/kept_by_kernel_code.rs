//! Kernel code that kept the CPU, because of its preemption model or of disabled preemption.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{RT_CONFIG, RT_DIFFERENCES};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;
use trace::timeline::without_events::OFF_OR_NOT_PREEMPTED;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "kept-by-kernel-code",
    title: "kernel code that kept the CPU",
    signature: "The late thread is awake, and a thread of lower priority keeps running in the kernel until \
                it checks for a reschedule (cond_resched).",
    detection: "By the stack at the switch, where a watch recorded it, on a kernel with such checks \
                (preemption models none and voluntary). Only the events of a hunt show whether preemption \
                was off until then, or the preemption model alone is the cause. The thread is the one that \
                was switched from; the function with the check need not be the one that took the time.",
    remedy: "boot with preempt=full if the kernel is built with PREEMPT_DYNAMIC, or use a PREEMPT_RT kernel; \
             if it still occurs, a section with preemption off is the cause, and a hunt names it",
    kinds: &[SliceKind::PreemptOff],
    sources: &[
        Source { title: "kernel: how a real-time kernel differs", url: RT_DIFFERENCES },
        Source { title: "kernel: real-time kernel configuration", url: RT_CONFIG },
    ],
    evidence: EvidenceKind::Observed,
    cured_by: &["preemption-model"],
    provoke: "a watch on a kernel booted with preempt=none, and programs that read and write \
              large files on the victim's CPU",
    grouping: Grouping::Thread,
    matches: |context| {
        let (who, evidence) = (&context.slice.who, &context.slice.evidence);
        let known = evidence.starts_with(OFF_OR_NOT_PREEMPTED);
        known.then(|| {
            let function = names::function_with_module(who);
            format!(
                "{} kept running in the kernel, and rescheduled in {function}",
                names::thread_name(&who.comm)
            )
        })
    },
    examples: SpikeExamples {
        fires: "host preempt=none\npreempt-off ns=20000000 comm=python3 pid=71 prio=120 function=hold \
                evidence=preemption_was_off,_or_the_kernel_does_not_preempt_its_own_code:_it_asked",
        silent: "host preempt=none\npreempt-off ns=20000000 comm=python3 pid=71 prio=120 \
                 function=hold evidence=hold_let_it_in_again",
    },
    ..CulpritRule::DEFAULT
};
