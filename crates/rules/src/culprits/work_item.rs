//! Work that the kernel deferred to one of its workers.

use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{PER_CPU_KTHREADS, WORKQUEUE};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "work-item",
    title: "a kernel work item",
    signature: "A kernel worker runs a function on the CPU while the thread waits.",
    detection: "By the work's function and the worker's priority. Workers use the fair scheduler: a \
                real-time thread waits for one only if the worker's priority was raised. A worker that \
                delays the thread with preemption off, or because the kernel does not preempt its own code, \
                belongs to those rules.",
    remedy: "keep unbound work on other CPUs (the workqueues' cpumask); for work bound to this CPU find out \
             what queues it, by the function's name",
    kinds: &[SliceKind::Workqueue],
    sources: &[
        Source { title: "kernel: workqueues", url: WORKQUEUE },
        Source { title: "kernel: jitter of per-CPU threads, kworker", url: PER_CPU_KTHREADS },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["workqueue-cpumask", "workqueue-queues", "cpu-isolation"],
    provoke: "a kernel module that queues work on the victim's CPU with a long-running function, and a \
              victim under SCHED_OTHER",
    grouping: Grouping::Function,
    fallback: true,
    matches: |context| {
        (!context.slice.who.function.is_empty())
            .then(|| format!("{} ran in a kernel worker", names::function_with_module(&context.slice.who)))
    },
    examples: SpikeExamples {
        fires: "workqueue ns=20000000 function=slow_work module=faults comm=kworker/1:2 pid=60 \
                prio=120",
        silent: "workqueue ns=20000000 comm=kworker/1:2 pid=60 prio=120",
    },
    ..CulpritRule::DEFAULT
};
