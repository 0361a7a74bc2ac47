//! The time of day is set.

use super::rule::{CulpritRule, SpikeExamples};
use super::sources::HRTIMER_C;
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "clock-set",
    title: "setting the time of day",
    signature: "An interrupt from another CPU, in which retrigger_next_event runs.",
    detection: "By the function's exact name. The kernel sends it when the wall clock steps, on resume, and \
                when a CPU goes offline. Slewing the clock does not cause it.",
    remedy: "let the time service slew instead of step (chrony: makestep only at the start), and make sure \
             that no other program sets the clock",
    kinds: &[SliceKind::Ipi],
    sources: &[Source { title: "kernel: kernel/time/hrtimer.c, clock_was_set", url: HRTIMER_C }],
    evidence: EvidenceKind::Source,
    provoke: "date -s on another CPU, in a virtual machine",
    matches: |context| {
        context.function_in(FUNCTIONS).map(|function| super::remote_call::asked(function, context.slice))
    },
    examples: SpikeExamples {
        fires: "ipi ns=30000 function=retrigger_next_event irq=call_function from=0 comm=sender",
        silent: "ipi ns=30000 function=hrtimer_interrupt irq=call_function from=0 comm=sender",
    },
    ..CulpritRule::DEFAULT
};

/// Function that other CPUs have to run.
const FUNCTIONS: &[&str] = &["retrigger_next_event"];
