//! A thread that runs softirqs, of higher or equal priority.

use super::sources::{PER_CPU_KTHREADS, SOFTIRQ_C};
use super::{Apart, Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "softirq-thread",
    title: "a softirq thread that goes first",
    looks: "Between the wake-up and the switch to the thread that came late, ksoftirqd/N or ktimers/N runs with a priority as \
           high.",
    tell: "By the thread's name and the priorities in the switch. Softirqs that the timeline shows by their own name are not \
           this.",
    remedy: "give ksoftirqd and ktimers the priority that the system needs and no more; who raised them is a tuning script or the \
           kernel's command line",
    kinds: &[Slice::Thread],
    sources: &[
        Source { title: "kernel: jitter of per-CPU threads, ksoftirqd", url: PER_CPU_KTHREADS },
        Source { title: "kernel: kernel/softirq.c", url: SOFTIRQ_C },
    ],
    evidence: Evidence::Documented,
    cured_by: &["kernel-thread-priorities"],
    provoke: "chrt -f -p 90 of ksoftirqd/N, and network traffic on its CPU",
    apart: Apart::Thread,
    matches: |sight| {
        sight
            .goes_first()
            .filter(|_| ["ksoftirqd/", "ktimers/"].iter().any(|name| sight.slice.who.comm.starts_with(name)))
    },
    examples: Examples {
        fires: "victim comm=onbeat prio=19\nthread ns=900000 comm=ksoftirqd/1 pid=22 prio=9",
        silent: "victim comm=onbeat prio=19\nthread ns=900000 comm=ksoftirqd/1 pid=22 prio=120",
    },
    ..Culprit::DEFAULT
};
