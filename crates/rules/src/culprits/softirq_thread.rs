//! A thread that runs softirqs, of higher or equal priority.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{PER_CPU_KTHREADS, SOFTIRQ_C};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "softirq-thread",
    title: "a softirq thread that goes first",
    signature: "Between the wake-up and the switch to the thread that came late, ksoftirqd/N or \
                ktimers/N runs with a priority as high.",
    detection: "By the thread's name and the priorities in the switch. Softirqs that the timeline \
                shows by their own name are not this. On PREEMPT_RT of 6.12, and later where the \
                kernel has PREEMPT_RT_NEEDS_BH_LOCK (not in Debian's 7.2 and 7.3), code \
                with softirqs off holds a lock of the CPU, and a thread that waits for it lends its \
                priority.",
    remedy: "give ksoftirqd and ktimers the priority that the system needs and no more; who \
             raised them is a tuning script or the kernel's command line",
    kinds: &[SliceKind::Thread],
    sources: &[
        Source { title: "kernel: jitter of per-CPU threads, ksoftirqd", url: PER_CPU_KTHREADS },
        Source { title: "kernel: kernel/softirq.c", url: SOFTIRQ_C },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["kernel-thread-priorities"],
    provoke: "chrt -f -p 90 of ksoftirqd/N, and network traffic on its CPU",
    grouping: Grouping::Thread,
    matches: |context| {
        context
            .higher_priority_thread()
            .filter(|_| THREADS.iter().any(|name| context.slice.who.comm.starts_with(name)))
    },
    examples: SpikeExamples {
        fires: "victim comm=onbeat prio=19\nthread ns=900000 comm=ksoftirqd/1 pid=22 prio=9",
        silent: "victim comm=onbeat prio=19\nthread ns=900000 comm=ksoftirqd/1 pid=22 prio=120",
    },
    ..CulpritRule::DEFAULT
};

/// Prefixes of the names of its threads.
pub(super) const THREADS: &[&str] = &["ksoftirqd/", "ktimers/"];
