//! Sleeps for a span instead of until a time.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{CLOCK_NANOSLEEP2, RTAPP};
use super::view::{ProgramView, needs_calls};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;
use facts::process::waits::Waits;
use model::text::several;
use trace::activity::ArmedTimer;

pub static CHECK: CheckRule = CheckRule {
    id: "relative-sleep",
    title: "a sleep for a span of time",
    description: "A real-time thread sleeps for a span (nanosleep, usleep, sleep_for) instead of until a \
                  time (clock_nanosleep with TIMER_ABSTIME, sleep_until).",
    rationale: "the cycle's own work and each delay are added to the period, so that the schedule drifts, \
                and a preemption between reading the clock and sleeping goes unnoticed",
    detection: "By the mode with which its timer is started (timer:hrtimer_start, since Linux 4.16), and by \
                the flags of the call in which it is seen asleep. A time-out that only limits a wait for \
                something else is not looked at.",
    wanted: "sleeps until a time that is counted from the one before",
    fix: "add the period to the last release and sleep with clock_nanosleep(CLOCK_MONOTONIC, \
          TIMER_ABSTIME, ...)",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "clock_nanosleep(2), notes", url: CLOCK_NANOSLEEP2 },
        Source { title: "kernel: real-time application monitors, sleep", url: RTAPP },
    ],
    reads: &["timer:hrtimer_start", "/proc/PID/task/TID/syscall"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "timer 101 hrtimer_wakeup mode=1 times=5000\nwait 101 clock_nanosleep 1,0 times=90",
        silent: "timer 101 hrtimer_wakeup mode=0 times=5000\nwait 101 clock_nanosleep 1,1 times=90",
        unknown: "trace refused\nwaits 101 refused",
    },
};

/// TIMER_ABSTIME of the flags, the second argument (include/uapi/linux/time.h).
const TIMER_ABSTIME: u64 = 1;

/// A single one is a start or an end, no loop.
const SEVERAL: u64 = 3;

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let timers = program.timers(thread);
    let waits = program.waits(thread);
    if let (Err(timers), Err(_)) = (&timers, &waits) {
        return Err(timers.clone());
    }
    let (spans, times) = (started(&timers, true), started(&timers, false));
    let seen = |relative| waits.iter().map(|waits| seen(waits, relative)).sum::<u64>();
    let (looks, called) = (seen(true), called(program, thread));
    // A wait with a time-out starts a timer of the same function: the call tells them apart. Where
    // no timer could be recorded, a thread that slept seldom may have been seen in one long sleep.
    let often = match &timers {
        Ok(_) => spans >= SEVERAL,
        Err(_) => program.counted(thread).is_ok_and(|counted| counted.voluntary >= SEVERAL),
    };
    if called >= SEVERAL || (looks > 0 && often) {
        let how = match spans.max(called) {
            0 => format!("at {} at it", several(looks, "look", "looks")),
            spans => format!("{} in {}", several(spans, "time", "times"), thread.window.spoken()),
        };
        return Ok(Judgement::fail(format!("it slept for a span, {how}")));
    }
    if spans >= SEVERAL {
        return Err(needs_calls("it starts timers for a span, and was in no sleep when it was looked at"));
    }
    if times + seen(false) > 0 {
        return Ok(Judgement::pass("it sleeps until a time"));
    }
    if timers.is_err() && waits.as_ref().is_ok_and(|waits| waits.looks() == waits.running) {
        return Err(Judgement::unknown("it was never asleep when it was looked at"));
    }
    Err(Judgement::not_applicable("it was not seen to sleep by a timer, or once at most"))
}

/// How many timers for sleeping were started, for a span or until a time.
fn started(timers: &Result<Vec<(&ArmedTimer, u64)>, Judgement>, relative: bool) -> u64 {
    let own = timers.iter().flatten();
    let own =
        own.filter(|(timer, _)| timer.function == "hrtimer_wakeup" && timer.is_relative() == Some(relative));
    own.map(|(_, times)| times).sum()
}

/// At how many looks it was in a sleep for a span or until a time.
fn seen(waits: &Waits, relative: bool) -> u64 {
    let told = waits.in_call("clock_nanosleep");
    let told =
        told.filter(|(wait, _)| wait.args[1].is_some_and(|flags| (flags & TIMER_ABSTIME == 0) == relative));
    let spans = waits.in_call("nanosleep").filter(|_| relative);
    told.chain(spans).map(|(_, times)| times).sum()
}

/// How many sleeps for a span were recorded as calls.
fn called(program: &ProgramView, thread: &ProgramThread) -> u64 {
    let calls = program.calls(thread);
    let made = calls.iter().flat_map(|calls| &calls.made);
    let spans = made.filter(|call| match call.name {
        "clock_nanosleep" => call.args.is_some_and(|args| args[1] & TIMER_ABSTIME == 0),
        name => name == "nanosleep",
    });
    spans.map(|call| call.times).sum()
}
