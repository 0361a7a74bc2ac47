//! Real-time threads that may run anywhere.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{ISOLATION, SCHED7};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::unknown::unknown_from;
use crate::words::cpu_list;
use facts::process::ProgramThread;
use facts::tasks::RtPolicy;
use model::text::several;

pub static CHECK: CheckRule = CheckRule {
    id: "no-affinity",
    title: "a real-time thread that is not pinned",
    description: "The thread may run on every CPU of the machine, so the scheduler chooses a CPU at each \
                  wake-up, whatever else runs there.",
    rationale: "each migration costs cold caches, the wake-up may go to a CPU that is in a deep idle state \
                or busy with interrupts, and no CPU can be isolated for it",
    detection: "By Cpus_allowed_list of /proc/PID/task/TID/status. Several CPUs, but not all, have a low \
                severity: they may be a separate partition.",
    wanted: "one CPU, reserved for it",
    fix: "pin the thread before it becomes real-time (pthread_attr_setaffinity_np, sched_setaffinity, \
          taskset), preferably to an isolated CPU",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "kernel: CPU isolation", url: ISOLATION },
        Source { title: "sched(7)", url: SCHED7 },
    ],
    reads: &[
        "/proc/PID/task/TID/status",
        "/proc/PID/task/TID/stat",
        "/sys/devices/system/cpu/online",
        "sched:sched_migrate_task",
    ],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 101 cpus=0-3 seen=1-2",
        silent: "thread 102 comm=logger policy=other cpus=0-3",
        unknown: "affinity 101 refused",
    },
};

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    // sched_setattr() refuses a deadline thread whose CPUs are not all of its root domain
    // (Documentation/scheduler/sched-deadline.rst, section 5).
    if thread.policy == Some(RtPolicy::Deadline) {
        return Err(Judgement::not_applicable("the kernel places deadline threads by their deadlines"));
    }
    let allowed = program.allowed(thread)?;
    let online = &program.machine.online;
    let online = online.known().ok_or_else(|| unknown_from("/sys/devices/system/cpu/online", online))?;
    let usable = allowed.and(online);
    if usable.len() < 2 {
        let alone = if online.len() < 2 { ", the only one" } else { "" };
        return Ok(Judgement::pass(format!("{}{alone}", cpu_list(&usable))));
    }
    let seen = thread.seen_on.len();
    let value = format!(
        "it may run on {}{}",
        cpu_list(&usable),
        match (moves(program, thread), seen) {
            (moves @ 1.., _) => format!(", and migrated {}", several(moves, "time", "times")),
            (0, 2..) => format!(", and was seen on {seen} of them"),
            _ => String::new(),
        }
    );
    let all = usable.len() == online.len();
    Ok(Judgement::fail(value).severity(if all { Severity::Medium } else { Severity::Low }))
}

/// Number of migrations to another CPU, as far as they were recorded.
fn moves(program: &ProgramView, thread: &ProgramThread) -> u64 {
    program.done(thread, "sched:sched_migrate_task").map_or(0, |own| own.migrations)
}
