//! Memory on a disk.

use super::rule::{CheckJudge, CheckRule};
use super::sources::MLOCK2;
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};

pub static CHECK: CheckRule = CheckRule {
    id: "swapped-out",
    title: "swapped-out memory",
    description: "A part of the process's memory was moved to a swap device.",
    rationale: "the thread that touches it next waits for the device: milliseconds",
    detection: "By the line VmSwap of /proc/PID/status.",
    wanted: "none",
    fix: "lock the memory (mlockall), which also reads it back from swap",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[Source { title: "mlock(2)", url: MLOCK2 }],
    reads: &["/proc/PID/status"],
    judge: CheckJudge::Process(judge),
    examples: Examples {
        fires: "process swapped=400",
        silent: "process swapped=0",
        unknown: "status refused",
    },
};

fn judge(program: &ProgramView) -> Judged {
    let swapped = program.status()?.swapped_kib;
    Ok(Judgement::fail_if(swapped > 0, format!("{swapped} KiB are swapped out")))
}
