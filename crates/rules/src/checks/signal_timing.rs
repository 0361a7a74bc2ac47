//! Signals that pace a thread.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{SIGEVENT3, SIGNAL7};
use super::view::{ProgramView, enough};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_phrases;
use facts::process::ProgramThread;

pub static CHECK: CheckRule = CheckRule {
    id: "signal-timing",
    title: "signals that drive the loop",
    description: "The thread is released by a signal: it waits in sigwait, sigsuspend or pause for a POSIX \
                  timer or an interval timer.",
    rationale: "a signal takes locks of the whole process and wakes any thread that accepts it; a handler \
                interrupts the loop at any point, and expirations that follow too fast are merged",
    detection: "By the call in which the thread is seen asleep, and by signal timers that it starts \
                (timer:hrtimer_start).",
    wanted: "clock_nanosleep until an absolute time",
    fix: "let each loop sleep with clock_nanosleep; handle signals in a separate thread without a real-time \
          policy",
    severity: Severity::Medium,
    evidence: EvidenceKind::Practice,
    sources: &[
        Source { title: "signal(7)", url: SIGNAL7 },
        Source { title: "sigevent(3type)", url: SIGEVENT3 },
    ],
    reads: &["/proc/PID/task/TID/syscall", "timer:hrtimer_start"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 101 voluntary=5000\nwait 101 rt_sigtimedwait 7f00,0 times=90",
        silent: "thread 101 voluntary=2\nwait 101 rt_sigtimedwait 7f00,0 times=90",
        unknown: "waits 101 refused",
    },
};

/// Number of wake-ups from which on they may be periodic.
const SEVERAL: u64 = 10;

const CALLS: &[&str] = &["pause", "rt_sigsuspend", "rt_sigtimedwait"];
const TIMERS: &[&str] = &["it_real_fn", "posix_timer_fn"];

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let waits = program.waits(thread)?;
    // A timer of signals is enough evidence: its thread may run in a handler.
    let timers = program.timers(thread).unwrap_or_default();
    let timers =
        timers.into_iter().filter(|(timer, times)| TIMERS.contains(&timer.function.as_str()) && *times > 2);
    let seen = CALLS.iter().filter_map(|call| {
        let times = waits.in_call(call).map(|(_, times)| times).sum::<u64>();
        (times > 0).then(|| format!("asleep in {call} at {times} of {} samples", waits.looks()))
    });
    let timers: Vec<_> = timers.collect();
    let seen: Vec<String> = seen.collect();
    // A thread that handles the signals of a program waits for them all the time.
    if timers.is_empty() && !seen.is_empty() && program.counted(thread)?.voluntary < SEVERAL {
        return Ok(Judgement::pass("it waits for signals, but hardly any arrived"));
    }
    let phrases = truncate_phrases(seen.into_iter().chain(
        timers.iter().map(|(timer, times)| format!("it started timers of {} {times} times", timer.function)),
    ));
    if phrases.is_empty() {
        enough(waits)?;
    }
    Ok(if phrases.is_empty() { Judgement::pass("it waits for no signal") } else { Judgement::fail(phrases) })
}
