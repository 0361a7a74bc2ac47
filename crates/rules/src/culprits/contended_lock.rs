//! A lock that another thread or CPU holds.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{LOCK_EVENTS_H, LOCKTYPES};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "contended-lock",
    title: "waiting for a kernel lock",
    signature: "The late thread, or the one that delayed it, waits in the kernel for a lock; the kernel \
                reports when the wait begins and ends.",
    detection: "By the events of lock contention (from 5.19 on), by a spinning function in the stack that \
                the timer interrupt recorded, or by a section with interrupts off that ends with the release \
                of a raw lock right after another CPU left such a section. A single waiter has no event, and \
                in a virtual machine no waiter has one. The slice names the thread that released the lock, \
                by its event (from 7.2 on, for raw locks from 7.3 on, and not in a virtual machine). \
                Otherwise no event names the holder: the slice has no name, and its evidence names the \
                waiter, the place and the threads that ran on the other CPUs.",
    remedy: "see in the stack which lock it is and what takes it on the other CPU; do not let that run while \
             the real-time task runs",
    kinds: &[SliceKind::LockContention],
    sources: &[
        Source { title: "kernel: lock types and their rules", url: LOCKTYPES },
        Source { title: "kernel: include/trace/events/lock.h", url: LOCK_EVENTS_H },
    ],
    evidence: EvidenceKind::Observed,
    cured_by: &["preemption-model", "lock-debugging", "memory-debugging"],
    provoke: "a kernel module that holds a raw spinlock on one CPU while a thread takes it on \
              another",
    grouping: Grouping::Function,
    fallback: true,
    matches: |context| {
        let slice = context.slice;
        Some(match names::function_with_module(&slice.who) {
            _ if !slice.evidence.is_empty() => slice.evidence.clone(),
            function if function.is_empty() => "the kernel's events of contention".to_owned(),
            function => format!("contention in {function}"),
        })
    },
    examples: SpikeExamples {
        fires: "lock-contention ns=20000000 comm=taker prio=9 function=take_lock module=faults",
        silent: "irqs-off ns=20000000 comm=taker prio=9 function=take_lock module=faults",
    },
    ..CulpritRule::DEFAULT
};
