//! A thread of softirqs or of RCU that took the CPU within a cycle.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{PER_CPU_KTHREADS, SOFTIRQ_C};
use super::{rcu_thread, softirq_thread};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "preempted-by-kernel-thread",
    title: "a softirq or RCU thread that preempted",
    signature: "Within a cycle of a followed thread, ksoftirqd/N, ktimers/N or an RCU thread runs on its CPU \
                with a priority at least as high.",
    detection: "By the thread's name and the priorities in the switch away from the followed thread. \
                Softirqs that the timeline names do not match.",
    remedy: "give the kernel threads no higher priority than the system needs, or give the followed thread a \
             higher one; for RCU, offload the callbacks of this CPU (rcu_nocbs=)",
    kinds: &[SliceKind::Preempted],
    sources: &[
        Source { title: "kernel: jitter of per-CPU threads", url: PER_CPU_KTHREADS },
        Source { title: "kernel: kernel/softirq.c", url: SOFTIRQ_C },
    ],
    evidence: EvidenceKind::Documented,
    cured_by: &["kernel-thread-priorities", "rcu-thread-priority", "rcu-callbacks"],
    provoke: "chrt -f -p 90 of ksoftirqd/N, and network traffic on the CPU of a followed thread of lower \
              priority",
    grouping: Grouping::OwnName,
    matches: |context| {
        let of_kernel = |comm: &str| {
            softirq_thread::THREADS.iter().chain(rcu_thread::THREADS).any(|name| comm.starts_with(name))
        };
        context.higher_priority_thread().filter(|_| of_kernel(&context.slice.who.comm))
    },
    examples: SpikeExamples {
        fires: "victim comm=loop pid=70 prio=19\npreempted ns=90000 comm=ksoftirqd/1 pid=22 prio=9",
        silent: "victim comm=loop pid=70 prio=19\npreempted ns=90000 comm=ksoftirqd/1 pid=22 prio=20",
    },
    ..CulpritRule::DEFAULT
};
