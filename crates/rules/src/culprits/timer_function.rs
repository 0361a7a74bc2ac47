//! A timer of the kernel or of a driver, whose function takes time.

use super::rule::{CulpritRule, Grouping, SpikeExamples};
use super::sources::PER_CPU_KTHREADS;
use crate::knob::{EvidenceKind, Source};
use model::slice::SliceKind;

pub static CULPRIT: CulpritRule = CulpritRule {
    id: "timer-function",
    title: "a timer's function",
    signature: "Another timer expires on the CPU before the thread's timer, or in the same interrupt, and \
                its function takes long.",
    detection: "By the function's name. Functions that only wake a thread do not count, nor does the \
                thread's own timer; some timers have separate rules.",
    remedy: "the function shows the driver; a timer expires on the CPU that started it, so keep that work \
             off this CPU",
    kinds: &[SliceKind::Irq, SliceKind::Softirq, SliceKind::TimerSoftirq],
    sources: &[Source { title: "kernel: jitter of per-CPU threads, TIMER_SOFTIRQ", url: PER_CPU_KTHREADS }],
    evidence: EvidenceKind::Documented,
    cured_by: &["timer-migration", "isolation-support"],
    provoke: "a kernel module with a timer whose function takes long",
    grouping: Grouping::Function,
    fallback: true,
    matches: |context| {
        let function = context.timer_function().filter(|function| !WAKING.contains(function))?;
        Some(format!("{function} expired"))
    },
    examples: SpikeExamples {
        fires: "softirq ns=20000000 function=slow_timer module=faults irq=TIMER comm=insmod",
        silent: "timer-softirq ns=20000 function=timerfd_tmrproc irq=HRTIMER comm=ktimers/1",
    },
    ..CulpritRule::DEFAULT
};

/// Functions of timers that only wake a thread.
pub(super) const WAKING: &[&str] = &[
    "alarmtimer_fired",
    "delayed_work_timer_fn",
    "hrtimer_wakeup",
    "it_real_fn",
    "posix_timer_fn",
    "process_timeout",
    "timerfd_alarmproc",
    "timerfd_tmrproc",
];
