//! Memory that is taken or given back by a real-time thread.

use super::faulting::{places, takes_memory};
use super::rule::{CheckJudge, CheckRule};
use super::sources::{MALLOPT3, RTAPP};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_words;
use facts::process::ProgramThread;
use model::text::several;

pub static CHECK: CheckRule = CheckRule {
    id: "allocation-in-loop",
    title: "memory taken or given back in the loop",
    description: "A real-time thread takes memory from the system or gives it back while it works: malloc \
                  and free do so when the heap has no room or too much, and for large blocks each time.",
    rationale: "each such call takes the lock of the whole process's memory, new pages are cleared and \
                faulted in one by one, and giving pages back interrupts the CPUs of all other threads",
    detection: "The process's private writable memory changes in size over the window (VmData), or parts \
                of it are given back (RssAnon falls), while the thread takes page faults that read nothing \
                from a disk. With --syscalls the calls themselves are \
                counted. An allocation that the heap serves from what it has does not show.",
    wanted: "all memory taken before the loop",
    fix: "take and touch all memory before the loop, from pools or fixed buffers; for what malloc stays, \
          mallopt(M_TRIM_THRESHOLD, -1) and mallopt(M_MMAP_MAX, 0) keep the heap as it is",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "mallopt(3)", url: MALLOPT3 },
        Source { title: "kernel: real-time application monitors, pagefault", url: RTAPP },
    ],
    reads: &["/proc/PID/status", "/proc/PID/task/TID/stat", "raw_syscalls:sys_enter"],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 101 faults=500\ngrowth least=200 most=900 changes=40",
        silent: "growth least=200 most=900 changes=40",
        unknown: "growth refused",
    },
    ..CheckRule::DEFAULT
};

/// Calls that change what a process's memory consists of.
const CALLS: &[&str] = &["brk", "mmap", "munmap", "mprotect", "mremap", "madvise"];

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    if let Some(calls) = program.calls(thread) {
        let own = calls.iter().filter(|(name, ..)| CALLS.contains(name));
        let mut sums: Vec<(&str, u64)> = CALLS.iter().map(|name| (*name, 0)).collect();
        own.for_each(|(name, _, times)| {
            sums.iter_mut().filter(|sum| sum.0 == *name).for_each(|sum| sum.1 += times)
        });
        let said = sums.iter().filter(|(_, times)| *times > 0);
        let said =
            truncate_words(said.map(|(name, times)| format!("{name} {}", several(*times, "time", "times"))));
        if !said.is_empty() {
            return Ok(Judgement::fail(format!("it called {said} in {}", program.span())));
        }
    }
    let growth = program.growth()?;
    let faults = program.counted(thread)?.minor_faults;
    if takes_memory(program, thread) {
        let how = match growth.changes {
            0 => format!("gave pages back {}", several(growth.given_back, "time", "times")),
            _ => format!("had between {} and {} KiB to write to", growth.least_kib, growth.most_kib),
        };
        return Ok(Judgement::fail(format!(
            "{} of the thread while the process {how}{}",
            several(faults, "page fault", "page faults"),
            places(program, thread)
        )));
    }
    let value = match growth.changes + growth.given_back {
        0 => format!("the process's writable memory had one size in {}", program.span()),
        _ => "the process's writable memory changed, not by this thread".to_owned(),
    };
    Ok(Judgement::pass(value))
}
