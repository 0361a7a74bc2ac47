//! Priority 99, which is meant for the kernel.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{RT_DIFFERENCES, SCHED7};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;
use facts::tasks::RtPolicy;

pub static CHECK: CheckRule = CheckRule {
    id: "highest-priority",
    title: "a thread of priority 99",
    description: "Priority 99 is used by kernel threads on which everything else depends: the threads that \
                  move tasks between CPUs, and the watchdogs of some kernels.",
    rationale: "a loop at priority 99 that never sleeps can only be stopped by a reset, and urgent work of \
                the kernel has to wait for it",
    detection: "By policy and priority in /proc/PID/task/TID/stat.",
    wanted: "at most 98, and no higher than its order among the other threads requires",
    fix: "assign priorities by the required order, starting from the lowest that works, and leave 99 to the \
          kernel",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "sched(7)", url: SCHED7 },
        Source { title: "kernel: how realtime kernels differ", url: RT_DIFFERENCES },
    ],
    reads: &["/proc/PID/task/TID/stat"],
    judge: CheckJudge::Thread(judge),
    examples: Examples { fires: "thread 101 policy=rr prio=99", silent: "thread 101 prio=98", unknown: "" },
};

fn judge(_: &ProgramView, thread: &ProgramThread) -> Judged {
    if thread.policy == Some(RtPolicy::Deadline) {
        return Err(Judgement::not_applicable("a deadline thread has no priority"));
    }
    Ok(Judgement::fail_if(thread.priority >= 99, format!("priority {}", thread.priority)))
}
