//! The fair server gives the CPU to threads of the fair scheduler.

use super::names;
use super::rule::{CulpritRule, SpikeExamples};
use super::sources::{DEADLINE, SCHED_DEBUG_C};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "fair-server-turn",
    title: "time for the fair server",
    signature: "A runnable real-time thread waits while a thread of the fair scheduler runs, for up to 50 ms \
                per second, at the end of a second in which no other fair thread ran.",
    detection: "By a fair thread that was chosen while a real-time one was runnable, on a kernel with the \
                server (6.12 and later) and with preemption enabled. If the server's timer (dl_task_timer) \
                expired on that CPU right before, the server is confirmed; the same holds for the ext \
                server. The priority at the switch counts: a fair thread with an inherited priority does not \
                match.",
    remedy: "set the server's runtime of this CPU to 0 in debugfs, or let the fair threads of this CPU have \
             some time",
    kinds: &[SliceKind::FairServer],
    sources: &[
        Source { title: "kernel: deadline scheduling, servers", url: DEADLINE },
        Source { title: "kernel: kernel/sched/debug.c", url: SCHED_DEBUG_C },
    ],
    evidence: EvidenceKind::Observed,
    cured_by: &["fair-server", "ext-server"],
    provoke: "a SCHED_FIFO thread that spins and one under SCHED_OTHER that spins, on one CPU, on \
              Linux 6.12",
    fallback: true,
    matches: |context| {
        Some(match context.slice.who.comm.as_str() {
            "" => "a fair thread had the CPU".to_owned(),
            comm => format!("{} had the CPU", names::thread_name(comm)),
        })
    },
    examples: SpikeExamples {
        fires: "fair-server ns=50000000 comm=hog pid=900 prio=120",
        silent: "thread ns=50000000 comm=hog pid=900 prio=120",
    },
    ..CulpritRule::DEFAULT
};
