//! Limits that prevent locking memory.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{GETRLIMIT2, MLOCK2};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};

pub static CHECK: CheckRule = CheckRule {
    id: "memory-lock-limit",
    title: "a limit below the memory that has to be locked",
    description: "Without CAP_IPC_LOCK a process may lock memory up to RLIMIT_MEMLOCK; beyond that mlockall \
                  fails. With MCL_FUTURE, later allocations and new threads fail as well.",
    rationale: "a program that ignores the result of mlockall runs without locked memory",
    detection: "By `Max locked memory` in /proc/PID/limits, CapEff in /proc/PID/status, and the size of the \
                mappings that can be locked.",
    wanted: "a limit above the program's memory, or CAP_IPC_LOCK",
    fix: "raise the limit (LimitMEMLOCK= of systemd units, memlock in limits.conf), and exit if mlockall \
          fails",
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "getrlimit(2), RLIMIT_MEMLOCK", url: GETRLIMIT2 },
        Source { title: "mlock(2)", url: MLOCK2 },
    ],
    reads: &["/proc/PID/limits", "/proc/PID/status", "/proc/PID/smaps"],
    judge: CheckJudge::Process(judge),
    examples: Examples {
        fires: "process capabilities=0 memlock=8388608\n\
                mapping 5500-5501 name=robot rights=r-x flags=rd,ex size=20000",
        silent: "process capabilities=0 memlock=8388608",
        unknown: "limits refused\nprocess capabilities=0",
    },
};

fn judge(program: &ProgramView) -> Judged {
    let status = program.status()?;
    if status.capabilities.ipc_lock() {
        return Ok(Judgement::pass("it has CAP_IPC_LOCK"));
    }
    let Some(limit) = program.limits()?.locked_memory.soft else {
        return Ok(Judgement::pass("there is no limit"));
    };
    let lockable = program.mappings()?.iter().filter(|mapping| mapping.can_be_locked());
    let (open, all) = lockable.fold((0, 0), |(open, all), mapping| {
        (open + if mapping.is_locked() { 0 } else { mapping.size_kib }, all + mapping.size_kib)
    });
    let value = format!(
        "the limit is {} KiB; of {all} KiB that can be locked, {open} KiB are not locked",
        limit / 1024
    );
    Ok(Judgement::fail_if(open > 0 && all > limit / 1024, value))
}
