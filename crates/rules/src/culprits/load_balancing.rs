//! The scheduler moves threads between CPUs.

use super::sources::PER_CPU_KTHREADS;
use super::{Culprit, Examples};
use crate::{Evidence, Slice, Source};

pub static CULPRIT: Culprit = Culprit {
    id: "load-balancing",
    title: "load balancing of the scheduler",
    looks: "The softirq SCHED runs on the CPU before the thread does, after a tick.",
    tell: "By the softirq's name. The scheduler also uses it when an idle CPU balances for others.",
    remedy: "take the CPU out of load balancing: an isolated cpuset partition, or isolcpus=domain",
    kinds: &[Slice::Softirq],
    sources: &[Source { title: "kernel: jitter of per-CPU threads, SCHED_SOFTIRQ", url: PER_CPU_KTHREADS }],
    evidence: Evidence::Documented,
    cured_by: &["isolation-lists", "cpu-isolation", "cpuset-partition"],
    provoke: "many busy threads without affinity on a machine with many CPUs",
    matches: |sight| (sight.slice.who.irq == "SCHED").then(|| "the softirq SCHED ran".to_owned()),
    examples: Examples {
        fires: "softirq ns=60000 irq=SCHED comm=stress",
        silent: "softirq ns=60000 irq=RCU comm=stress",
    },
    ..Culprit::DEFAULT
};
