//! The processor's thermal interrupt, sent when it is too hot.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{ABI, RT_HARDWARE};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "thermal-interrupt",
    title: "the processor's thermal interrupt",
    signature: "The interrupt thermal_apic on the CPU, which comes as the processor crosses a \
                threshold of temperature or power.",
    detection: "By the interrupt's exact name, on x86. What it costs itself is little; that the \
                processor slows down then has no event, and makes everything else longer.",
    remedy: "cool the machine better, or hold its frequency low enough that it does not throttle",
    kinds: &[SliceKind::Irq],
    sources: &[
        Source { title: "kernel: real-time hardware, thermal throttling", url: RT_HARDWARE },
        Source { title: "kernel: sysfs, thermal_throttle", url: ABI },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["thermal-throttling"],
    provoke: "load on all CPUs of a machine whose cooling is not enough; a virtual machine has \
              none",
    matches: |context| {
        (context.slice.who.irq == "thermal_apic").then(|| "the interrupt thermal_apic came".to_owned())
    },
    examples: SpikeExamples {
        fires: "irq ns=9000 irq=thermal_apic",
        silent: "irq ns=9000 irq=threshold_apic",
    },
    ..CulpritRule::DEFAULT
};
