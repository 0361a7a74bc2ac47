//! Debuggers that are attached.

use super::rule::{CheckJudge, CheckRule};
use super::sources::PTRACE2;
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};

pub static CHECK: CheckRule = CheckRule {
    id: "traced-program",
    title: "a debugger or tracer that is attached",
    description: "Another process traces the program with ptrace: a debugger, strace, or a ptrace-based \
                  sandbox.",
    rationale: "the program stops at each signal, and with strace at each system call, until the tracer \
                resumes it",
    detection: "By the line TracerPid of /proc/PID/status. onbeat itself does not attach to processes.",
    wanted: "nobody",
    fix: "detach it; `onbeat hunt --victim` and trace-cmd observe without stopping the program",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[Source { title: "ptrace(2)", url: PTRACE2 }],
    reads: &["/proc/PID/status"],
    judge: CheckJudge::Process(judge),
    examples: Examples { fires: "process tracer=77", silent: "process tracer=0", unknown: "status refused" },
};

fn judge(program: &ProgramView) -> Judged {
    Ok(match program.status()?.tracer {
        0 => Judgement::pass("no process traces it"),
        tracer => Judgement::fail(format!("process {tracer} traces it")),
    })
}
