//! Sleeps for a span instead of until a time.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{CLOCK_NANOSLEEP2, RTAPP};
use super::timer_waits::{by_descriptor, by_signal, by_time_out, limited};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;
use facts::process::waits::{Wait, Waits};
use model::text::several;
use trace::activity::ArmedTimer;

pub static CHECK: CheckRule = CheckRule {
    id: "relative-sleep",
    title: "a relative sleep",
    description: "A real-time thread sleeps for an interval (nanosleep, usleep, sleep_for) instead of until \
                  an absolute time (clock_nanosleep with TIMER_ABSTIME, sleep_until).",
    rationale: "the work of the cycle and each delay are added to the period, so the schedule drifts, and a \
                preemption between reading the clock and sleeping is not compensated",
    detection: "By the mode with which its timer is started (timer:hrtimer_start, since Linux 4.16), and by \
                the flags of the call in which it is seen asleep. A wait for a one-shot timerfd counts as \
                well if the timer was set to a relative time. A time-out of a wait for nothing (select() \
                without descriptors) is a relative sleep, and so is that of FUTEX_WAIT if no thread wakes \
                it. If a thread starts timers and was never seen in a sleep until an absolute time, its \
                time-outs may pace it: the verdict is then unknown.",
    wanted: "each sleep ends at an absolute time, computed from the previous release",
    fix: "add the period to the last release and sleep with clock_nanosleep(CLOCK_MONOTONIC, \
          TIMER_ABSTIME, ...)",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "clock_nanosleep(2), notes", url: CLOCK_NANOSLEEP2 },
        Source { title: "kernel: real-time application monitors, sleep", url: RTAPP },
    ],
    reads: &[
        "timer:hrtimer_start",
        "sched:sched_waking",
        "/proc/PID/task/TID/syscall",
        "/proc/PID/fdinfo",
        "raw_syscalls:sys_enter",
    ],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "timer 101 hrtimer_wakeup mode=1 times=5000\nwait 101 clock_nanosleep 1,0 times=90",
        silent: "timer 101 hrtimer_wakeup mode=0 times=5000\nwait 101 clock_nanosleep 1,1 times=90",
        unknown: "trace refused\nwaits 101 refused",
    },
};

/// TIMER_ABSTIME of the flags, the second argument (include/uapi/linux/time.h).
const TIMER_ABSTIME: u64 = 1;

/// Number of sleeps from which on they form a loop; fewer are part of a start or an end.
const SEVERAL: u64 = 3;

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let timers = program.timers(thread);
    let waits = program.waits(thread);
    if let (Err(timers), Err(_)) = (&timers, &waits) {
        return Err(timers.clone());
    }
    let (spans, times) = (started(&timers, true), started(&timers, false));
    let seen = |relative| waits.iter().map(|waits| count_waits(waits, relative)).sum::<u64>();
    let (looks, called) = (seen(true), called(program, thread));
    // A wait with a time-out starts a timer of the same function: the call distinguishes them. If
    // no timer could be recorded, a thread that slept seldom may have been seen in one long sleep.
    let often = match &timers {
        Ok(_) => spans >= SEVERAL,
        Err(_) => program.counted(thread).is_ok_and(|counted| counted.voluntary >= SEVERAL),
    };
    if called >= SEVERAL || (looks > 0 && often) {
        let how = match spans.max(called) {
            0 => format!("in {}", several(looks, "sample", "samples")),
            spans => format!("{} in {}", several(spans, "time", "times"), thread.window.spoken()),
        };
        return Ok(Judgement::fail(format!("it slept for a relative time, {how}")));
    }
    if spans >= SEVERAL {
        return Err(program.needs_calls("it starts timers with relative times, and was never seen asleep"));
    }
    // A wait with a time-out starts an absolute timer, even for a relative time-out
    // (`poll_select_set_timeout()`, `ep_timeout_to_timespec()`).
    if seen(false) + called_until(program, thread) > 0 {
        return Ok(Judgement::pass("it sleeps until an absolute time"));
    }
    let by_timer =
        |waits: &&Waits| by_descriptor(program, thread, waits).or_else(|| by_signal(program, thread, waits));
    if let Some(judged) = waits.as_ref().ok().and_then(by_timer) {
        return judged;
    }
    let for_nothing = for_nothing(&waits);
    if for_nothing > 0 && (times >= SEVERAL || often) {
        let looks = several(for_nothing, "sample", "samples");
        return Ok(Judgement::fail(format!("it waited for nothing with a time-out, in {looks}")));
    }
    if let Some(judged) = waits.as_ref().ok().and_then(|waits| by_time_out(program, thread, waits)) {
        return judged;
    }
    if times >= SEVERAL || waits.as_ref().is_ok_and(|waits| limited(waits) > 0) {
        return Err(program.needs_calls(
            "it was never seen in a sleep until an absolute time, and its waits have time-outs: whether \
             these pace it is not visible",
        ));
    }
    if timers.is_err() && waits.as_ref().is_ok_and(|waits| waits.looks() == waits.running) {
        return Err(Judgement::unknown("it was never asleep when it was sampled"));
    }
    Err(Judgement::not_applicable(match looks + spans + called {
        0 => "it was never seen in a call that sleeps",
        _ => "it slept for a relative time twice at most",
    }))
}

/// Number of sleep timers that were started, for a span or until a time.
fn started(timers: &Result<Vec<(&ArmedTimer, u64)>, Judgement>, relative: bool) -> u64 {
    let own = timers.iter().flatten();
    let own =
        own.filter(|(timer, _)| timer.function == "hrtimer_wakeup" && timer.is_relative() == Some(relative));
    own.map(|(_, times)| times).sum()
}

/// Number of observations in a sleep for a span or until a time.
fn count_waits(waits: &Waits, relative: bool) -> u64 {
    let sleeps = waits.in_call("clock_nanosleep");
    let sleeps =
        sleeps.filter(|(wait, _)| wait.args[1].is_some_and(|flags| (flags & TIMER_ABSTIME == 0) == relative));
    let spans = waits.in_call("nanosleep").filter(|_| relative);
    // A condition's time-out is absolute (FUTEX_WAIT_BITSET is 9; the 4th argument points to it).
    let until = waits.in_call("futex").filter(|(wait, _)| {
        !relative
            && wait.args[1].is_some_and(|op| op & 0x7f == 9)
            && wait.args[3].is_some_and(|limit| limit != 0)
    });
    sleeps.chain(spans).chain(until).map(|(_, times)| times).sum()
}

/// Number of observations in a wait with a time-out for no descriptor at all.
fn for_nothing(waits: &Result<&Waits, Judgement>) -> u64 {
    let is_set = |arg: Option<u64>| arg.is_some_and(|pointer| pointer != 0);
    let limits = |arg: Option<u64>| arg.is_some_and(|span| span as i32 > 0);
    let own = |wait: &Wait| match wait.call {
        "pselect6" => wait.args[0] == Some(0) && is_set(wait.args[4]),
        "ppoll" => wait.args[1] == Some(0) && is_set(wait.args[2]),
        "poll" => wait.args[1] == Some(0) && limits(wait.args[2]),
        _ => false,
    };
    let seen = waits.iter().flat_map(|waits| &waits.seen).filter(|(wait, _)| own(wait));
    seen.map(|(_, times)| times).sum()
}

/// Number of recorded calls to sleep until a time.
fn called_until(program: &ProgramView, thread: &ProgramThread) -> u64 {
    let calls = program.calls(thread);
    let sleeps = calls.iter().flat_map(|calls| &calls.entries).filter(|call| call.name == "clock_nanosleep");
    sleeps
        .filter(|call| call.args.is_some_and(|args| args[1] & TIMER_ABSTIME != 0))
        .map(|call| call.times)
        .sum()
}

/// Number of recorded calls to sleep for a span.
fn called(program: &ProgramView, thread: &ProgramThread) -> u64 {
    let calls = program.calls(thread);
    let entries = calls.iter().flat_map(|calls| &calls.entries);
    let spans = entries.filter(|call| match call.name {
        "clock_nanosleep" => call.args.is_some_and(|args| args[1] & TIMER_ABSTIME == 0),
        name => name == "nanosleep",
    });
    spans.map(|call| call.times).sum()
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::fixture::ExampleProgram;
    use crate::judgement::AuditVerdict::{self, Fail, NotApplicable, Pass, Unknown};

    fn verdict(edits: &str) -> AuditVerdict {
        ExampleProgram::of(edits).findings(&CHECK)[0].finding.verdict
    }

    #[test]
    fn a_loop_that_its_time_outs_pace_sleeps_for_spans() {
        // select() and poll() without descriptors.
        assert_eq!(verdict("wait 101 pselect6 0,0,0,0,7f00 times=90"), Fail);
        assert_eq!(verdict("wait 101 ppoll 0,0,7f00 times=90"), Fail);
        // With descriptors, the end of the wait does not show its cause.
        assert_eq!(verdict("wait 101 pselect6 4,7f,0,0,7f00 times=90"), Unknown);
        assert_eq!(verdict("wait 101 epoll_pwait 4,7f,8,5 times=90"), Unknown);
        assert_eq!(verdict("trace refused\nwait 101 epoll_pwait 4,7f,8,5 times=90"), Unknown);
        // Without a limit there is no timer.
        let for_ever =
            "wait 101 epoll_pwait 4,7f,8,ffffffff times=90\ntimer 101 hrtimer_wakeup mode=0 times=0";
        assert_eq!(verdict(for_ever), NotApplicable);
        // Seen asleep until a time, or recorded in such a call.
        assert_eq!(verdict("wait 101 clock_nanosleep 1,1 times=9"), Pass);
        assert_eq!(verdict("wait 101 futex 5500,189,1,7f00 times=9"), Pass);
        assert_eq!(verdict("wait 101 read 4,0 times=9\ncall 101 clock_nanosleep 1,1 times=50"), Pass);
    }
    #[test]
    fn a_timer_that_a_descriptor_or_a_signal_tells_of() {
        let timer = |keys: &str, rest: &str| {
            let quiet = "timer 101 hrtimer_wakeup mode=0 times=0\nthread 101 voluntary=500";
            format!("{quiet}\ndescriptor 4 kind=timerfd name=x {keys}\n{rest}")
        };
        let read = "wait 101 read 4,0 times=90";
        assert_eq!(verdict(&timer("set=span", read)), Fail);
        assert_eq!(verdict(&timer("set=span every=yes", read)), Pass);
        assert_eq!(verdict(&timer("set=time", read)), Pass);
        let again = format!("{read}\ncall 101 timerfd_settime 4,0 times=500");
        assert_eq!(verdict(&timer("set=span every=yes", &again)), Fail);
        // Another descriptor's, one of several, and one of a thread that sleeps until a time.
        assert_eq!(verdict(&timer("set=span", "wait 101 read 5,0 times=90")), NotApplicable);
        assert_eq!(verdict(&timer("set=span", "wait 101 ppoll 7f,2,0 times=90")), Unknown);
        assert_eq!(verdict(&timer("set=span", "wait 101 clock_nanosleep 1,1 times=90")), Pass);
        let signals = "wait 101 rt_sigtimedwait 7f,7f,0 times=90\ntimer 101 posix_timer_fn mode=0 times=500";
        assert_eq!(verdict(signals), Unknown);
        assert_eq!(verdict(&format!("{signals}\ncall 101 timer_settime 1,0 times=500")), Fail);
        assert_eq!(verdict(&format!("{signals}\ncall 101 timer_settime 1,1 times=500")), Pass);
    }

    #[test]
    fn time_outs_that_others_come_before_pace_nothing() {
        let futex = "thread 101 voluntary=90\nwait 101 futex 5500,80,0,7f00 times=90";
        assert_eq!(verdict(&format!("{futex}\nrelease 101 0 times=90")), Fail);
        assert_eq!(verdict(&format!("{futex}\nrelease 101 102 times=90")), NotApplicable);
        assert_eq!(verdict(futex), Unknown);
        let both = format!("{futex}\nrelease 101 0 times=50\nrelease 101 102 times=40");
        assert_eq!(verdict(&both), Unknown);
        let poll = "thread 101 voluntary=90\nwait 101 ppoll 7f,1,7f00 times=90";
        assert_eq!(verdict(&format!("{poll}\nrelease 101 102 times=90")), NotApplicable);
        // A device, or its time-out.
        assert_eq!(verdict(&format!("{poll}\nrelease 101 0 times=90")), Unknown);
        let recorded = format!("{both}\ncall 101 futex 5500,80 times=90");
        let finding = ExampleProgram::of(&recorded).findings(&CHECK).remove(0).finding;
        assert!(finding.reason.ends_with("its calls do not show it either"), "{}", finding.reason);
    }
}
