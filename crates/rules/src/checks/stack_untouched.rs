//! Stacks whose pages are allocated at their first use.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{MLOCK2, RTAPP};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;
use facts::process::mappings::mapping_at;

pub static CHECK: CheckRule = CheckRule {
    id: "stack-untouched",
    title: "a stack that was not touched in advance",
    description: "A stack is reserved as a whole and filled page by page. The first call that goes deeper \
                  than all before it takes a page fault; that may be the call that handles an error.",
    rationale: "the deepest path of the loop takes a page fault for each new stack page when it runs for the \
                first time",
    detection: "By the pages of the 128 KiB below the thread's stack pointer (/proc/PID/task/TID/syscall, \
                /proc/PID/pagemap), or of its whole stack if that is smaller. If at least 32 KiB are \
                present, the stack counts as touched in advance, and the severity of missing pages is low. \
                How deep the thread will go is not known.",
    wanted: "all of the stack that the thread will ever use is in memory",
    fix: "lock memory with MCL_FUTURE before creating the thread, with an explicit stack size \
          (pthread_attr_setstacksize), or touch the stack once before the loop",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "mlock(2), notes", url: MLOCK2 },
        Source { title: "kernel: real-time application monitors, pagefault", url: RTAPP },
    ],
    reads: &["/proc/PID/smaps", "/proc/PID/task/TID/syscall", "/proc/PID/pagemap"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "stack 101 resident=12",
        silent: "stack 101 resident=128",
        unknown: "waits 101 refused",
    },
};

/// Resident part from which on a stack was touched on purpose: calls alone seldom go deeper.
const TOUCHED_KIB: u64 = 32;

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let mappings = program.mappings()?;
    let pointer = program.looks(thread)?.stack.ok_or_else(|| {
        Judgement::unknown(
            "the thread was never asleep when it was sampled: the position of its stack is not known",
        )
    })?;
    let stack = mapping_at(mappings, pointer);
    let stack = stack.ok_or_else(|| Judgement::unknown("its stack pointer lies in no mapping"))?;
    let pages = program.stack(thread)?;
    let value = format!(
        "{} of {} KiB below its stack pointer are in memory; the stack has {} KiB",
        pages.present_kib, pages.looked_at_kib, stack.size_kib
    );
    let severity = if pages.present_kib < TOUCHED_KIB { Severity::High } else { Severity::Low };
    Ok(Judgement::fail_if(pages.present_kib < pages.looked_at_kib, value).severity(severity))
}
