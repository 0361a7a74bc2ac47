//! Waits for a timer that was set by a separate call: by a descriptor (timerfd), or by signals
//! (timer_settime).
//!
//! Source: timerfd_create(2), timer_settime(2), fs/timerfd.c, kernel/time/posix-timers.c.

use super::view::ProgramView;
use crate::judgement::{Judged, Judgement};
use facts::process::ProgramThread;
use facts::process::waits::{Wait, Waits};
use model::text::several;

/// TIMER_ABSTIME and TFD_TIMER_ABSTIME of the flags, the second argument of both calls.
const ABSTIME: u64 = 1;

/// Number of settings from which on they form a loop; fewer are part of a start or an end.
const SEVERAL: u64 = 3;

/// Calls that wait for any of several descriptors.
const WAITS_FOR_SEVERAL: &[&str] = &["epoll_pwait", "epoll_wait", "poll", "ppoll", "pselect6"];

/// Calls that wait for a signal.
const WAITS_FOR_SIGNALS: &[&str] = &["pause", "rt_sigsuspend", "rt_sigtimedwait"];

/// Judgement of a thread that waits for a timer's descriptor; none for one that was not seen in
/// such a wait.
pub fn by_descriptor(program: &ProgramView, thread: &ProgramThread, waits: &Waits) -> Option<Judged> {
    let several_at_once = WAITS_FOR_SEVERAL.iter().any(|call| waits.in_call(call).next().is_some());
    if !several_at_once && waits.in_call("read").next().is_none() {
        return None;
    }
    let open = match program.descriptors() {
        Ok(open) => open.iter().filter_map(|open| Some((u64::from(open.number), open.timer?))),
        Err(unknown) => return Some(Err(unknown)),
    };
    let timers: Vec<_> = open.collect();
    let read = |number: u64| {
        let looks = waits.in_call("read").filter(|(wait, _)| wait.args[0] == Some(number));
        looks.map(|(_, times)| times).sum::<u64>()
    };
    let slept = program.counted(thread).is_ok_and(|counted| counted.voluntary >= SEVERAL);
    let waited: Vec<_> = timers.iter().filter(|(number, _)| read(*number) > 0).collect();
    for &&(number, timer) in &waited {
        let set = spans_set(program, thread, "timerfd_settime", Some(number));
        // A one-shot timer has to be set again for each sleep.
        if set >= SEVERAL || (timer.relative && !timer.periodic && slept) {
            return Some(Ok(Judgement::fail(format!(
                "it waits for a timer that is set to a relative time each time (timerfd, descriptor \
                 {number}), in {}",
                several(read(number), "sample", "samples")
            ))));
        }
    }
    if !waited.is_empty() {
        return Some(Ok(Judgement::pass(
            "it waits for a timer (timerfd) that is periodic or set to an \
                                        absolute time",
        )));
    }
    let spans = timers.iter().any(|(_, timer)| timer.relative && !timer.periodic);
    (several_at_once && spans).then(|| {
        Err(Judgement::unknown(
            "a timerfd is set to a relative time; whether the thread waits for that one, among several \
             descriptors, is not visible",
        ))
    })
}

/// Judgement of a thread that waits for signals, which a timer may send; none for one that was not
/// seen in such a wait, or that set no timer.
pub fn by_signal(program: &ProgramView, thread: &ProgramThread, waits: &Waits) -> Option<Judged> {
    let waited = WAITS_FOR_SIGNALS.iter().flat_map(|call| waits.in_call(call)).next().is_some();
    if !waited {
        return None;
    }
    let set = spans_set(program, thread, "timer_settime", None);
    if set >= SEVERAL {
        let usage = format!(
            "it set a timer to a relative time {set} times (timer_settime), and waits for its \
                            signal"
        );
        return Some(Ok(Judgement::fail(usage)));
    }
    // A periodic timer is restarted when its signal is delivered (`posixtimer_rearm()`), always to
    // an absolute time: whether the first start was for a span makes no difference.
    let timers = program.timers(thread).unwrap_or_default();
    let started = timers.iter().filter(|(timer, _)| timer.function == "posix_timer_fn");
    if started.map(|(_, times)| times).sum::<u64>() < SEVERAL {
        return None;
    }
    Some(match program.calls(thread) {
        Some(calls) if calls.complete => {
            Ok(Judgement::pass("it waits for signals, and sets no timer to a relative time"))
        }
        _ => Err(program.needs_calls(
            "it waits for signals, which a timer may send; whether that timer is periodic or set to a \
             relative time each time is not visible",
        )),
    })
}

/// Number of times that a thread set a timer for a span, by its recorded calls.
fn spans_set(program: &ProgramView, thread: &ProgramThread, name: &str, number: Option<u64>) -> u64 {
    let calls = program.calls(thread);
    let entries = calls.iter().flat_map(|calls| &calls.entries).filter(|call| call.name == name);
    let spans = entries.filter(|call| {
        call.args.is_some_and(|args| number.is_none_or(|own| args[0] == own) && args[1] & ABSTIME == 0)
    });
    spans.map(|call| call.times).sum()
}

/// True for a wait for a futex with a relative time-out: that of FUTEX_WAIT (0) is relative, those
/// of all other commands are absolute (futex(2)). The fourth argument points to it.
pub fn is_futex_span(wait: &Wait) -> bool {
    wait.call == "futex"
        && wait.args[1].is_some_and(|op| op & 0x7f == 0)
        && wait.args[3].is_some_and(|limit| limit != 0)
}

/// True for a wait for some descriptors, with a time-out.
fn is_limited(wait: &Wait) -> bool {
    let is_set = |arg: Option<u64>| arg.is_some_and(|pointer| pointer != 0);
    // Milliseconds in an int; negative ones are no limit.
    let limits = |arg: Option<u64>| arg.is_some_and(|span| span as i32 > 0);
    match wait.call {
        "pselect6" => is_set(wait.args[0]) && is_set(wait.args[4]),
        "ppoll" => is_set(wait.args[1]) && is_set(wait.args[2]),
        "poll" => is_set(wait.args[1]) && limits(wait.args[2]),
        "epoll_wait" | "epoll_pwait" => limits(wait.args[3]),
        _ => false,
    }
}

/// Judgement by the ends of waits with time-outs, if they show whether these pace the thread.
pub fn by_time_out(program: &ProgramView, thread: &ProgramThread, waits: &Waits) -> Option<Judged> {
    // Only its timer ends the wait for a futex by an interrupt; a poll may also end by a device.
    let [expired, given] = program.ended_by(thread, &is_futex_span).ok()?;
    if expired >= SEVERAL && given == 0 {
        let times = several(expired, "time", "times");
        return Some(Ok(Judgement::fail(format!(
            "its futex waits with a relative time-out (FUTEX_WAIT) ended by the time-out, {times} of those \
             that were seen"
        ))));
    }
    let [other, message] = program.ended_by(thread, &is_limited).ok()?;
    let limited = waits.seen.iter().any(|(wait, _)| is_limited(wait) || is_futex_span(wait));
    let ended = expired + other == 0 && given + message >= SEVERAL;
    (limited && ended)
        .then(|| Err(Judgement::not_applicable("other threads end its waits before their time-outs")))
}

/// Number of observations in a wait with a time-out for something.
pub fn limited(waits: &Waits) -> u64 {
    let own = waits.seen.iter().filter(|(wait, _)| is_limited(wait) || is_futex_span(wait));
    own.map(|(_, times)| times).sum()
}
