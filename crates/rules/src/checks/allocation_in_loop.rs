//! Memory that a real-time thread allocates or frees.

use super::faulting::{FEW, places, remappings, takes_memory};
use super::rule::{CheckJudge, CheckRule};
use super::sources::{MALLOPT3, RTAPP};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use facts::process::ProgramThread;
use model::text::several;

pub static CHECK: CheckRule = CheckRule {
    id: "allocation-in-loop",
    title: "memory allocated or freed in the loop",
    description: "A real-time thread requests memory from the kernel or returns it while it works: malloc \
                  and free do so when the heap is full or has too much free memory, and for each large \
                  block.",
    rationale: "each such call takes the memory lock of the whole process, new pages are cleared and faulted \
                in one by one, and returning pages interrupts the CPUs of all other threads",
    detection: "The thread takes the process's memory lock for writing \
                (mmap_lock:mmap_lock_acquire_returned, from Linux 6.13 on). Or the process's writable memory \
                changes in size (VmData), or parts of it are returned (RssAnon falls), and the thread faults \
                on the same pages again, or on memory that is no longer mapped at the end. With --syscalls \
                the calls themselves are counted. An allocation that the heap serves without a system call \
                is not seen.",
    wanted: "all memory is allocated before the loop",
    fix: "allocate and touch all memory before the loop, in pools or fixed buffers; if malloc is still \
          called in the loop, mallopt(M_TRIM_THRESHOLD, -1) and mallopt(M_MMAP_MAX, 0) keep memory in the \
          heap",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "mallopt(3)", url: MALLOPT3 },
        Source { title: "kernel: real-time application monitors, pagefault", url: RTAPP },
    ],
    reads: &[
        "/proc/PID/status",
        "/proc/PID/task/TID/stat",
        "exceptions:page_fault_user",
        "mmap_lock:mmap_lock_acquire_returned",
        "raw_syscalls:sys_enter",
    ],
    judge: CheckJudge::Thread(judge),
    examples: Examples {
        fires: "thread 101 faults=500\nremap 101 times=40\ngrowth least=200 most=900 changes=40",
        silent: "remap 101 times=0\ngrowth least=200 most=900 changes=40",
        unknown: "growth refused",
    },
};

/// Calls that change a process's memory mappings.
const CALLS: &[&str] = &["brk", "mmap", "munmap", "mprotect", "mremap", "madvise"];

fn judge(program: &ProgramView, thread: &ProgramThread) -> Judged {
    let calls = program.calls(thread);
    let names = calls.as_ref().map_or_else(String::new, |calls| calls.words(CALLS));
    if !names.is_empty() {
        return Ok(Judgement::fail(format!("it called {names} in {}", thread.window.spoken())));
    }
    let growth = program.growth()?;
    let faults = program.counted(thread)?.minor_faults;
    let remapped = remappings(program, thread);
    if let Some(times) = remapped.filter(|times| *times > FEW) {
        let touched = match faults {
            0 => String::new(),
            _ => {
                format!(", with {}{}", several(faults, "page fault", "page faults"), places(program, thread))
            }
        };
        return Ok(Judgement::fail(format!(
            "it changed the process's memory mappings {times} times in {}{touched}",
            thread.window.spoken()
        )));
    }
    // A thread whose calls are all recorded, none of them such a call, allocates no memory.
    if calls.is_some_and(|calls| calls.complete) {
        return Ok(Judgement::pass(format!(
            "it made no call that maps or unmaps memory in {}",
            thread.window.spoken()
        )));
    }
    let value = match takes_memory(program, thread) {
        Some(true) => {
            let how = match growth.changes {
                0 => format!("returned pages {}", several(growth.given_back, "time", "times")),
                _ => {
                    format!("had between {} and {} KiB of writable memory", growth.least_kib, growth.most_kib)
                }
            };
            let faults = several(faults, "page fault", "page faults");
            return Ok(Judgement::fail(format!(
                "{faults} of the thread while the process {how}{}",
                places(program, thread)
            )));
        }
        None => {
            return Err(program.needs_calls(
                "the process's memory changed while the thread took page faults; onbeat cannot see whether \
                 the thread itself allocated it",
            ));
        }
        Some(false) if growth.changes + growth.given_back == 0 => {
            format!("the size of the process's writable memory did not change in {}", thread.window.spoken())
        }
        // Memory that is allocated but not touched shows only in the calls.
        Some(false) if remapped.is_none() => {
            return Err(program.needs_calls(
                "the process's memory changed; onbeat cannot see which thread \
                                            changed it",
            ));
        }
        Some(false) => "another thread changed the process's writable memory".to_owned(),
    };
    Ok(Judgement::pass(value))
}

#[cfg(test)]
mod tests {
    use super::CHECK;
    use crate::checks::fixture::ExampleProgram;
    use crate::judgement::AuditVerdict::{self, Pass, Unknown};

    fn judgement_of(edits: &str) -> (AuditVerdict, String) {
        let finding = ExampleProgram::of(edits).findings(&CHECK).remove(0).finding;
        let words = if finding.verdict == Unknown { finding.reason } else { finding.value };
        (finding.verdict, words)
    }

    #[test]
    fn calls_that_were_recorded_are_not_asked_for_again() {
        let faults = "thread 101 faults=500\ngrowth least=200 most=900 changes=40";
        let (verdict, value) = judgement_of(faults);
        assert!(verdict == Unknown && value.ends_with("use --syscalls"), "{value}");
        let (verdict, value) = judgement_of(&format!("{faults}\ncall 101 clock_nanosleep 1,1 times=500"));
        assert!(verdict == Pass && value.contains("no call that maps or unmaps memory"), "{value}");
    }
}
