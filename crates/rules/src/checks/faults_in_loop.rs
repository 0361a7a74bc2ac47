//! Page faults during the program's work.

use super::faulting::{FEW, places, takes_memory};
use super::rule::{CheckJudge, CheckRule};
use super::sources::{MLOCK2, RTAPP};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;
use model::text::several;

pub static CHECK: CheckRule = CheckRule {
    id: "faults-in-loop",
    title: "page faults in the loop",
    description: "A real-time thread takes page faults while it works, not only while it starts.",
    rationale: "each fault costs one to hundreds of microseconds in the kernel, or milliseconds if it reads \
                from a disk",
    detection: "By the thread's own counters in /proc/PID/task/TID/stat over the window; their addresses \
                come from exceptions:page_fault_user, which exists on x86. Faults on memory that the loop \
                allocates belong to allocation-in-loop.",
    wanted: "none",
    fix: "touch and lock all memory before the loop, and look at the named places",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "kernel: real-time application monitors, pagefault", url: RTAPP },
        Source { title: "mlock(2), notes", url: MLOCK2 },
    ],
    reads: &["/proc/PID/task/TID/stat", "exceptions:page_fault_user"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 101 faults=50",
        silent: "thread 102 comm=logger policy=other faults=50",
        unknown: "counters 101 refused",
    },
};

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let counted = program.counted(thread)?;
    let faults = counted.minor_faults + counted.major_faults;
    if faults == 0 {
        return Ok(Judgement::pass(format!("none in {}", thread.window.spoken())));
    }
    if counted.major_faults == 0 && takes_memory(program, thread) == Some(true) {
        return Err(Judgement::not_applicable(
            "they are due to memory that it allocates: see allocation-in-loop",
        ));
    }
    let value = format!(
        "{} in {}, {} from a disk{}",
        several(faults, "page fault", "page faults"),
        thread.window.spoken(),
        counted.major_faults,
        places(program, thread)
    );
    let few = faults <= FEW && counted.major_faults == 0;
    Ok(Judgement::fail(value).severity(if few { Severity::Low } else { Severity::High }))
}
