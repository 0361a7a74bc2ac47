//! The processor's thermal interrupt, sent when it is too hot.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{ABI, RT_HARDWARE};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "thermal-interrupt",
    title: "the processor's thermal interrupt",
    signature: "The interrupt thermal_apic on the CPU, which the processor raises when it crosses a \
                temperature or power threshold.",
    detection: "By the interrupt's exact name, on x86. The interrupt itself is short; the slowdown of the \
                processor that goes with it has no event, and makes everything else take longer.",
    remedy: "improve the cooling of the CPU, or keep the frequency low enough to avoid throttling",
    kinds: &[SliceKind::Irq],
    sources: &[
        Source { title: "kernel: real-time hardware, thermal throttling", url: RT_HARDWARE },
        Source { title: "kernel: sysfs, thermal_throttle", url: ABI },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["thermal-throttling"],
    provoke: "load on all CPUs of a machine with insufficient cooling; virtual machines do not have this \
              interrupt",
    matches: |context| {
        (context.slice.who.irq == "thermal_apic").then(|| "the interrupt thermal_apic arrived".to_owned())
    },
    examples: SpikeExamples {
        fires: "irq ns=9000 irq=thermal_apic",
        silent: "irq ns=9000 irq=threshold_apic",
    },
    ..CulpritRule::DEFAULT
};
