//! The clocksource is compared with another one.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{CLOCKSOURCE_C, PARAMETERS};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "clocksource-check",
    title: "the check of the clocksource",
    signature: "Every half second, up to 7.1 from CPU to CPU, a timer whose function is clocksource_watchdog \
                reads a slow clock; an interrupt from another CPU compares the clocks \
                (clocksource_verify_one_cpu, from 7.2 on watchdog_check_skew_remote, each half second on the \
                next CPU). If the processor has tsc_adjust, a timer visits all CPUs every ten minutes \
                (tsc_sync_check_timer_fn).",
    detection: "By the functions' exact names. A period of half a second alone proves nothing: other work \
                has the same period.",
    remedy: "if the TSC is trustworthy, boot with tsc=reliable, which ends the comparison (tsc=nowatchdog \
             keeps tsc_sync_check_timer_fn)",
    kinds: &[SliceKind::Softirq, SliceKind::TimerSoftirq, SliceKind::Ipi],
    sources: &[
        Source { title: "kernel: kernel/time/clocksource.c", url: CLOCKSOURCE_C },
        Source { title: "kernel: kernel-parameters, tsc=", url: PARAMETERS },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["tsc-watchdog"],
    provoke: "a machine whose TSC is not known to be reliable, with the HPET as the watchdog",
    matches: |context| {
        context
            .function_in(&[
                // Up to 7.1; from 7.2 on watchdog_check_skew_remote.
                "clocksource_verify_one_cpu",
                "clocksource_watchdog",
                "tsc_sync_check_timer_fn",
                "watchdog_check_skew_remote",
            ])
            .map(|function| format!("{function} ran"))
    },
    examples: SpikeExamples {
        fires: "softirq ns=40000 function=clocksource_watchdog irq=TIMER comm=swapper/1",
        silent: "softirq ns=40000 function=process_timeout irq=TIMER comm=swapper/1",
    },
    ..CulpritRule::DEFAULT
};
