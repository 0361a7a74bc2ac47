//! Filters of system calls.

use super::rule::{CheckJudge, CheckRule};
use super::sources::SECCOMP;
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};

pub static CHECK: CheckRule = CheckRule {
    id: "system-call-filter",
    title: "a filter of system calls",
    description: "A seccomp filter, as containers and systemd units set, runs a small program before each \
                  system call of the process.",
    rationale: "each call of the loop takes some tenths of a microsecond longer, and more on kernels without \
                a cache of allowed calls",
    detection: "By the line Seccomp of /proc/PID/status.",
    wanted: "no filter, or a short one",
    fix: "run the program without the filter (SystemCallFilter= of systemd units, the seccomp profile of the \
          container), or make fewer calls in the loop",
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    sources: &[Source { title: "kernel: seccomp filters", url: SECCOMP }],
    reads: &["/proc/PID/status"],
    judge: CheckJudge::Process(judge),
    examples: Examples { fires: "process seccomp=2", silent: "process seccomp=0", unknown: "status refused" },
};

fn judge(program: &ProgramView) -> Judged {
    Ok(match program.status()?.seccomp {
        None | Some(0) => Judgement::pass("none"),
        Some(_) => Judgement::fail("each of its system calls is filtered"),
    })
}
