//! Programs that may not become real-time.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{GETRLIMIT2, SCHED7};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};

pub static CHECK: CheckRule = CheckRule {
    id: "realtime-limit",
    title: "no right to a real-time priority",
    description: "Without CAP_SYS_NICE a process may set real-time priorities up to RLIMIT_RTPRIO, which is \
                  0 by default: pthread_create or sched_setscheduler fails.",
    rationale: "a program that does not look at what the call returns runs its loop without a real-time \
                policy, behind everything else",
    detection: "By Max realtime priority of /proc/PID/limits and CapEff of its status, where no thread of \
                the process has a real-time policy. A process that gave the right up after it had used it \
                passes.",
    wanted: "a limit at the highest priority of the program, or CAP_SYS_NICE",
    fix: "raise the limit (LimitRTPRIO= of systemd units, rtprio in limits.conf), and end the program where \
          the priority cannot be had",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "sched(7), privileges and resource limits", url: SCHED7 },
        Source { title: "getrlimit(2), RLIMIT_RTPRIO", url: GETRLIMIT2 },
    ],
    reads: &["/proc/PID/limits", "/proc/PID/status", "/proc/PID/task/TID/stat"],
    judge: CheckJudge::Process(judge),
    examples: Examples {
        fires: "thread 101 policy=other\nprocess capabilities=0 rtprio=0",
        silent: "thread 101 policy=other\nprocess capabilities=0 rtprio=90",
        unknown: "thread 101 policy=other\nlimits refused\nprocess capabilities=0",
    },
};

fn judge(program: &ProgramView) -> Judged {
    if program.process.real_time().next().is_some() {
        return Ok(Judgement::pass("it has real-time threads"));
    }
    if program.status()?.capabilities.sys_nice() {
        return Ok(Judgement::pass("it has CAP_SYS_NICE, and no real-time thread"));
    }
    Ok(match program.limits()?.rt_priority.soft {
        Some(0) => {
            Judgement::fail("priority 0, without CAP_SYS_NICE; none of its threads has a real-time policy")
        }
        Some(priority) => Judgement::pass(format!("up to priority {priority}")),
        None => Judgement::pass("there is no limit"),
    })
}
