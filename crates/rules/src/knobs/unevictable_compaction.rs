//! Compaction of locked memory: whether pages that were locked against swapping may still be moved.

use super::sources::SYSCTL_VM;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "unevictable-compaction",
    title: "compaction of locked memory",
    description: "Whether the kernel moves pages that mlock holds, to make large pieces of free \
                  memory. PREEMPT_RT kernels start with 0, all others with 1.",
    rationale: "while a locked page is moved, a program that touches it waits in a page fault \
                until the move is done, although it locked its memory",
    detection: "vm.compact_unevictable_allowed. Other ways of moving pages, such as NUMA \
                balancing and cpusets that move memory, are not part of it.",
    side_effects: "Where much memory is locked, large pieces of free memory get scarcer, and \
                   allocations of huge pages fail more often.",
    wanted: "0",
    fix: || Change::sysctl("vm.compact_unevictable_allowed", 0).into(),
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: PATH,
    sources: &[Source { title: "kernel: /proc/sys/vm, compact_unevictable_allowed", url: SYSCTL_VM }],
    cures: &[SliceKind::PageFault],
    reads: &[PATH],
    facts: &["/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/proc/sys/vm/compact_unevictable_allowed: 1",
        silent: "/proc/sys/vm/compact_unevictable_allowed: 0",
        unknown: "/proc/sys/vm/compact_unevictable_allowed refused",
    },
    ..Knob::DEFAULT
};

const PATH: &str = "/proc/sys/vm/compact_unevictable_allowed";

fn judge(machine: &MachineView) -> Judged {
    let without = "this kernel does not move pages to compact memory (CONFIG_COMPACTION)";
    let allowed = machine.number_with_option(PATH, "COMPACTION", without)?;
    Ok(Judgement::fail_if(allowed != 0, allowed.to_string()))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn locked_pages_stay_where_they_are() {
        check(&KNOB, "", "pass 0");
        check(&KNOB, "/proc/sys/vm/compact_unevictable_allowed: 1", "fail medium 1");
        check(&KNOB, "/proc/sys/vm absent\nCONFIG_COMPACTION=y", "unknown");
        check(&KNOB, "/proc/sys/vm absent\nCONFIG_COMPACTION=n", "not-applicable");
        check(&KNOB, "/proc/sys/vm/compact_unevictable_allowed: yes", "unknown");
    }
}
