//! A thread that runs softirqs, of higher or equal priority.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{PER_CPU_KTHREADS, SOFTIRQ_C};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "softirq-thread",
    title: "a softirq thread that runs first",
    signature: "Between the wake-up and the switch to the late thread, ksoftirqd/N or ktimers/N runs with a \
                priority at least as high.",
    detection: "By the thread's name and the priorities in the switch. Softirqs that the timeline names do \
                not match. On PREEMPT_RT 6.12, and on later kernels with PREEMPT_RT_NEEDS_BH_LOCK (not \
                Debian's 7.2 and 7.3), code with softirqs off holds a per-CPU lock, and a thread that waits \
                for it lends its priority.",
    remedy: "give ksoftirqd and ktimers no higher priority than the system needs; a tuning script or the \
             kernel's command line has raised it",
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
