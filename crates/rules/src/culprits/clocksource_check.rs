//! The clocksource is compared with another one.

use super::sources::{CLOCKSOURCE_C, PARAMETERS};
use super::{Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "clocksource-check",
    title: "the check of the clocksource",
    looks: "Every half second, from CPU to CPU, a timer whose function is clocksource_watchdog reads a slow clock; or an interrupt \
           from another CPU that compares clocks.",
    tell: "By the functions' exact names. A period of half a second alone would prove nothing: other work has it too.",
    remedy: "say that the TSC is to be trusted, tsc=reliable, where it is: then nothing compares it",
    kinds: &[Slice::Softirq, Slice::TimerSoftirq, Slice::Ipi],
    sources: &[
        Source { title: "kernel: kernel/time/clocksource.c", url: CLOCKSOURCE_C },
        Source { title: "kernel: kernel-parameters, tsc=", url: PARAMETERS },
    ],
    evidence: Evidence::Documented,
    cured_by: &["tsc-watchdog"],
    provoke: "a machine whose TSC is not known to be reliable, with the HPET as the watchdog",
    matches: |sight| {
        sight
            .function_in(&["clocksource_verify_one_cpu", "clocksource_watchdog"])
            .map(|function| format!("{function} ran"))
    },
    examples: Examples {
        fires: "softirq ns=40000 function=clocksource_watchdog irq=TIMER comm=swapper/1",
        silent: "softirq ns=40000 function=process_timeout irq=TIMER comm=swapper/1",
    },
    ..Culprit::DEFAULT
};
