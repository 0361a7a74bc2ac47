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
    description: "Whether the kernel moves mlocked pages to create large blocks of free memory. The default \
                  is 0 on PREEMPT_RT kernels, and 1 on all others.",
    rationale: "a program that touches a locked page while it is moved waits in a page fault until the move \
                is complete",
    detection: "vm.compact_unevictable_allowed. Other page migration, such as NUMA balancing and cpusets \
                that move memory, is not affected.",
    side_effects: "If much memory is locked, large blocks of free memory become rare, and huge page \
                   allocations fail more often.",
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
