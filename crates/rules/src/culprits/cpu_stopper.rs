//! The stopper thread, which is above all priorities.

use super::names;
use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{ISOLATION, STOP_MACHINE_C};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "cpu-stopper",
    title: "the stopper thread at work",
    signature: "The thread migration/N preempts all other threads, on one CPU or on all CPUs at once.",
    detection: "By the thread. The requester, and its CPU, is the thread that woke it, unless a softirq or \
                an interrupt did. Its work is known if the timer interrupt found it with interrupts off: \
                moving a thread, stopping the whole machine to patch code or load a module, or a CPU that \
                goes online or offline. In the last case the kernel's hotplug events name the step that \
                requested the stop, and the waking of its worker names the thread behind it; no event shows \
                what the CPU itself runs then.",
    remedy: "set affinities, load modules, switch CPUs on and off and update microcode before the real-time \
             phase starts",
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
