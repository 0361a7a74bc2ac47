//! The handler of a device's interrupt.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{IRQ_AFFINITY, ISOLATION};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;
use trace::event::{is_cpu_timer, is_riscv_ipi};

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "device-interrupt",
    title: "a device's interrupt",
    signature: "A handler with the device's name runs on the CPU before the thread does.",
    detection: "By the kernel's events of the handler's entry and exit, with the name under which the \
                interrupt was requested; no event has the handler's function. An interrupt thread has a \
                separate rule. From 7.2 on the kernel log names handlers that take longer than \
                irqhandler.duration_warn_us= on the command line.",
    remedy: "move the interrupt to another CPU (smp_affinity_list), and make sure that nothing moves it \
             back",
    kinds: &[SliceKind::Irq],
    sources: &[
        Source { title: "kernel: the affinity of interrupts", url: IRQ_AFFINITY },
        Source { title: "kernel: CPU isolation", url: ISOLATION },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &[
        "irq-affinity",
        "irqbalance",
        "managed-interrupts",
        "default-irq-affinity",
        "isolation-lists",
        "housekeeping-left",
        "threaded-interrupts",
    ],
    provoke: "traffic of a device whose smp_affinity_list holds the victim's CPU",
    grouping: Grouping::Irq,
    fallback: true,
    matches: |context| {
        let irq = context.slice.who.irq.as_str();
        let device = !irq.is_empty() && context.slice.who.function.is_empty() && !of_no_device(irq);
        device.then(|| format!("the handler of {irq} ran"))
    },
    examples: SpikeExamples { fires: "irq ns=80000 irq=nvme0q1", silent: "irq ns=80000 irq=irq_work" },
    ..CulpritRule::DEFAULT
};

fn of_no_device(irq: &str) -> bool {
    VECTORS.contains(&irq) || is_cpu_timer(irq) || is_riscv_ipi(irq)
}

/// Interrupts of x86 that no device sends (arch/x86/include/asm/trace/irq_vectors.h), and Arm's
/// IPIs.
const VECTORS: &[&str] = &[
    "IPI",
    "call_function",
    "call_function_single",
    "deferred_error_apic",
    "error_apic",
    "irq_work",
    "local_timer",
    "reschedule",
    "spurious_apic",
    "thermal_apic",
    "threshold_apic",
    "x86_platform_ipi",
];

#[cfg(test)]
mod tests {
    use super::of_no_device;

    #[test]
    fn timers_and_ipis_of_each_architecture_are_no_devices() {
        for irq in ["local_timer", "arch_timer", "riscv-timer", "IPI", "Rescheduling interrupts"] {
            assert!(of_no_device(irq), "{irq}");
        }
        assert!(!of_no_device("101000.rtc") && !of_no_device("timer interrupts"));
    }
}
