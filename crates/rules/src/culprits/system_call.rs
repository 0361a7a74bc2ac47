//! The followed thread's own system calls, if they are recorded.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{RTAPP, SYSCALLS_H};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "system-call",
    title: "a system call of the thread",
    signature: "Within a late cycle a followed thread runs in the kernel, in one of its own system calls: a \
                write, an allocation, a query.",
    detection: "By the events of the call's entry and exit, which `onbeat hunt --syscalls` records for the \
                followed threads only. Interrupts and sleeps within the call have separate slices.",
    remedy: "make the call before the real-time phase starts, or in a thread of lower priority; reading the \
             time needs no system call if the clocksource allows it",
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
