//! A timer of another thread that expires on this CPU and only wakes that thread.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::PER_CPU_KTHREADS;
use super::timer_function::WAKING;
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "waking-timer",
    title: "a timer that wakes another thread",
    signature: "A softirq runs the function of a timer that only wakes a thread: a thread that sleeps, or \
                waits with a time-out, started it on this CPU.",
    detection: "By the name of the timer's function. The timer of the late thread itself has separate kinds, \
                and timers that do more than wake a thread have a separate rule.",
    remedy: "keep threads that sleep and wait with time-outs off this CPU: a timer expires on the CPU that \
             started it",
    kinds: &[SliceKind::Softirq],
    sources: &[Source { title: "kernel: jitter of per-CPU threads, TIMER_SOFTIRQ", url: PER_CPU_KTHREADS }],
    evidence: EvidenceKind::Documented,
    cured_by: &["timer-migration", "cpu-isolation"],
    provoke: "a shell loop that sleeps for ten milliseconds, on the CPU of the thread",
    grouping: Grouping::OwnName,
    fallback: true,
    matches: |context| {
        let function = names::bare_function(context.timer_function()?);
        WAKING.contains(&function).then(|| context.slice.evidence.clone())
    },
    examples: SpikeExamples {
        fires: "softirq ns=20000 function=process_timeout irq=TIMER comm=ksoftirqd/1 \
                evidence=the_softirq_TIMER",
        silent: "softirq ns=20000 function=slow_timer module=faults irq=TIMER comm=insmod",
    },
    ..CulpritRule::DEFAULT
};
