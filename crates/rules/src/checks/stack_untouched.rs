//! Stacks whose pages come when they are first used.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{MLOCK2, RTAPP};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;

pub static CHECK: CheckRule = CheckRule {
    id: "stack-untouched",
    title: "a stack that was never touched",
    description: "A stack is reserved as a whole and filled page by page. The first call that goes deeper \
                  than any before it faults, which may be the one that handles an error.",
    rationale: "the deepest path of the loop takes a page fault for each new page of its stack, the first \
                time that it is taken",
    detection: "The stack is the mapping that the thread's stack pointer lies in \
                (/proc/PID/task/TID/syscall); what of it is in memory is in /proc/PID/smaps. 128 KiB count \
                as touched. How deep the thread will go does not show.",
    wanted: "as much of it in memory as the thread will ever use",
    fix: "lock memory with MCL_FUTURE before the thread is made, with a stack size of its own \
          (pthread_attr_setstacksize), or touch the stack once before the loop",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "mlock(2), notes", url: MLOCK2 },
        Source { title: "kernel: real-time application monitors, pagefault", url: RTAPP },
    ],
    reads: &["/proc/PID/smaps", "/proc/PID/task/TID/syscall"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "stack 101 resident=12",
        silent: "stack 101 resident=256",
        unknown: "waits 101 refused",
    },
    ..CheckRule::DEFAULT
};

/// What is deeper than this is taken for touched on purpose.
const TOUCHED_KIB: u64 = 128;

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let mappings = program.mappings()?;
    let by_name = || {
        let own = mappings.iter().find(|mapping| mapping.name == "[stack]");
        own.filter(|_| thread.tid == program.process.pid)
    };
    let stack = match by_name() {
        Some(stack) => stack,
        None => {
            let pointer = program.waits(thread)?.stack.ok_or_else(|| {
                Judgement::unknown(
                    "the thread was never asleep when it was looked at: where its stack is does not show",
                )
            })?;
            let at = program.process.mapping_at(pointer);
            at.ok_or_else(|| Judgement::unknown("its stack pointer lies in no mapping"))?
        }
    };
    let value = format!("{} of {} KiB of the stack are in memory", stack.resident_kib, stack.size_kib);
    Ok(Judgement::fail_if(stack.resident_kib < stack.size_kib.min(TOUCHED_KIB), value))
}
