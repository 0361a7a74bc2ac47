//! Output by a real-time thread.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{PROC, TTY};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_words;
use facts::process::ProgramThread;
use facts::process::descriptors::{Descriptor, OpenKind};
use model::text::several;

pub static CHECK: CheckRule = CheckRule {
    id: "writes-in-loop",
    title: "output by a real-time thread",
    description: "A real-time thread writes to a terminal, a console, a file, a pipe or a socket while it \
                  works: by printf, by a log, by write.",
    rationale: "the call waits for locks of the terminal or of the file system, for a full pipe, or for a \
                slow line: a character takes 87 us at 115200 baud",
    detection: "By the thread's counters of writing calls (/proc/PID/task/TID/io) and what the process has \
                open for writing. A thread whose writes are all of eight bytes, in a process with an \
                eventfd, may only wake another. Which descriptor it was is told with --syscalls, or where \
                a file's position moved.",
    wanted: "no output by real-time threads",
    fix: "hand messages to a thread without a real-time policy, through a ring of fixed size that is never \
          waited for, and let that thread write",
    severity: Severity::High,
    evidence: EvidenceKind::Practice,
    sources: &[
        Source { title: "kernel: TTY", url: TTY },
        Source { title: "kernel: /proc/PID/io", url: PROC },
    ],
    reads: &["/proc/PID/task/TID/io", "/proc/PID/fd", "/proc/PID/fdinfo", "raw_syscalls:sys_enter"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 101 writes=500 written=20000\ndescriptor 1 kind=terminal name=3",
        silent: "thread 101 writes=500 written=4000\ndescriptor 5 kind=eventfd",
        unknown: "io 101 refused",
    },
    ..CheckRule::DEFAULT
};

const CALLS: &[&str] = &["write", "writev", "pwrite64", "sendto", "sendmsg"];

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    if let Some(calls) = program.calls(thread) {
        return by_calls(program, &calls);
    }
    let counted = program.io(thread)?;
    if counted.writes == 0 {
        return Ok(Judgement::pass(format!("it wrote nothing in {}", program.span())));
    }
    let open: Vec<&Descriptor> =
        program.descriptors()?.iter().filter(|open| open.writable && open.kind != OpenKind::Other).collect();
    let wakes = open.iter().any(|open| open.kind == OpenKind::Eventfd);
    if wakes && counted.written_bytes == 8 * counted.writes {
        return Ok(Judgement::pass(format!("it wakes others through an eventfd, {} times", counted.writes)));
    }
    let said = format!(
        "it wrote {} times, {} in all, in {}",
        counted.writes,
        several(counted.written_bytes, "byte", "bytes"),
        program.span()
    );
    let moved: Vec<&&Descriptor> = open.iter().filter(|open| open.moved).collect();
    let (how, named) = match moved.is_empty() {
        false => ("; what moved meanwhile", moved.into_iter().map(|open| open.words()).collect::<Vec<_>>()),
        true => (
            "; open for writing",
            open.iter().filter(|open| open.kind != OpenKind::Eventfd).map(|open| open.words()).collect(),
        ),
    };
    let named = truncate_words(named);
    let named = if named.is_empty() { named } else { format!("{how}: {named}") };
    Ok(Judgement::fail(said + &named))
}

fn by_calls(program: &ProgramView, calls: &[(&'static str, [u64; 2], u64)]) -> Judged {
    let open = program.descriptors()?;
    let mut harmless = 0;
    let mut said = Vec::new();
    for (name, args, times) in calls.iter().filter(|(name, ..)| CALLS.contains(name)) {
        let to = open.iter().find(|open| u64::from(open.number) == args[0]);
        if to.is_some_and(|open| open.kind == OpenKind::Eventfd) {
            harmless += times;
            continue;
        }
        let to = to.map_or_else(|| format!("descriptor {}", args[0]), Descriptor::words);
        said.push((format!("{name} to {to}"), *times));
    }
    let mut sums: Vec<(String, u64)> = Vec::new();
    for (words, times) in said {
        match sums.iter_mut().find(|(own, _)| *own == words) {
            Some((_, sum)) => *sum += times,
            None => sums.push((words, times)),
        }
    }
    if sums.is_empty() {
        let wakes = if harmless > 0 { ", but for waking others through an eventfd" } else { "" };
        return Ok(Judgement::pass(format!("it wrote nothing in {}{wakes}", program.span())));
    }
    let said = truncate_words(sums.iter().map(|(words, times)| format!("{words} {times} times")));
    Ok(Judgement::fail(format!("{said}, in {}", program.span())))
}
