//! Timers that wait for ktimers, which a real-time thread keeps from running.

use super::context::SliceContext;
use super::names;
use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::{HRTIMER_C, SOFTIRQ_C};
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;
use model::vocabulary::Preempt;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "starved-timer-thread",
    title: "ktimers delayed by a real-time thread",
    signature: "On PREEMPT_RT the timer interrupt arrives in time, but a thread keeps running whose priority \
                is below that of the late thread and above ktimers/N, which has priority 1; when it stops, \
                ktimers expires the timer and wakes the late thread.",
    detection: "By the priorities, by the kernel being PREEMPT_RT, and by ktimers running after that thread. \
                Timers of clock_nanosleep by real-time threads expire in the interrupt and are not affected; \
                timerfd, POSIX timers and setitimer are.",
    remedy: "wait with clock_nanosleep instead of timerfd or POSIX timers, or give ktimers/N of this CPU a \
             priority above the thread that delayed it",
    kinds: &[SliceKind::Thread],
    sources: &[
        Source { title: "kernel: kernel/softirq.c, ktimers", url: SOFTIRQ_C },
        Source { title: "kernel: kernel/time/hrtimer.c, hrtimer_interrupt", url: HRTIMER_C },
    ],
    evidence: EvidenceKind::Observed,
    cured_by: &["kernel-thread-priorities", "realtime-neighbours"],
    provoke: "a victim of priority 80 that waits by timerfd, and a thread of priority 10 that \
              spins on its CPU, on PREEMPT_RT",
    grouping: Grouping::Thread,
    matches,
    examples: SpikeExamples {
        fires: "host preempt=rt\nvictim comm=waiter prio=19\nthread ns=20000000 comm=hog pid=812 \
                prio=89\ntimer-softirq ns=20000 comm=ktimers/1 pid=20 prio=98 irq=HRTIMER",
        silent: "host preempt=rt\nvictim comm=waiter prio=19\nthread ns=20000000 comm=hog pid=812 \
                 prio=89\ntimer-softirq ns=20000 comm=ksoftirqd/1 pid=21 prio=120 irq=TIMER",
    },
    ..CulpritRule::DEFAULT
};

/// The kernel's priority of ktimers, SCHED_FIFO 1, unless it was raised.
const KTIMERS: i32 = 98;

fn matches(context: &SliceContext) -> Option<String> {
    let (who, slices) = (&context.slice.who, &context.spike.slices);
    let between = context.spike.victim.prio < who.prio && who.prio <= KTIMERS && !who.comm.is_empty();
    // Equal slices are distinguished by their starts: a later one by time or, with the same time,
    // by its place.
    let place = slices.iter().position(|slice| slice == context.slice)?;
    let after = slices.iter().skip(place + 1).any(|slice| slice.who.comm.starts_with("ktimers/"));
    let rt = context.run.host.preempt == Preempt::Rt;
    (between && after && rt).then(|| format!("{} ran before ktimers", names::thread_with_priority(who)))
}
