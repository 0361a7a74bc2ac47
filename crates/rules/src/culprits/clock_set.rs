//! The time of day is set.

use super::sources::HRTIMER_C;
use super::{Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "clock-set",
    title: "the time of day being set",
    looks: "An interrupt from another CPU, in which retrigger_next_event runs.",
    tell: "By the function's exact name. The kernel asks for it when the wall clock steps, when it resumes, and when a CPU goes \
           offline. Slewing a clock does not.",
    remedy: "let the time service slew instead of step (chrony: makestep only at the start), and let nothing else set the clock",
    kinds: &[Slice::Ipi],
    sources: &[Source { title: "kernel: kernel/time/hrtimer.c, clock_was_set", url: HRTIMER_C }],
    evidence: Evidence::Source,
    provoke: "date -s on another CPU, in a virtual machine",
    matches: |sight| {
        sight.function_in(FUNCTIONS).map(|function| super::remote_call::asked(function, sight.slice))
    },
    examples: Examples {
        fires: "ipi ns=30000 function=retrigger_next_event irq=call_function from=0 comm=sender",
        silent: "ipi ns=30000 function=hrtimer_interrupt irq=call_function from=0 comm=sender",
    },
    ..Culprit::DEFAULT
};

/// What other CPUs are asked to run.
const FUNCTIONS: &[&str] = &["retrigger_next_event"];
