//! A section of kernel code that runs with interrupts off.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{OSNOISE, RT_CONFIG};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "irqs-off-section",
    title: "a section with interrupts off",
    signature: "The timer interrupt starts late in one piece, and the stack recorded in it shows a kernel \
                function at the point where interrupts were enabled again. Nothing else happens on the CPU \
                in that time.",
    detection: "The function is named only if the interrupt arrived at such a point; late interrupts in user \
                space or elsewhere stay unexplained, because firmware and hypervisors look the same. The \
                named function enabled interrupts again: the one that disabled them may be one of its \
                callers, further up in the stack. If interrupts were enabled by releasing a raw lock, part \
                of the time may have been a wait for that lock, which no event shows. In a virtual machine a \
                stop of the virtual CPU inside a short section looks the same: there a function is named \
                from the third spike on, and never the end of a context switch.",
    remedy: "find the callers of the function while the real-time task runs (the stack names them), and keep \
             them off this CPU or run them earlier; on other kernels, consider PREEMPT_RT, where sections \
             under spinlocks can be preempted",
    kinds: &[SliceKind::IrqsOff],
    sources: &[
        Source { title: "kernel: osnoise tracer, how interrupts delay a thread", url: OSNOISE },
        Source { title: "kernel: real-time kernel configuration", url: RT_CONFIG },
    ],
    evidence: EvidenceKind::Observed,
    cured_by: &[
        "preemption-model",
        "lock-debugging",
        "memory-debugging",
        "debug-parameters",
        "latency-tracers",
    ],
    provoke: "a kernel module that calls local_irq_save, mdelay and local_irq_restore",
    grouping: Grouping::Function,
    fallback: true,
    matches: |context| {
        let who = &context.slice.who;
        (!who.function.is_empty())
            .then(|| format!("interrupts were enabled again in {}", super::names::function_with_module(who)))
    },
    examples: SpikeExamples {
        fires: "irqs-off ns=20000000 comm=insmod pid=71 prio=120 function=hold_irqs module=faults \
                stack=hold_irqs<init",
        silent: "irqs-off ns=20000000 comm=insmod pid=71 prio=120",
    },
    ..CulpritRule::DEFAULT
};
