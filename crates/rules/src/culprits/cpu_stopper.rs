//! The stopper thread, which no priority is above.

use super::sources::{ISOLATION, STOP_MACHINE_C};
use super::who;
use super::{Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "cpu-stopper",
    title: "the stopper thread at work",
    looks: "The thread migration/N runs in the place of all others, alone or on all CPUs at once.",
    tell: "By the thread. Who asked for it, and from which CPU, is the thread that woke it, unless a softirq or an interrupt did. What it does is told where the timer's interrupt found it with interrupts off: moving a thread, stopping the whole \
           machine for a change of code or a module, or a CPU that goes on or off line.",
    remedy: "set affinities, load modules, switch CPUs on and off and change microcode before real time begins",
    kinds: &[Slice::StopMachine],
    sources: &[
        Source { title: "kernel: kernel/stop_machine.c", url: STOP_MACHINE_C },
        Source { title: "kernel: CPU isolation", url: ISOLATION },
    ],
    evidence: Evidence::Observed,
    cured_by: &["watchdog"],
    provoke: "a kernel module that calls stop_machine with a function that takes long",
    general: true,
    matches: |sight| {
        let who = &sight.slice.who;
        let did = match who::function(who) {
            function if function.is_empty() => "the thread migration ran".to_owned(),
            function => format!("{function} ran in the thread migration"),
        };
        let by = who.asked_by.as_ref().filter(|by| !by.comm.is_empty());
        Some(by.map_or(did.clone(), |by| format!("{did}, asked for by {}", who::thread(&by.comm))))
    },
    examples: Examples {
        fires: "stop-machine ns=20000000 comm=migration/1 pid=19 prio=0 from=0 asked=insmod",
        silent: "thread ns=20000000 comm=migrationd pid=19 prio=0",
    },
    ..Culprit::DEFAULT
};
