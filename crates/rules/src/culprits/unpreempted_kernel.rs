//! A kernel that gives the CPU away only where it asks itself, or at the end of a system call.

use super::sources::{RT_CONFIG, RT_DIFFERENCES};
use super::who;
use super::{Culprit, Examples};
use crate::{Evidence, Slice, Source};
use trace::timeline::NOT_PREEMPTED;

pub static CULPRIT: Culprit = Culprit {
    id: "unpreempted-kernel",
    title: "a kernel that does not preempt its own code",
    looks: "The thread that came late is awake, and a thread of lower priority goes on in a system call, a page fault or a kernel \
            thread until that asks whether to switch, ends or sleeps. Any program that calls the kernel does this, so the threads differ \
            from spike to spike.",
    tell: "By the preemption model (none, voluntary), by preemption not being off where the timer's interrupt came in, and by that \
           interrupt, or the switch at the end, finding the thread in the kernel. A section with preemption off is not this: it is \
           there under any model.",
    remedy: "boot with preempt=full where the kernel is built with PREEMPT_DYNAMIC, or run one with PREEMPT_RT",
    kinds: &[Slice::PreemptOff],
    sources: &[
        Source { title: "kernel: how a real-time kernel differs", url: RT_DIFFERENCES },
        Source { title: "kernel: real-time kernel configuration", url: RT_CONFIG },
    ],
    evidence: Evidence::Observed,
    cured_by: &["preemption-model"],
    provoke: "a kernel booted with preempt=none, and programs that read and write large files on the victim's CPU",
    matches: |sight| {
        let (who, evidence) = (&sight.slice.who, &sight.slice.evidence);
        let late = matches!(sight.about.host.preempt.as_str(), "none" | "voluntary");
        let nowhere = who.function.is_empty() && !evidence.contains("found preemption off");
        let known = late && (evidence.starts_with(NOT_PREEMPTED) || nowhere);
        known.then(|| match who::function(who) {
            function if function.is_empty() => format!("{} ran on in the kernel", who::thread(&who.comm)),
            function => format!("{} ran on in {function}", who::thread(&who.comm)),
        })
    },
    examples: Examples {
        fires: "host preempt=none\npreempt-off ns=20000000 comm=python3 pid=71 prio=120",
        silent: "host preempt=full\npreempt-off ns=20000000 comm=python3 pid=71 prio=120",
    },
    ..Culprit::DEFAULT
};
