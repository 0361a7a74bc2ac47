//! Model-specific registers that are read from another CPU.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{MSR_SMP_C, MSR4};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "register-access",
    title: "register access from another CPU",
    signature: "An interrupt from another CPU that runs a function to read or write a model-specific \
                register; the sender is a monitoring program or a driver.",
    detection: "By the functions' exact names in arch/x86/lib/msr-smp.c. The register and its purpose are \
                not visible.",
    remedy: "stop the monitoring program (turbostat, an exporter of metrics, thermald), or let it read only \
             housekeeping CPUs",
    kinds: &[SliceKind::Ipi],
    sources: &[
        Source { title: "msr(4)", url: MSR4 },
        Source { title: "kernel: arch/x86/lib/msr-smp.c", url: MSR_SMP_C },
    ],
    evidence: EvidenceKind::Source,
    provoke: "reading /dev/cpu/N/msr of the victim's CPU in a loop on another one",
    matches: |context| {
        context.function_in(FUNCTIONS).map(|function| super::remote_call::asked(function, context.slice))
    },
    examples: SpikeExamples {
        fires: "ipi ns=30000 function=__rdmsr_safe_on_cpu irq=call_function from=0 comm=sender",
        silent: "ipi ns=30000 function=remote_function irq=call_function from=0 comm=sender",
    },
    ..CulpritRule::DEFAULT
};

/// Functions that other CPUs have to run.
const FUNCTIONS: &[&str] = &[
    "__rdmsr_on_cpu",
    "__rdmsr_safe_on_cpu",
    "__rdmsr_safe_regs_on_cpu",
    "__wrmsr_on_cpu",
    "__wrmsr_safe_on_cpu",
    "__wrmsr_safe_regs_on_cpu",
];
