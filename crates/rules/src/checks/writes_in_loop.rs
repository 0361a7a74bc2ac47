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
                  works: with printf, a logger, or write.",
    rationale: "the call waits for locks of the terminal or the file system, for a full pipe, or for a slow \
                serial line: a character takes 87 us at 115200 baud",
    detection: "By the thread's counters of write calls (/proc/PID/task/TID/io) and the descriptors that the \
                process has open for writing; /dev/null does not count. A thread whose writes all have eight \
                bytes, in a process with an eventfd, may only wake another thread. The descriptor is known \
                with --syscalls, or if a file's position moved and no other thread of the process wrote. If \
                only sockets and devices are possible, the severity is low, because they may be the field \
                bus; the same holds for a pipe that the process itself reads. If these and others are \
                possible, the verdict is unknown. send() and sendto() are seen only with --syscalls.",
    wanted: "real-time threads write no output",
    fix: "pass messages through a lock-free ring of fixed size to a thread without a real-time policy, and \
          let that thread write",
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

/// True for a field bus, which is a socket or a device, too, and the purpose of a loop's writes;
/// and for a pipe that the process itself reads, which carries messages between its threads.
fn is_bus(open: &Descriptor, all: &[Descriptor]) -> bool {
    let reads = |other: &Descriptor| !other.writable && other.name == open.name;
    match open.kind {
        OpenKind::Socket | OpenKind::Device => true,
        OpenKind::Pipe => all.iter().any(reads),
        _ => false,
    }
}

fn severity<'a>(mut to: impl Iterator<Item = &'a Descriptor>, all: &[Descriptor]) -> Severity {
    if to.all(|open| is_bus(open, all)) { Severity::Low } else { Severity::High }
}

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    if let Some(calls) = program.calls(thread) {
        return by_calls(program, thread, &calls);
    }
    by_counters(program, thread)
}

fn by_counters(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let counted = program.io(thread)?;
    if counted.writes == 0 {
        return no_write(program, thread);
    }
    let all = program.descriptors()?;
    let open: Vec<&Descriptor> =
        all.iter().filter(|open| open.writable && open.kind != OpenKind::Other).collect();
    let wakes = open.iter().any(|open| open.kind == OpenKind::Eventfd);
    if wakes && counted.written_bytes == 8 * counted.writes {
        return Ok(Judgement::pass(format!("it wakes others through an eventfd, {} times", counted.writes)));
    }
    let total = format!(
        "it wrote {}, {} in all, in {}",
        several(counted.writes, "time", "times"),
        several(counted.written_bytes, "byte", "bytes"),
        thread.window.spoken()
    );
    let moved: Vec<&Descriptor> =
        open.iter().copied().filter(|open| open.moved && open.kind != OpenKind::Null).collect();
    if !moved.is_empty() && is_only_writer(program, thread) {
        let named = truncate_phrases(moved.iter().map(|open| open.words()));
        let severity = severity(moved.into_iter(), all);
        return Ok(
            Judgement::fail(format!("{total}; descriptors whose position moved: {named}")).severity(severity)
        );
    }
    // Two descriptors of one open file, as in a shell's `2>&1`, are one target.
    let (discarded, to): (Vec<&Descriptor>, Vec<&Descriptor>) = open
        .into_iter()
        .filter(|open| open.kind != OpenKind::Eventfd)
        .partition(|open| open.kind == OpenKind::Null);
    let bus = to.iter().filter(|open| is_bus(open, all)).count();
    let named = truncate_phrases(to.iter().map(|open| open.words()));
    let total = if named.is_empty() { total } else { format!("{total}; open for writing: {named}") };
    // A descriptor that was closed since, or a harmless one of these.
    match to.len() {
        0 if discarded.is_empty() => Ok(Judgement::fail(total)),
        0 => Ok(Judgement::pass(format!("{total}, to {}", discarded[0].name))),
        count if bus == count => Ok(Judgement::fail(total).severity(Severity::Low)),
        _ if bus > 0 || !discarded.is_empty() => {
            let or = discarded.first().map_or(String::new(), |null| format!(", or {}", null.name));
            Err(program.needs_calls(&format!("{total}{or}; which of them is not known")))
        }
        _ => Ok(Judgement::fail(total)),
    }
}

/// Judgement of a thread without calls that are counted as writing: sendto() and the like are not
/// (`wchar` is counted in vfs_write(), fs/read_write.c).
fn no_write(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let window = thread.window.spoken();
    if program.descriptors()?.iter().any(|open| open.kind == OpenKind::Socket) {
        let remark = format!("no write() in {window}, but a socket is open, and send() is not counted");
        return Err(program.needs_calls(&remark));
    }
    Ok(Judgement::pass(format!("no write() in {window}, and no socket is open")))
}

/// True if only this thread can have moved the position of a file: no read or write of the others
/// was counted, and each of them could be read.
fn is_only_writer(program: &ProgramView, thread: &ProgramThread) -> bool {
    let process = program.process;
    let quiet = |other: &ProgramThread| {
        other.calls.known().is_some_and(|calls| calls.writes == 0 && calls.reads == 0)
    };
    process.threads_left_out + process.threads_changed == 0
        && process.threads.iter().all(|other| other.tid == thread.tid || quiet(other))
}

fn by_calls(program: &ProgramView, thread: &ProgramThread, calls: &NamedCalls) -> Judged {
    let open = program.descriptors()?;
    let mut harmless = [0; 2];
    let mut sums: Vec<(String, u64)> = Vec::new();
    let mut worst = Severity::Low;
    for call in calls.entries.iter().filter(|call| CALLS.contains(&call.name)) {
        let number = call.args.map(|args| args[0]);
        let to = open.iter().find(|open| Some(u64::from(open.number)) == number);
        match to.map(|open| open.kind) {
            Some(OpenKind::Eventfd) => harmless[0] += call.times,
            Some(OpenKind::Null) => harmless[1] += call.times,
            _ => {}
        }
        if to.is_some_and(|open| matches!(open.kind, OpenKind::Eventfd | OpenKind::Null)) {
            continue;
        }
        worst = worst.max(to.map_or(Severity::High, |to| severity(std::iter::once(to), open)));
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
        return Err(Judgement::unknown("events were lost, and a rare call may be among them"));
    }
    if sums.is_empty() {
        let wakes = match harmless {
            [0, 0] => "",
            [0, _] => ", but to /dev/null",
            _ => ", but for waking others through an eventfd",
        };
        return Ok(Judgement::pass(format!("it wrote nothing in {}{wakes}", thread.window.spoken())));
    }
    let sums_text = truncate_phrases(
        sums.iter().map(|(words, times)| format!("{words} {}", several(*times, "time", "times"))),
    );
    Ok(Judgement::fail(format!("{sums_text}, in {}", thread.window.spoken())).severity(worst))
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::fixture::ExampleProgram;
    use crate::judgement::{AuditVerdict, Severity};

    fn judgement_of(edits: &str) -> (AuditVerdict, Severity, String) {
        let finding = ExampleProgram::of(edits).findings(&CHECK).remove(0).finding;
        (finding.verdict, finding.severity, finding.value)
    }

    const WRITES: &str = "thread 101 writes=500 written=6000\n";

    #[test]
    fn what_is_discarded_is_no_output() {
        let to = |lines: &str| judgement_of(&format!("{WRITES}descriptor 0 kind=null name=null\n{lines}"));
        assert_eq!(to("close 0").0, AuditVerdict::Fail, "what it wrote to was closed again");
        let one = to("");
        assert_eq!(one.0, AuditVerdict::Unknown, "{one:?}");
        let closed = judgement_of(&format!("close 0\n{WRITES}descriptor 1 kind=null name=null"));
        assert_eq!(closed.0, AuditVerdict::Pass, "{closed:?}");
        let bus = judgement_of(&format!(
            "close 0\n{WRITES}descriptor 1 kind=null name=null\ndescriptor 3 kind=socket name=x"
        ));
        assert_eq!((bus.0, bus.1), (AuditVerdict::Fail, Severity::Low), "{bus:?}");
        let verdict = judgement_of(&format!(
            "close 0\n{WRITES}descriptor 1 kind=null name=null\ncall 101 write 1,0 times=500"
        ));
        assert_eq!(verdict.0, AuditVerdict::Pass, "{verdict:?}");
    }

    #[test]
    fn a_file_that_another_thread_may_have_moved_is_not_named_as_this_ones() {
        let open = "close 0\ndescriptor 3 kind=socket name=x\ndescriptor 4 kind=file name=log moved=yes\n";
        let alone = judgement_of(&format!("{open}{WRITES}"));
        assert_eq!((alone.0, alone.1), (AuditVerdict::Fail, Severity::High), "{alone:?}");
        assert!(alone.2.ends_with("descriptors whose position moved: descriptor 4 (log)"), "{alone:?}");
        for other in
            ["thread 102 policy=other writes=9 written=45", "thread 102 policy=other\nio 102 refused"]
        {
            let beside = judgement_of(&format!("{open}{WRITES}{other}"));
            assert_eq!(beside.0, AuditVerdict::Unknown, "{beside:?}");
        }
        // Without a harmless descriptor, it was output anyway.
        let terminal = judgement_of(&format!("{WRITES}thread 102 policy=other writes=9 written=45"));
        assert_eq!((terminal.0, terminal.1), (AuditVerdict::Fail, Severity::High), "{terminal:?}");
    }

    #[test]
    fn sending_is_not_counted_and_not_passed() {
        assert_eq!(judgement_of("").0, AuditVerdict::Pass);
        assert!(judgement_of("").2.starts_with("no write() in"), "{:?}", judgement_of(""));
        let open = judgement_of("descriptor 3 kind=socket name=x");
        assert_eq!(open.0, AuditVerdict::Unknown, "{open:?}");
        let quiet = judgement_of("descriptor 3 kind=socket name=x\ncall 101 read 3,0 times=5");
        assert_eq!(quiet.0, AuditVerdict::Pass, "{quiet:?}");
    }

    #[test]
    fn a_pipe_to_an_own_thread_counts_as_little_as_a_socket() {
        let writes = "close 0\nthread 101 writes=500 written=500\ndescriptor 5 kind=pipe name=pipe:[7]\n";
        let own = format!("{writes}descriptor 4 kind=pipe name=pipe:[7] for=reading\n");
        let calls = "call 101 write 5,0 times=500";
        for edits in [own.clone(), format!("{own}{calls}")] {
            let low = judgement_of(&edits);
            assert_eq!((low.0, low.1), (AuditVerdict::Fail, Severity::Low), "{low:?}");
        }
        let other = format!("{writes}descriptor 4 kind=pipe name=pipe:[8] for=reading\n");
        for edits in [other.clone(), format!("{other}{calls}")] {
            let high = judgement_of(&edits);
            assert_eq!((high.0, high.1), (AuditVerdict::Fail, Severity::High), "{high:?}");
        }
    }
}
