//! A call of the followed thread that waits in the kernel within a cycle.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{LOCKTYPES, RTAPP};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "blocked-in-kernel",
    title: "a call that waits in the kernel",
    signature: "Within a cycle a followed thread sleeps in the kernel, but not for its next release: it \
                waits for a device, a file, a terminal, a pipe, or a lock inside the kernel.",
    detection: "By the kernel stack at the switch: its innermost function outside of the scheduler. Futexes \
                have separate rules. `onbeat hunt --syscalls` shows which system call waited.",
    remedy: "keep calls that may wait out of the cycle: pass the data to a thread of lower priority that \
             makes them; open, log and allocate before the real-time phase starts; `onbeat check --syscalls` \
             lists the calls",
    kinds: &[SliceKind::Blocked],
    sources: &[
        Source { title: "kernel: monitors of real-time applications", url: RTAPP },
        Source { title: "kernel: lock types and their rules", url: LOCKTYPES },
    ],
    evidence: EvidenceKind::Documented,
    provoke: "a periodic thread that writes in each cycle to a terminal that no program reads",
    grouping: Grouping::OwnName,
    fallback: true,
    matches: |context| (!context.slice.who.function.is_empty()).then(|| context.slice.evidence.clone()),
    examples: SpikeExamples {
        fires: "blocked ns=9000000 comm=kworker/1:1 pid=30 prio=120 function=n_tty_write \
                evidence=it_slept_in_a_call",
        silent: "blocked ns=9000000 comm=kworker/1:1 pid=30 prio=120 evidence=it_slept",
    },
    ..CulpritRule::DEFAULT
};
