//! Kernel samepage merging: equal pages of several programs shared until one writes.

use super::sources::KSM;
use crate::change::Change;
use crate::change::Persistence;
use crate::intent::Profile;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "kernel-samepage-merging",
    title: "kernel samepage merging",
    description: "The thread ksmd compares pages of programs that enabled it, mostly virtual machines, and \
                  lets equal pages share one write-protected page.",
    rationale: "the first write to a merged page takes a page fault and a copy, and ksmd uses CPU time and \
                memory bandwidth while it compares",
    detection: "The switch, /sys/kernel/mm/ksm/run. Whether any program enabled it is not checked: otherwise \
                ksmd has nothing to do. With 0, pages that were merged before stay merged.",
    side_effects: "More memory use: a host whose virtual machines fit only because their pages are merged \
                   can run out of memory when 2 is written.",
    wanted: "0, or 2 once to unmerge merged pages",
    fix: || Change::write("/sys/kernel/mm/ksm/run", 2).into(),
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: RUN,
    sources: &[Source { title: "kernel: kernel samepage merging, run and cow_ksm", url: KSM }],
    cures: &[SliceKind::PageFault, SliceKind::Thread],
    reads: &[RUN],
    facts: &["/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/sys/kernel/mm/ksm/run: 1",
        silent: "/sys/kernel/mm/ksm/run: 0",
        unknown: "/sys/kernel/mm/ksm/run refused",
    },
    ..Knob::DEFAULT
};

const RUN: &str = "/sys/kernel/mm/ksm/run";

fn judge(machine: &MachineView) -> Judged {
    match machine.number_with_option(RUN, "KSM", "this kernel was built without it (CONFIG_KSM)")? {
        run @ (0 | 2) => Ok(Judgement::pass(run.to_string())),
        1 if machine.has_profile(Profile::KvmHost) => {
            Ok(Judgement::fail("1").severity(Severity::High).because(
                "ksmd merges the memory of guests: the first write to a merged page leaves the guest for a \
                 page fault and a copy, at any point of its execution",
            ))
        }
        1 => Ok(Judgement::fail("1")),
        other => Err(Judgement::unknown(format!("{RUN} is {other}, which is not a known value"))),
    }
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn the_switch_decides() {
        check(&KNOB, "", "pass 0");
        check(&KNOB, "/sys/kernel/mm/ksm/run: 2", "pass 2");
        check(&KNOB, "/sys/kernel/mm/ksm/run: 1\n--profile kvm-host", "fail high 1");
        check(&KNOB, "/sys/kernel/mm/ksm/run: 7", "unknown");
        check(&KNOB, "/sys/kernel/mm/ksm/run: on", "unknown");
        check(
            &KNOB,
            "/sys/kernel/mm/ksm absent\nCONFIG_KSM=y",
            "unknown /sys/kernel/mm/ksm/run is not there",
        );
        check(&KNOB, "/sys/kernel/mm/ksm absent\nCONFIG_KSM=n", "not-applicable");
        check(&KNOB, "/sys/kernel/mm/ksm absent\n/boot/config-6.12.9-rt-amd64 absent", "unknown");
    }
}
