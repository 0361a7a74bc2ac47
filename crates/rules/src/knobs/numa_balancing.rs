//! Automatic NUMA balancing: deliberate page faults, to sample the use of memory.

use super::sources::SYSCTL_KERNEL;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "numa-balancing",
    title: "automatic NUMA balancing",
    description: "On machines with several memory nodes the kernel unmaps pages of each task from time to \
                  time, sees from the page faults which node uses them, and moves pages and tasks closer \
                  together.",
    rationale: "the task takes additional page faults, waits while pages move, and may be moved itself; \
                locking memory does not help",
    detection: "/proc/sys/kernel/numa_balancing. PREEMPT_RT kernels cannot have it.",
    side_effects: "Programs whose memory is far from their CPUs are no longer corrected: bind programs that \
                   need much memory bandwidth to a node with numactl.",
    wanted: "0",
    fix: || {
        Remedy::from(Change::sysctl("kernel.numa_balancing", 0))
            .persist(Change::cmdline_add("numa_balancing=disable"))
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    sets: SYSCTL,
    sources: &[Source { title: "kernel: /proc/sys/kernel, numa_balancing", url: SYSCTL_KERNEL }],
    cures: &[SliceKind::PageFault],
    reads: &[SYSCTL],
    facts: &["/boot/config-RELEASE", "/proc/sys/kernel/version"],
    judge,
    examples: Examples {
        fires: "/proc/sys/kernel/numa_balancing: 1",
        silent: "/proc/sys/kernel/numa_balancing: 0",
        unknown: "/proc/sys/kernel/numa_balancing refused",
    },
    ..Knob::DEFAULT
};

const SYSCTL: &str = "/proc/sys/kernel/numa_balancing";

fn judge(machine: &MachineView) -> Judged {
    let Some(mode) = machine.number_if_present(SYSCTL)? else {
        if machine.is_built_for_rt() {
            return Err(Judgement::not_applicable("PREEMPT_RT kernels do not have it"));
        }
        let is_certain = machine.shows_by_absence() && machine.survey.texts.has_neighbour(SYSCTL);
        if !is_certain && machine.kconfig()?.is_yes("NUMA_BALANCING") {
            return Err(Judgement::unknown(format!(
                "{SYSCTL} is missing, although the kernel has NUMA_BALANCING"
            )));
        }
        return Err(Judgement::not_applicable("the kernel has no NUMA_BALANCING"));
    };
    Ok(Judgement::fail_if(mode != 0, mode.to_string()))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn only_kernels_that_have_it() {
        check(&KNOB, "", "not-applicable PREEMPT_RT kernels do not have it");
        check(&KNOB, "/proc/sys/kernel/numa_balancing: 2", "fail medium 2");
        let other = "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\nCONFIG_PREEMPT_RT=n\n\
                     CONFIG_NUMA_BALANCING";
        check(&KNOB, &format!("{other}=n"), "not-applicable the kernel has no NUMA_BALANCING");
        check(&KNOB, &format!("{other}=y"), "unknown");
        let hidden = format!("{other}=n\n/boot refused");
        check(&KNOB, &hidden, "not-applicable the kernel has no NUMA_BALANCING");
        check(&KNOB, &format!("{hidden}\n/proc/sys/kernel/numa_balancing refused"), "unknown");
        check(&KNOB, "/proc/sys/kernel/numa_balancing: on", "unknown");
    }
}
