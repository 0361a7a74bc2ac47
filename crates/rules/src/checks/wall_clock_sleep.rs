//! Schedules on a clock that is set.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{CLOCK_NANOSLEEP2, RTAPP};
use super::view::{ProgramView, enough};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;
use model::text::several;

pub static CHECK: CheckRule = CheckRule {
    id: "wall-clock-sleep",
    title: "a schedule on the wall clock",
    description: "A real-time thread sleeps until a time of CLOCK_REALTIME, the clock that people and NTP \
                  set.",
    rationale: "when the clock is set forward all releases until then come at once, and when it is set \
                back the thread sleeps for that much longer",
    detection: "By the clock of the clock_nanosleep call in which the thread is seen asleep, and by the \
                flag of futex calls with a time-out.",
    wanted: "CLOCK_MONOTONIC",
    fix: "use CLOCK_MONOTONIC for schedules and time-outs (pthread_condattr_setclock for condition \
          variables), and CLOCK_REALTIME for time stamps alone",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "clock_nanosleep(2)", url: CLOCK_NANOSLEEP2 },
        Source { title: "kernel: real-time application monitors, sleep", url: RTAPP },
    ],
    reads: &["/proc/PID/task/TID/syscall"],
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
    let times = sleeps.chain(limits).map(|(_, times)| times).sum::<u64>();
    if times == 0 {
        enough(waits)?;
    }
    Ok(match times {
        0 => Judgement::pass(format!("not at {} at it", several(waits.looks(), "look", "looks"))),
        _ => Judgement::fail(format!("CLOCK_REALTIME, at {times} of {} looks", waits.looks())),
    })
}
