//! Proactive compaction: memory is moved in the background before large allocations are requested.

use super::sources::SYSCTL_VM;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "proactive-compaction",
    title: "proactive compaction",
    description: "How aggressively, from 0 to 100, the kcompactd threads move pages in the background so \
                  that large blocks of free memory are available before they are requested. The default is \
                  20.",
    rationale: "programs whose pages are moved wait for the move when they touch them, and other \
                CPUs have to drop their translations of those pages",
    detection: "vm.compaction_proactiveness, from 5.9 on. Compaction for an allocation still takes place \
                with 0.",
    side_effects: "Huge page allocations find large blocks less often, and then compact memory themselves or \
                   fall back to small pages.",
    wanted: "0",
    fix: || Change::sysctl("vm.compaction_proactiveness", 0).into(),
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: PATH,
    sources: &[Source { title: "kernel: /proc/sys/vm, compaction_proactiveness", url: SYSCTL_VM }],
    cures: &[SliceKind::PageFault, SliceKind::Ipi, SliceKind::Thread],
    reads: &[PATH],
    facts: &["/proc/sys/kernel/osrelease", "/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/proc/sys/vm/compaction_proactiveness: 20",
        silent: "/proc/sys/vm/compaction_proactiveness: 0",
        unknown: "/proc/sys/vm/compaction_proactiveness refused",
    },
    ..Knob::DEFAULT
};

const PATH: &str = "/proc/sys/vm/compaction_proactiveness";

fn judge(machine: &MachineView) -> Judged {
    if machine.number_if_present(PATH)?.is_none() && machine.series()? < (5, 9) {
        return Err(Judgement::not_applicable("kernels before 5.9 do not have it"));
    }
    let without = "this kernel does not move pages to compact memory (CONFIG_COMPACTION)";
    let eagerness = machine.number_with_option(PATH, "COMPACTION", without)?;
    Ok(Judgement::fail_if(eagerness != 0, eagerness.to_string()))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn any_eagerness_is_too_much() {
        check(&KNOB, "", "pass 0");
        check(&KNOB, "/proc/sys/vm/compaction_proactiveness: 20", "fail low 20");
        check(&KNOB, "/proc/sys/vm absent\nCONFIG_COMPACTION=y", "unknown");
        check(&KNOB, "/proc/sys/vm absent\nCONFIG_COMPACTION=n", "not-applicable");
        check(
            &KNOB,
            "/proc/sys/vm absent\n/proc/sys/kernel/osrelease: 5.4.0-1-rt",
            "not-applicable kernels before 5.9 do not have it",
        );
    }
}
