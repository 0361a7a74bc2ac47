//! Output by a real-time thread.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{PROC, TTY};
use super::view::{NamedCalls, ProgramView};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_phrases;
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
                a file's position moved. Where it can only have been sockets and devices it counts \
                little: they may be the field bus. send() and sendto() show with --syscalls alone.",
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
};

const CALLS: &[&str] = &["write", "writev", "pwrite64", "pwritev", "sendto", "sendmsg", "sendmmsg"];

/// A field bus is a socket or a device, too, and writing to it is what a loop is for.
fn severity<'a>(mut to: impl Iterator<Item = &'a Descriptor>) -> Severity {
    let bus = |open: &Descriptor| matches!(open.kind, OpenKind::Socket | OpenKind::Device);
    if to.all(bus) { Severity::Low } else { Severity::High }
}

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    if let Some(calls) = program.calls(thread) {
        return by_calls(program, thread, &calls);
    }
    let counted = program.io(thread)?;
    if counted.writes == 0 {
        return Ok(Judgement::pass(format!("it wrote nothing in {}", thread.window.spoken())));
    }
    let open: Vec<&Descriptor> =
        program.descriptors()?.iter().filter(|open| open.writable && open.kind != OpenKind::Other).collect();
    let wakes = open.iter().any(|open| open.kind == OpenKind::Eventfd);
    if wakes && counted.written_bytes == 8 * counted.writes {
        return Ok(Judgement::pass(format!("it wakes others through an eventfd, {} times", counted.writes)));
    }
    let said = format!(
        "it wrote {}, {} in all, in {}",
        several(counted.writes, "time", "times"),
        several(counted.written_bytes, "byte", "bytes"),
        thread.window.spoken()
    );
    let moved: Vec<&Descriptor> = open.iter().copied().filter(|open| open.moved).collect();
    let (how, to) = match moved.is_empty() {
        false => ("; what moved meanwhile", moved),
        true => {
            ("; open for writing", open.into_iter().filter(|open| open.kind != OpenKind::Eventfd).collect())
        }
    };
    // Which of several it was does not show: with none the descriptor was closed again.
    let severity = if to.is_empty() { Severity::High } else { severity(to.iter().copied()) };
    let named = truncate_phrases(to.iter().map(|open| open.words()));
    let named = if named.is_empty() { named } else { format!("{how}: {named}") };
    Ok(Judgement::fail(said + &named).severity(severity))
}

fn by_calls(program: &ProgramView, thread: &ProgramThread, calls: &NamedCalls) -> Judged {
    let open = program.descriptors()?;
    let mut harmless = 0;
    let mut sums: Vec<(String, u64)> = Vec::new();
    let mut worst = Severity::Low;
    for call in calls.made.iter().filter(|call| CALLS.contains(&call.name)) {
        let number = call.args.map(|args| args[0]);
        let to = open.iter().find(|open| Some(u64::from(open.number)) == number);
        if to.is_some_and(|open| open.kind == OpenKind::Eventfd) {
            harmless += call.times;
            continue;
        }
        worst = worst.max(to.map_or(Severity::High, |to| severity(std::iter::once(to))));
        let words = match (to, number) {
            (Some(to), _) => format!("{} to {}", call.name, to.words()),
            (None, Some(number)) => format!("{} to descriptor {number}", call.name),
            (None, None) => call.name.to_owned(),
        };
        match sums.iter_mut().find(|(own, _)| *own == words) {
            Some((_, sum)) => *sum += call.times,
            None => sums.push((words, call.times)),
        }
    }
    if sums.is_empty() && !calls.complete {
        return Err(Judgement::unknown("events were lost: a rare call may be among them"));
    }
    if sums.is_empty() {
        let wakes = if harmless > 0 { ", but for waking others through an eventfd" } else { "" };
        return Ok(Judgement::pass(format!("it wrote nothing in {}{wakes}", thread.window.spoken())));
    }
    let said = truncate_phrases(
        sums.iter().map(|(words, times)| format!("{words} {}", several(*times, "time", "times"))),
    );
    Ok(Judgement::fail(format!("{said}, in {}", thread.window.spoken())).severity(worst))
}
