//! The lockup detector looks whether the CPU still schedules.

use super::sources::{LOCKUP_WATCHDOGS, WATCHDOG_C};
use super::{Apart, Culprit, Examples};
use crate::rules::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "lockup-detector",
    title: "the lockup detector",
    looks: "Every few seconds a timer interrupt in which watchdog_timer_fn runs, and after it the stopper thread, above all \
           priorities.",
    tell: "By the functions' exact names. The stopper's visit is told as this only where its function is known.",
    remedy: "take this CPU out of kernel.watchdog_cpumask, or start with nowatchdog",
    kinds: &[Slice::TimerIrq, Slice::StopMachine],
    sources: &[
        Source { title: "kernel: lockup detectors", url: LOCKUP_WATCHDOGS },
        Source { title: "kernel: kernel/watchdog.c", url: WATCHDOG_C },
    ],
    evidence: Evidence::Documented,
    cured_by: &["watchdog"],
    provoke: "kernel.watchdog_thresh=1 on a kernel with the soft lockup detector",
    apart: Apart::Never,
    general: false,
    matches: |sight| {
        sight.function_in(&["softlockup_fn", "watchdog_timer_fn"]).map(|function| format!("{function} ran"))
    },
    examples: Examples {
        fires: "timer-irq ns=90000 function=watchdog_timer_fn irq=local_timer",
        silent: "timer-irq ns=90000 function=posix_timer_fn irq=local_timer",
    },
};
