//! The scheduler's tick.

use super::sources::{NO_HZ, TICK_SCHED_C};
use super::{Apart, Culprit, Examples};
use crate::rules::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "tick",
    title: "the tick",
    looks: "A timer interrupt in which the tick's function runs, on many CPUs at the same time where they are not skewed.",
    tell: "By the function's exact name, that of kernels before 6.9 and that of later ones. A tick that only goes before the \
           wake-up of the same interrupt is part of its path and as short.",
    remedy: "stop the tick on this CPU (nohz_full=) where one thread computes for long; for short cycles it costs more than it \
           saves",
    kinds: &[Slice::TimerIrq],
    sources: &[
        Source { title: "kernel: reducing scheduling-clock ticks", url: NO_HZ },
        Source { title: "kernel: kernel/time/tick-sched.c", url: TICK_SCHED_C },
    ],
    evidence: Evidence::Documented,
    cured_by: &["nohz-full", "skew-tick", "tick-off"],
    provoke: "nothing special: every busy CPU has it, CONFIG_HZ times a second",
    apart: Apart::Never,
    general: false,
    matches: |sight| {
        sight
            .function_in(&["tick_nohz_handler", "tick_sched_timer"])
            .map(|function| format!("{function} ran"))
    },
    examples: Examples {
        fires: "timer-irq ns=90000 function=tick_nohz_handler irq=local_timer",
        silent: "timer-irq ns=90000 function=hrtimer_wakeup irq=local_timer",
    },
};
