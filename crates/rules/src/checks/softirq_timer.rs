//! Timers that expire in a soft interrupt on PREEMPT_RT.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{HIGHRES, HRTIMER_C};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_phrases;
use facts::process::ProgramThread;
use model::vocabulary::Preempt;

pub static CHECK: CheckRule = CheckRule {
    id: "softirq-timer",
    title: "a timer that expires in a soft interrupt",
    description: "On PREEMPT_RT only sleeps of real-time threads expire in the timer interrupt. timerfd, \
                  POSIX timers and interval timers wait for the soft interrupt, which is a thread of low \
                  priority.",
    rationale: "the release waits for the soft interrupt's thread, and so for all other soft interrupts and \
                real-time threads of its CPU",
    detection: "By the function and mode of the timers that are started (timer:hrtimer_start). On other \
                kernels all of these expire in the interrupt.",
    wanted: "clock_nanosleep, which expires in the interrupt",
    fix: "sleep with clock_nanosleep in the thread itself, or raise the priority of ktimers/N above the \
          other threads of its CPU",
    severity: Severity::Medium,
    evidence: EvidenceKind::Source,
    sources: &[
        Source { title: "kernel: kernel/time/hrtimer.c, __hrtimer_init", url: HRTIMER_C },
        Source { title: "kernel: high resolution timers", url: HIGHRES },
    ],
    reads: &["timer:hrtimer_start"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "machine preempt=rt\ntimer 101 timerfd_tmrproc mode=0 times=5000",
        silent: "machine preempt=rt\ntimer 101 hrtimer_wakeup mode=8 times=5000",
        unknown: "machine preempt=rt\ntrace refused",
    },
};

/// Functions of user space's timers (fs/timerfd.c, kernel/time/{posix-timers,itimer}.c).
const FUNCTIONS: &[&str] = &["hrtimer_wakeup", "it_real_fn", "posix_timer_fn", "timerfd_tmrproc"];

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    match program.machine.preempt {
        Preempt::Rt => {}
        Preempt::Unknown => {
            return Err(Judgement::unknown(
                "it is not known whether this kernel is \
                                                           PREEMPT_RT",
            ));
        }
        _ => {
            return Err(Judgement::not_applicable(
                "this kernel is not PREEMPT_RT: timers expire in the interrupt",
            ));
        }
    }
    let timers = program.timers(thread)?;
    let soft = timers
        .iter()
        .filter(|(timer, _)| timer.is_hard() == Some(false) && FUNCTIONS.contains(&timer.function.as_str()));
    let soft = truncate_phrases(soft.map(|(timer, times)| format!("{} {times} times", timer.function)));
    if timers.is_empty() {
        return Err(Judgement::not_applicable("it started no timer"));
    }
    Ok(Judgement::fail_if(
        !soft.is_empty(),
        if soft.is_empty() { "none of its timers does".to_owned() } else { soft },
    ))
}
