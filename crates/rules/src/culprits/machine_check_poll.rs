//! The banks of machine checks are polled.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{MCE_CORE_C, SYSFS_MCE};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "machine-check-poll",
    title: "polling for machine checks",
    signature: "A timer on each CPU, with the function mce_timer_fn, reads the banks at least every five \
                minutes.",
    detection: "By the function's exact name. How long it takes depends on how many banks the \
                processor has.",
    remedy: "increase check_interval, which delays the report of corrected errors; 0 stops the polling",
    kinds: &[SliceKind::Softirq, SliceKind::TimerSoftirq],
    sources: &[
        Source { title: "kernel: sysfs-mce, check_interval", url: SYSFS_MCE },
        Source { title: "kernel: arch/x86/kernel/cpu/mce/core.c", url: MCE_CORE_C },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["machine-check-polling"],
    provoke: "check_interval of 1 s on x86 hardware",
    matches: |context| context.function_in(&["mce_timer_fn"]).map(|function| format!("{function} ran")),
    examples: SpikeExamples {
        fires: "softirq ns=40000 function=mce_timer_fn irq=TIMER comm=swapper/1",
        silent: "softirq ns=40000 function=delayed_work_timer_fn irq=TIMER comm=swapper/1",
    },
    ..CulpritRule::DEFAULT
};
