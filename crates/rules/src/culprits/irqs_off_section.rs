//! A section of kernel code that runs with interrupts off.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{OSNOISE, RT_CONFIG};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "irqs-off-section",
    title: "a section with interrupts off",
    signature: "The timer's interrupt begins late, in one piece, and the stack taken in it shows \
                a function of the kernel at the place where interrupts come on again. Nothing \
                else happens on the CPU in that time.",
    detection: "The function is named only if the interrupt stopped it at such a place; late \
                interrupts in user space or at any other place stay unexplained, for firmware and \
                hypervisors look the same. The function named is where interrupts came on again: \
                who switched them off may be one of its callers, further up in the stack. Where \
                they came on with giving a raw lock free, part of the time may have been a wait \
                for it that nothing shows. In a virtual machine a stop of the virtual CPU inside \
                a short section looks the same: there a function is named from the third spike \
                on, and the end of a switch never.",
    remedy: "find who calls the function while the real-time task runs (the stack names the \
             callers), and keep that off this CPU or do it before; on a kernel without \
             PREEMPT_RT, spinlocks taken with interrupts off become preemptible under PREEMPT_RT",
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
            .then(|| format!("interrupts came on again in {}", super::names::function_with_module(who)))
    },
    examples: SpikeExamples {
        fires: "irqs-off ns=20000000 comm=insmod pid=71 prio=120 function=hold_irqs module=faults \
                stack=hold_irqs<init",
        silent: "irqs-off ns=20000000 comm=insmod pid=71 prio=120",
    },
    ..CulpritRule::DEFAULT
};
