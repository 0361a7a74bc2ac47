//! The followed thread's own system calls, if they are recorded.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{RTAPP, SYSCALLS_H};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "system-call",
    title: "a system call of the thread",
    signature: "Within a late cycle a followed thread runs in the kernel, in a call that it made \
                itself: it writes, allocates, asks for something.",
    detection: "By the events of the call's entry and exit, which `onbeat hunt --syscalls` \
                records of the followed threads alone. Interrupts on top have slices of their \
                own, and so have sleeps within the call.",
    remedy: "make the call before real time begins, or let a thread of lower priority make it; \
             times are read without a call where the clock source allows it",
    kinds: &[SliceKind::Syscall],
    sources: &[
        Source { title: "kernel: monitors of real-time applications", url: RTAPP },
        Source { title: "kernel: include/trace/events/syscalls.h", url: SYSCALLS_H },
    ],
    evidence: EvidenceKind::Documented,
    provoke: "a periodic thread that maps and unmaps 64 MiB in each cycle, and \
              onbeat hunt --syscalls",
    grouping: Grouping::Function,
    fallback: true,
    matches: |context| context.is_victim().then(|| context.slice.evidence.clone()),
    examples: SpikeExamples {
        fires: "victim comm=loop pid=70 prio=19\nsyscall ns=900000 comm=loop pid=70 prio=19 \
                function=munmap evidence=in_the_call",
        silent: "victim comm=loop pid=70 prio=19\nsyscall ns=900000 comm=loop pid=71 prio=19 \
                 function=munmap evidence=in_the_call",
    },
    ..CulpritRule::DEFAULT
};
