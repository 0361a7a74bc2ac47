//! Real-time threads of the same priority on one CPU.

use super::rule::{CheckJudge, CheckRule};
use super::sources::SCHED7;
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::unknown::unknown_from;
use crate::words::truncate_words;
use facts::process::ProgramThread;
use facts::tasks::RtPolicy;
use model::units::{CpuSet, named_cpus};

pub static CHECK: CheckRule = CheckRule {
    id: "same-priority",
    title: "threads of the same priority on one CPU",
    description: "Another real-time thread of the same priority is pinned to the thread's CPU: neither \
                  preempts the other.",
    rationale: "a thread that is released while the other one runs waits until that one sleeps, in an \
                arbitrary order",
    detection: "By policy, priority and affinity of all real-time threads of programs. Threads that may run \
                on several CPUs are not included: the scheduler can move them to another CPU.",
    wanted: "different priorities, or different CPUs",
    fix: "give the thread with the shorter period or the earlier deadline the higher priority, or pin them \
          to different CPUs",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[Source { title: "sched(7), SCHED_FIFO", url: SCHED7 }],
    reads: &["/proc/PID/task/TID/stat", "/proc/PID/task/TID/status"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 102 comm=vision policy=fifo prio=80 cpus=1",
        silent: "thread 102 comm=vision policy=fifo prio=80 cpus=2",
        unknown: "affinity 101 refused",
    },
};

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let allowed = program.allowed(thread)?;
    if thread.policy == Some(RtPolicy::Deadline) {
        return Err(Judgement::not_applicable("a deadline thread has no priority"));
    }
    if allowed.len() != 1 {
        return Err(Judgement::not_applicable("it is not pinned to one CPU: see no-affinity"));
    }
    let beside = |priority: u32, cpus: Option<&CpuSet>| priority == thread.priority && cpus == Some(allowed);
    let own = program.process.real_time().filter(|other| other.tid != thread.tid);
    let own: Vec<String> = own
        .filter(|other| beside(other.priority, other.allowed.known()))
        .map(|other| other.comm.clone())
        .collect();
    let all = &program.machine.others;
    let others = all
        .known()
        .into_iter()
        .flatten()
        .filter(|other| !other.kernel && beside(other.priority, other.allowed.as_ref()));
    let others: Vec<String> = others.map(|other| format!("{} of another process", other.comm)).collect();
    if own.is_empty() && all.known().is_none() {
        return Err(unknown_from("/proc", all));
    }
    if own.is_empty() && others.is_empty() {
        return Ok(Judgement::pass(format!(
            "no other thread of priority {} is pinned to {}",
            thread.priority,
            named_cpus(allowed)
        )));
    }
    let severity = if own.is_empty() { Severity::Low } else { Severity::Medium };
    let named = truncate_words(own.into_iter().chain(others));
    Ok(Judgement::fail(format!("on {} with priority {}: {named}", named_cpus(allowed), thread.priority))
        .severity(severity))
}
