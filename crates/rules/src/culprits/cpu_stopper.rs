//! The stopper thread, which is above all priorities.

use super::names;
use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{ISOLATION, STOP_MACHINE_C};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "cpu-stopper",
    title: "the stopper thread at work",
    signature: "The thread migration/N runs in the place of all others, alone or on all CPUs at \
                once.",
    detection: "By the thread. Who asked for it, and from which CPU, is the thread that woke it, \
                unless a softirq or an interrupt did. What it does is told where the timer's \
                interrupt found it with interrupts off: moving a thread, stopping the whole \
                machine for a change of code or a module, or a CPU that goes on or off line. Of \
                that the kernel's events of hotplug name the step that asked for the stop, and \
                the waking of its worker the thread that wanted it; what the CPU itself runs then \
                is in no event.",
    remedy: "set affinities, load modules, switch CPUs on and off and change microcode before \
             real time begins",
    kinds: &[SliceKind::StopMachine],
    sources: &[
        Source { title: "kernel: kernel/stop_machine.c", url: STOP_MACHINE_C },
        Source { title: "kernel: CPU isolation", url: ISOLATION },
    ],
    evidence: EvidenceKind::Observed,
    cured_by: &["watchdog"],
    provoke: "a kernel module that calls stop_machine with a function that takes long",
    fallback: true,
    matches: |context| {
        let who = &context.slice.who;
        let did = match names::function_with_module(who) {
            function if function.is_empty() => "the thread migration ran".to_owned(),
            function => format!("{function} ran in the thread migration"),
        };
        let by = who.asked_by.as_ref().filter(|by| !by.comm.is_empty());
        Some(by.map_or(did.clone(), |by| format!("{did}, asked for by {}", names::thread_name(&by.comm))))
    },
    examples: SpikeExamples {
        fires: "stop-machine ns=20000000 comm=migration/1 pid=19 prio=0 from=0 asked=insmod",
        silent: "thread ns=20000000 comm=migrationd pid=19 prio=0",
    },
    ..CulpritRule::DEFAULT
};
