//! Memory that the kernel may reclaim.

use super::rule::{CheckJudge, CheckRule};
use super::sources::{MLOCK2, RTAPP};
use super::view::ProgramView;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Source};
use crate::words::truncate_words;
use facts::process::mappings::MemoryMapping;
use model::sort::CompactSort;

pub static CHECK: CheckRule = CheckRule {
    id: "memory-unlocked",
    title: "memory that is not locked",
    description: "Unless memory is locked, it is filled page by page at the first access, and pages of files \
                  may be dropped and read again.",
    rationale: "a thread that touches a missing page waits until the kernel has found or read it: \
                microseconds from memory, milliseconds from a disk",
    detection: "By the flag `lo` of each mapping in /proc/PID/smaps. Device memory, huge pages and the \
                kernel's own mappings cannot be locked and are not counted, and neither is memory without \
                access rights. Whether later mappings will be locked (MCL_FUTURE) is not visible.",
    wanted: "each mapping is locked",
    fix: "call mlockall(MCL_CURRENT | MCL_FUTURE) before the real-time threads start",
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    sources: &[
        Source { title: "kernel: real-time application monitors, pagefault", url: RTAPP },
        Source { title: "mlock(2), notes", url: MLOCK2 },
    ],
    reads: &["/proc/PID/smaps"],
    judge: CheckJudge::Process(judge),
    examples: Examples {
        fires: "mapping 5500-5501 name=robot rights=r-x flags=rd,ex",
        silent: "mapping 7fff-8000 name=[vvar] rights=r-- flags=rd,io,de",
        unknown: "smaps refused",
    },
};

fn judge(program: &ProgramView) -> Judged {
    let lockable: Vec<&MemoryMapping> =
        program.mappings()?.iter().filter(|mapping| mapping.can_be_locked()).collect();
    let mut open: Vec<&MemoryMapping> =
        lockable.iter().copied().filter(|mapping| !mapping.is_locked()).collect();
    if open.is_empty() {
        return Ok(locked(program, &lockable));
    }
    open.compact_sort_by_key(|mapping| std::cmp::Reverse(mapping.size_kib));
    // Memory that is neither written nor executed is seldom touched by a loop.
    let grave = open.iter().any(|mapping| mapping.access[1] || mapping.access[2]);
    let named = truncate_words(open.iter().map(|mapping| program.process.words_for(mapping)));
    let value =
        format!("{} of {} mappings, {} KiB, are not locked: {named}", open.len(), lockable.len(), kib(&open));
    Ok(Judgement::fail(value).severity(if grave { Severity::High } else { Severity::Low }))
}

/// Judgement of a program with all memory locked: filled at once, or as it is touched.
fn locked(program: &ProgramView, lockable: &[&MemoryMapping]) -> Judgement {
    // Locking fills private writable memory; with MCL_ONFAULT it is still allocated page by page
    // (mlock2(2)).
    let filled = |mapping: &MemoryMapping| {
        let private = mapping.name.is_empty() || mapping.name == "[heap]";
        !private || !mapping.access[1] || mapping.resident_kib >= mapping.size_kib
    };
    let empty: Vec<&MemoryMapping> = lockable.iter().copied().filter(|mapping| !filled(mapping)).collect();
    if empty.is_empty() {
        return Judgement::pass(format!("{} mappings ({} KiB), all locked", lockable.len(), kib(lockable)));
    }
    let missing = empty.iter().map(|mapping| mapping.size_kib - mapping.resident_kib).sum::<u64>();
    Judgement::fail(format!(
        "all is locked, but {missing} KiB are filled only at the first access (MCL_ONFAULT): {}",
        truncate_words(empty.iter().map(|mapping| program.process.words_for(mapping)))
    ))
    .severity(Severity::Low)
}

fn kib(of: &[&MemoryMapping]) -> u64 {
    of.iter().map(|mapping| mapping.size_kib).sum()
}
