//! Zone reclaim: local-node memory is reclaimed before another node's is used.

use super::sources::SYSCTL_VM;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "zone-reclaim",
    title: "zone reclaim",
    description: "Whether an allocation on a full memory node first frees memory there (1), writes changed \
                  data (2) and swaps (4), before it uses another node. The default is 0, no.",
    rationale: "the allocating task frees the memory itself, and may wait for writes, although other nodes \
                have free memory",
    detection: "vm.zone_reclaim_mode; kernels without CONFIG_NUMA do not have it.",
    side_effects: "Memory of another node is slower: bind programs that need local memory to their node \
                   instead.",
    wanted: "0",
    fix: || Change::sysctl("vm.zone_reclaim_mode", 0).into(),
    severity: Severity::Low,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: PATH,
    sources: &[Source { title: "kernel: /proc/sys/vm, zone_reclaim_mode", url: SYSCTL_VM }],
    cures: &[SliceKind::PageFault],
    reads: &[PATH],
    facts: &["/boot/config-RELEASE"],
    judge,
    examples: Examples {
        fires: "/proc/sys/vm/zone_reclaim_mode: 1",
        silent: "/proc/sys/vm/zone_reclaim_mode: 0",
        unknown: "/proc/sys/vm/zone_reclaim_mode refused",
    },
    ..Knob::DEFAULT
};

const PATH: &str = "/proc/sys/vm/zone_reclaim_mode";

fn judge(machine: &MachineView) -> Judged {
    let mode = machine.number_with_option(PATH, "NUMA", "this kernel has no memory nodes (CONFIG_NUMA)")?;
    Ok(Judgement::fail_if(mode != 0, mode.to_string()))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn using_other_nodes_passes() {
        check(&KNOB, "", "pass 0");
        check(&KNOB, "/proc/sys/vm/zone_reclaim_mode: 7", "fail low 7");
        check(&KNOB, "/proc/sys/vm absent\nCONFIG_NUMA=y", "unknown");
        check(&KNOB, "/proc/sys/vm absent\nCONFIG_NUMA=n", "not-applicable");
        let config = "/boot/config-6.12.9-rt-amd64 absent";
        let without = format!("/proc/sys/vm/zone_reclaim_mode absent\n{config}");
        check(&KNOB, &without, "not-applicable this kernel has no memory nodes (CONFIG_NUMA)");
        check(&KNOB, &format!("/proc/sys/vm absent\n{config}"), "unknown");
        check(&KNOB, &format!("{without}\n/proc/sys/kernel/osrelease refused"), "unknown");
    }
}
