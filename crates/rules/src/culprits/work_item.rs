//! Work that the kernel put off to one of its workers.

use super::sources::{PER_CPU_KTHREADS, WORKQUEUE};
use super::who;
use super::{Apart, Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "work-item",
    title: "a work item of the kernel",
    looks: "A kernel worker runs a function on the CPU while the thread waits.",
    tell: "By the work's function and the worker's priority. Workers are under the fair scheduler: a real-time thread waits for one only if \
           its priority was raised, which shows where no switch was due. One that is in the way with preemption off, or because the kernel does not preempt its own \
           code, is shown as that.",
    remedy: "keep unbound work to other CPUs (the workqueues' cpumask); for work bound to this CPU find what queues it, by the \
           function's name",
    kinds: &[Slice::Workqueue],
    sources: &[
        Source { title: "kernel: workqueues", url: WORKQUEUE },
        Source { title: "kernel: jitter of per-CPU threads, kworker", url: PER_CPU_KTHREADS },
    ],
    evidence: Evidence::Documented,
    cured_by: &["workqueue-cpumask", "workqueue-queues", "cpu-isolation"],
    provoke: "a kernel module that queues work on the victim's CPU whose function takes long, and a victim under SCHED_OTHER",
    apart: Apart::Function,
    general: true,
    matches: |sight| {
        (!sight.slice.who.function.is_empty())
            .then(|| format!("{} ran in a kernel worker", who::function(&sight.slice.who)))
    },
    examples: Examples {
        fires: "workqueue ns=20000000 function=slow_work module=faults comm=kworker/1:2 pid=60 prio=120",
        silent: "workqueue ns=20000000 comm=kworker/1:2 pid=60 prio=120",
    },
    ..Culprit::DEFAULT
};
