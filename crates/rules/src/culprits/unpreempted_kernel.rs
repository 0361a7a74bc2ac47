//! A kernel that yields the CPU only at its own checks, or at the end of a system call.

use super::names;
use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{RT_CONFIG, RT_DIFFERENCES};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;
use trace::timeline::NOT_PREEMPTED;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "unpreempted-kernel",
    title: "a kernel that does not preempt its own code",
    signature: "The late thread is awake, and a thread of lower priority continues in a system call, a page \
                fault or a kernel thread until it checks for a reschedule, returns or sleeps. Any program \
                that enters the kernel can cause this, so the threads differ from spike to spike.",
    detection: "By the preemption model (none, voluntary), by preemption being enabled when the timer \
                interrupt arrived, and by that interrupt, or the switch at the end, finding the thread in \
                the kernel. A section with preemption off is a separate rule: it occurs under any model.",
    remedy: "boot with preempt=full if the kernel is built with PREEMPT_DYNAMIC, or use a PREEMPT_RT kernel",
    kinds: &[SliceKind::PreemptOff],
    sources: &[
        Source { title: "kernel: how a real-time kernel differs", url: RT_DIFFERENCES },
        Source { title: "kernel: real-time kernel configuration", url: RT_CONFIG },
    ],
    evidence: EvidenceKind::Observed,
    cured_by: &["preemption-model"],
    provoke: "a kernel booted with preempt=none, and programs that read and write large files on \
              the victim's CPU",
    matches: |context| {
        let (who, evidence) = (&context.slice.who, &context.slice.evidence);
        let late = matches!(context.run.host.preempt.as_str(), "none" | "voluntary");
        let nowhere = who.function.is_empty() && !evidence.contains("found preemption off");
        let known = late && (evidence.starts_with(NOT_PREEMPTED) || nowhere);
        known.then(|| match names::function_with_module(who) {
            function if function.is_empty() => {
                format!("{} kept running in the kernel", names::thread_name(&who.comm))
            }
            function => format!("{} kept running in {function}", names::thread_name(&who.comm)),
        })
    },
    examples: SpikeExamples {
        fires: "host preempt=none\npreempt-off ns=20000000 comm=python3 pid=71 prio=120",
        silent: "host preempt=full\npreempt-off ns=20000000 comm=python3 pid=71 prio=120",
    },
    ..CulpritRule::DEFAULT
};
