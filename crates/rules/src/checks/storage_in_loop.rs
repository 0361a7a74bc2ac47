//! Disk reads in the loop.

use super::rule::{CheckJudge, CheckRule};
use super::sources::PROC;
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;

pub static CHECK: CheckRule = CheckRule {
    id: "storage-in-loop",
    title: "reading from a disk in the loop",
    description: "A real-time thread causes reads from a storage device while it works, by reading a file or \
                  by touching a mapped one.",
    rationale: "the thread sleeps until the device has answered: 0.1 ms to tens of milliseconds",
    detection: "By read_bytes of /proc/PID/task/TID/io over the window; reads from the page cache do not \
                count.",
    wanted: "none",
    fix: "read files before the loop, or in a thread without a real-time policy",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[Source { title: "kernel: /proc/PID/io", url: PROC }],
    reads: &["/proc/PID/task/TID/io"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 101 fetched=4096",
        silent: "thread 101 reads=500 read=4000",
        unknown: "io 101 refused",
    },
};

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let fetched = program.io(thread)?.fetched_bytes;
    Ok(Judgement::fail_if(
        fetched > 0,
        format!("{} KiB in {}", fetched.div_ceil(1024), thread.window.spoken()),
    ))
}
