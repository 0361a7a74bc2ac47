//! A timer for the end of an ordinary task's slice, started for another CPU.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{SCHED_CORE_C, SCHED_FEATURES_H};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "slice-timer-start",
    title: "a slice timer started by another CPU",
    signature: "An interrupt from another CPU that runs __hrtick_start: a task there queued an ordinary task \
                on this CPU, and the timer that ends the slice is started here.",
    detection: "By the function's exact name. It runs only with the scheduler's feature HRTICK or HRTICK_DL, \
                which is on by default from 7.1 on where the timer is programmed at kernel exit \
                (HRTIMER_REARM_DEFERRED, as on x86 and RISC-V).",
    remedy: "keep ordinary tasks off this CPU, or switch the feature off",
    kinds: &[SliceKind::Ipi],
    sources: &[
        Source { title: "kernel: kernel/sched/core.c, hrtick_start()", url: SCHED_CORE_C },
        Source { title: "kernel: kernel/sched/features.h, HRTICK", url: SCHED_FEATURES_H },
    ],
    evidence: EvidenceKind::Source,
    cured_by: &["hrtick", "cpu-isolation"],
    provoke: "two busy threads under SCHED_OTHER on the victim's CPU, and a third that another CPU \
              repeatedly wakes there, on Linux 7.3",
    matches: |context| {
        context.function_in(FUNCTIONS).map(|function| super::remote_call::asked(function, context.slice))
    },
    examples: SpikeExamples {
        fires: "ipi ns=9000 function=__hrtick_start irq=call_function_single from=0 comm=sender",
        silent: "ipi ns=9000 function=nohz_csd_func irq=call_function_single from=0 comm=sender",
    },
    ..CulpritRule::DEFAULT
};

/// The function that runs on the other CPU.
const FUNCTIONS: &[&str] = &["__hrtick_start"];
