//! Schedules on a clock that can be set.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{CLOCK_NANOSLEEP2, RTAPP};
use super::view::{ProgramView, enough};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;
use facts::process::waits::Waits;
use model::text::several;

pub static CHECK: CheckRule = CheckRule {
    id: "wall-clock-sleep",
    title: "a schedule on the wall clock",
    description: "A real-time thread sleeps until a time of CLOCK_REALTIME, the clock that users and NTP \
                  set.",
    rationale: "when the clock is set forward, all releases of the skipped time come at once; when it is set \
                back, the thread sleeps longer by that amount",
    detection: "By the clock of the clock_nanosleep call in which the thread is seen asleep, and by the flag \
                of futex calls with a time-out; by the clock of the timerfd that it reads. If it waits for \
                several descriptors and such a timer is open, the verdict is unknown.",
    wanted: "CLOCK_MONOTONIC",
    fix: "use CLOCK_MONOTONIC for schedules and time-outs (pthread_condattr_setclock for condition \
          variables), and CLOCK_REALTIME only for timestamps",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "clock_nanosleep(2)", url: CLOCK_NANOSLEEP2 },
        Source { title: "kernel: real-time application monitors, sleep", url: RTAPP },
    ],
    reads: &["/proc/PID/task/TID/syscall", "/proc/PID/fdinfo"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "wait 101 clock_nanosleep 0,1 times=90",
        silent: "wait 101 clock_nanosleep 0,0 times=90",
        unknown: "waits 101 refused",
    },
};

/// CLOCK_REALTIME, TIMER_ABSTIME and FUTEX_CLOCK_REALTIME (include/uapi/linux/{time,futex}.h).
const CLOCK_REALTIME: u64 = 0;
const TIMER_ABSTIME: u64 = 1;
const FUTEX_CLOCK_REALTIME: u64 = 256;

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let waits = program.waits(thread)?;
    let sleeps = waits.in_call("clock_nanosleep").filter(|(wait, _)| {
        wait.args[0] == Some(CLOCK_REALTIME) && wait.args[1].is_some_and(|flags| flags & TIMER_ABSTIME != 0)
    });
    // The fourth argument points to the time-out.
    let limits = waits.in_call("futex").filter(|(wait, _)| {
        wait.args[1].is_some_and(|op| op & FUTEX_CLOCK_REALTIME != 0)
            && wait.args[3].is_some_and(|limit| limit != 0)
    });
    let timers = open_timers(program, waits)?;
    let reads = waits.in_call("read").filter(|(wait, _)| timers.iter().any(|own| wait.args[0] == Some(*own)));
    let times = sleeps.chain(limits).chain(reads).map(|(_, times)| times).sum::<u64>();
    if times == 0 {
        enough(waits)?;
        if !timers.is_empty() && WAITS_FOR_SEVERAL.iter().any(|call| waits.in_call(call).next().is_some()) {
            return Err(Judgement::unknown(
                "a timerfd is set to a time of CLOCK_REALTIME; whether the thread waits for it is not \
                 visible",
            ));
        }
    }
    Ok(match times {
        0 => Judgement::pass(format!("not in {}", several(waits.looks(), "sample", "samples"))),
        _ => Judgement::fail(format!("CLOCK_REALTIME, at {times} of {} samples", waits.looks())),
    })
}

/// Calls that wait for any of several descriptors.
const WAITS_FOR_SEVERAL: &[&str] = &["epoll_pwait", "epoll_wait", "poll", "ppoll", "pselect6"];

/// Timers on the wall clock that a thread may wait for by a descriptor; open descriptors are not
/// consulted if it was not seen in such a wait.
fn open_timers(program: &ProgramView, waits: &Waits) -> Result<Vec<u64>, Judgement> {
    let by_descriptor = |call: &str| call == "read" || WAITS_FOR_SEVERAL.contains(&call);
    if !waits.seen.iter().any(|(wait, _)| by_descriptor(wait.call)) {
        return Ok(Vec::new());
    }
    let timers =
        program.descriptors()?.iter().filter(|open| open.timer.is_some_and(|timer| timer.on_wall_clock));
    Ok(timers.map(|open| u64::from(open.number)).collect())
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::fixture::ExampleProgram;
    use crate::judgement::AuditVerdict::{self, Fail, Pass, Unknown};

    fn verdict(edits: &str) -> AuditVerdict {
        ExampleProgram::of(edits).findings(&CHECK)[0].finding.verdict
    }

    #[test]
    fn a_timer_descriptor_has_a_clock() {
        let wall = "descriptor 4 kind=timerfd name=x clock=wall\n";
        let other = "descriptor 4 kind=timerfd name=x\n";
        assert_eq!(verdict(&format!("{wall}wait 101 read 4,0 times=90")), Fail);
        assert_eq!(verdict(&format!("{wall}wait 101 read 5,0 times=90")), Pass);
        assert_eq!(verdict(&format!("{other}wait 101 read 4,0 times=90")), Pass);
        assert_eq!(verdict(&format!("{wall}wait 101 ppoll 7f,1 times=90")), Unknown);
        assert_eq!(verdict(&format!("{other}wait 101 ppoll 7f,1 times=90")), Pass);
        // Descriptor of another thread.
        assert_eq!(verdict(wall), Pass);
    }
}
