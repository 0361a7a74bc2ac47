//! The banks of machine checks are polled.

use super::sources::{MCE_CORE_C, SYSFS_MCE};
use super::{Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "machine-check-poll",
    title: "the polling for machine checks",
    looks: "Every five minutes at most a timer on each CPU whose function is mce_timer_fn reads the banks.",
    tell: "By the function's exact name. How long it takes depends on how many banks the processor has.",
    remedy: "lengthen check_interval, at the price that corrected errors are told later; 0 stops the polling",
    kinds: &[Slice::Softirq, Slice::TimerSoftirq],
    sources: &[
        Source { title: "kernel: sysfs-mce, check_interval", url: SYSFS_MCE },
        Source { title: "kernel: arch/x86/kernel/cpu/mce/core.c", url: MCE_CORE_C },
    ],
    evidence: Evidence::Documented,
    cured_by: &["machine-check-polling"],
    provoke: "check_interval of 1 s on x86 hardware",
    matches: |sight| sight.function_in(&["mce_timer_fn"]).map(|function| format!("{function} ran")),
    examples: Examples {
        fires: "softirq ns=40000 function=mce_timer_fn irq=TIMER comm=swapper/1",
        silent: "softirq ns=40000 function=delayed_work_timer_fn irq=TIMER comm=swapper/1",
    },
    ..Culprit::DEFAULT
};
