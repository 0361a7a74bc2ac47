//! Automatic NUMA balancing: page faults made on purpose, to see who uses what.

use super::sources::SYSCTL_KERNEL;
use crate::case::Case;
use crate::change::Change;
use crate::judgement::{Judged, Judgement, Severity};
use crate::remedy::Remedy;
use crate::{Evidence, Examples, Knob, Lasts, Slice, Source};
use model::vocabulary::Preempt;

pub static KNOB: Knob = Knob {
    id: "numa-balancing",
    title: "automatic NUMA balancing",
    what: "On machines of several memory nodes the kernel unmaps pages of each task from time to time, sees by the page faults \
           from which node they are used, and moves pages and tasks to one another.",
    why: "the task takes page faults that it would not have, waits while pages move, and may be moved itself; locking memory does not help",
    tell: "/proc/sys/kernel/numa_balancing. PREEMPT_RT kernels cannot have it.",
    cost: "Programs whose memory is far from their CPUs are no longer put right: bind what needs much memory bandwidth to a node with numactl.",
    wanted: "0",
    fix: || {
        Remedy::from(Change::sysctl("kernel.numa_balancing", 0)).keep(Change::boot("numa_balancing=disable"))
    },
    severity: Severity::Medium,
    evidence: Evidence::Documented,
    lasts: Lasts::Runtime,
    sources: &[Source { title: "kernel: /proc/sys/kernel, numa_balancing", url: SYSCTL_KERNEL }],
    cures: &[Slice::PageFault],
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

fn judge(case: &Case) -> Judged {
    let Some(mode) = case.number_if_there(SYSCTL)? else {
        if case.facts().preempt == Preempt::Rt {
            return Err(Judgement::not_applicable("PREEMPT_RT kernels do not have it"));
        }
        if case.kconfig()?.is_yes("NUMA_BALANCING") {
            return Err(Judgement::unknown(format!(
                "{SYSCTL} is not there, though the kernel has NUMA_BALANCING"
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
        let other =
            "/proc/sys/kernel/version: #1 SMP PREEMPT_DYNAMIC\nCONFIG_PREEMPT_RT=n\nCONFIG_NUMA_BALANCING";
        check(&KNOB, &format!("{other}=n"), "not-applicable the kernel has no NUMA_BALANCING");
        check(&KNOB, &format!("{other}=y"), "unknown");
        check(&KNOB, &format!("{other}=n\n/boot refused"), "unknown");
        check(&KNOB, "/proc/sys/kernel/numa_balancing: on", "unknown");
    }
}
