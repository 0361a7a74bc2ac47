//! A softirq without a specific rule.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{PER_CPU_KTHREADS, SOFTIRQ_C};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "softirq-work",
    title: "a softirq on this CPU",
    signature: "A softirq runs on the CPU before the thread does: for block devices, tasklets, or polling.",
    detection: "By the softirq's name, and a tasklet's function where the kernel has events for it (from 6.5 \
                on); networking, RCU and load balancing have separate rules.",
    remedy: "move the interrupts that raise it to other CPUs; under PREEMPT_RT or threadirqs, softirqs of \
             devices run in threads with a priority",
    kinds: &[SliceKind::Softirq],
    sources: &[
        Source { title: "kernel: jitter of per-CPU threads, ksoftirqd", url: PER_CPU_KTHREADS },
        Source { title: "kernel: kernel/softirq.c", url: SOFTIRQ_C },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["irq-affinity", "threaded-interrupts", "preemption-model", "kernel-thread-priorities"],
    provoke: "a kernel module that schedules a long-running tasklet",
    grouping: Grouping::Irq,
    fallback: true,
    matches: |context| {
        let irq = context.slice.who.irq.as_str();
        let other = !irq.is_empty() && context.timer_function().is_none();
        let function = names::function_with_module(&context.slice.who);
        other.then(|| match function.as_str() {
            "" => format!("the softirq {irq} ran"),
            function => format!("the softirq {irq} ran {function}"),
        })
    },
    examples: SpikeExamples {
        fires: "softirq ns=20000000 irq=TASKLET comm=insmod function=hold_tasklet module=faults",
        silent: "softirq ns=20000000",
    },
    ..CulpritRule::DEFAULT
};
