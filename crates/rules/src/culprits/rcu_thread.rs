//! A thread of RCU, of higher or equal priority.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{PARAMETERS, PER_CPU_KTHREADS};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "rcu-thread",
    title: "an RCU thread that runs first",
    signature: "Between the wake-up and the switch to the late thread, rcuc/N, rcub/N or a grace-period \
                thread of RCU runs with a priority at least as high.",
    detection: "By the thread's name and the priorities in the switch. Offloaded callbacks run in rcuop/N \
                and rcuog/N, which use the fair scheduler by default. The callback is named if the timer \
                interrupt found it; on kernels without CONFIG_RCU_TRACE no event names it.",
    remedy: "offload the callbacks of this CPU (rcu_nocbs=) and bind the offload threads to other CPUs, or \
             set the task's priority above rcutree.kthread_prio",
    kinds: &[SliceKind::Thread],
    sources: &[
        Source { title: "kernel: jitter of per-CPU threads, rcuc and rcuo", url: PER_CPU_KTHREADS },
        Source { title: "kernel: kernel-parameters, rcutree.kthread_prio", url: PARAMETERS },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["rcu-thread-priority", "rcu-callbacks", "rcu-offload-affinity", "rcu-nocb-poll"],
    provoke: "rcutree.kthread_prio above the victim's priority, and a load that frees much \
              (closing files, forking) on its CPU",
    grouping: Grouping::Thread,
    matches: |context| {
        context
            .higher_priority_thread()
            .filter(|_| THREADS.iter().any(|name| context.slice.who.comm.starts_with(name)))
    },
    examples: SpikeExamples {
        fires: "victim comm=onbeat prio=98\nthread ns=90000 comm=rcuc/1 pid=23 prio=98",
        silent: "victim comm=onbeat prio=97\nthread ns=90000 comm=rcuc/1 pid=23 prio=98",
    },
    ..CulpritRule::DEFAULT
};

/// Prefixes of the names of its threads.
pub(super) const THREADS: &[&str] =
    &["rcub/", "rcuc/", "rcuog/", "rcuop/", "rcuos/", "rcu_preempt", "rcu_sched"];
