//! Interrupts: devices, softirqs, x86's own vectors, and IPIs.
//!
//! Source: include/trace/events/{irq,ipi,csd,nmi}.h, arch/x86/include/asm/trace/irq_vectors.h.

use super::EventSpec;
use crate::event::{Vector, What};
use model::units::{CpuSet, Nanos};

/// Entry and exit events of interrupt vectors.
macro_rules! vectors {
    ($($name:literal $vector:ident)*) => {
        &[$(
            EventSpec::new("irq_vectors", concat!($name, "_entry"), &[], |_| {
                Some(What::VectorEntry { vector: Vector::$vector })
            }),
            EventSpec::new("irq_vectors", concat!($name, "_exit"), &[], |_| {
                Some(What::VectorExit { vector: Vector::$vector })
            }),
        )*]
    };
}

/// Events of x86's vectors.
pub const VECTORS: &[EventSpec] = vectors! {
    "local_timer" LocalTimer
    "reschedule" Reschedule
    "call_function" CallFunction
    "call_function_single" CallFunctionSingle
    "irq_work" IrqWork
    "x86_platform_ipi" X86PlatformIpi
    "thermal_apic" ThermalApic
    "threshold_apic" ThresholdApic
    "deferred_error_apic" DeferredErrorApic
    "error_apic" ErrorApic
    "spurious_apic" SpuriousApic
};

pub const EVENTS: &[EventSpec] = &[
    EventSpec::new("irq", "irq_handler_entry", &["irq", "name"], |f| {
        Some(What::IrqEntry { irq: f.small(0)?, name: f.text(1)? })
    }),
    EventSpec::new("irq", "irq_handler_exit", &["irq"], |f| Some(What::IrqExit { irq: f.small(0)? })),
    EventSpec::new("irq", "softirq_raise", &["vec"], |f| Some(What::SoftirqRaise { vec: f.small(0)? })),
    EventSpec::new("irq", "softirq_entry", &["vec"], |f| Some(What::SoftirqEntry { vec: f.small(0)? })),
    EventSpec::new("irq", "softirq_exit", &["vec"], |f| Some(What::SoftirqExit { vec: f.small(0)? })),
    EventSpec::new("irq", "tasklet_entry", &["func"], |f| {
        Some(What::TaskletEntry { function: f.address(0)? })
    }),
    EventSpec::new("irq", "tasklet_exit", &["func"], |_| Some(What::TaskletExit)),
    // The reason is the address of a text listed in `printk_formats`.
    EventSpec::new("ipi", "ipi_entry", &["reason"], |f| Some(What::IpiEntry { reason: f.address(0)? })),
    EventSpec::new("ipi", "ipi_exit", &["reason"], |f| Some(What::IpiExit { reason: f.address(0)? })),
    // The reason stands in place of the function; the sender is not recorded.
    EventSpec::new("ipi", "ipi_raise", &["target_cpus", "reason"], |f| {
        Some(What::IpiSend { targets: f.cpus(0)?, callsite: 0, callback: f.address(1)? })
    }),
    EventSpec::new("ipi", "ipi_send_cpu", &["cpu", "callsite", "callback"], |f| {
        // Inserted directly: collecting a list of one would first allocate and sort it.
        let mut targets = CpuSet::default();
        targets.0.insert(f.cpu(0)?);
        Some(What::IpiSend { targets, callsite: f.address(1)?, callback: f.address(2)? })
    }),
    EventSpec::new("ipi", "ipi_send_cpumask", &["cpumask", "callsite", "callback"], |f| {
        Some(What::IpiSend { targets: f.cpus(0)?, callsite: f.address(1)?, callback: f.address(2)? })
    }),
    EventSpec::new("csd", "csd_queue_cpu", &["cpu", "callsite", "func"], |f| {
        Some(What::CallQueue { target: f.cpu(0)?, callsite: f.address(1)?, function: f.address(2)? })
    }),
    EventSpec::new("csd", "csd_function_entry", &["func"], |f| {
        Some(What::CallEntry { function: f.address(0)? })
    }),
    EventSpec::new("csd", "csd_function_exit", &["func"], |f| {
        Some(What::CallExit { function: f.address(0)? })
    }),
    EventSpec::new("nmi", "nmi_handler", &["handler", "delta_ns"], |f| {
        Some(What::Nmi { handler: f.address(0)?, ns: Nanos(f.int(1)?) })
    }),
];
