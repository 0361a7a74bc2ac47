//! Build options of the kernel that CPU isolation needs.

use super::sources::ISOLATION;
use super::unsettable;
use crate::change::Change;
use crate::change::Persistence;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing;
use crate::remedy::Remedy;
use crate::view::MachineView;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "isolation-support",
    title: "support for isolated CPUs",
    description: "CPUSETS provides CPU partitions at run time, CPU_ISOLATION the parameter isolcpus= and the \
                  base of nohz_full=, RCU_NOCB_CPU the parameter rcu_nocbs=, which moves RCU callbacks off a \
                  CPU.",
    rationale: "without them tasks are balanced onto the audited CPUs, and unbound work and RCU callbacks \
                run there; the parameters are ignored",
    detection: "The kernel's configuration. If the CPUs are already isolated in one way, the other is not \
                required. Other rules judge whether the features are used.",
    side_effects: "Needs another kernel; the options cost nothing while they are not used.",
    wanted: "CPUSETS, CPU_ISOLATION and RCU_NOCB_CPU built in",
    fix: || {
        Remedy::of(["CPUSETS", "CPU_ISOLATION", "RCU_NOCB_CPU"].map(|option| Change::kconfig(option, "y")))
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Build,
    unsettable: unsettable::BUILT,
    sources: &[Source { title: "kernel: CPU isolation, requirements and interfaces", url: ISOLATION }],
    cures: &[SliceKind::Thread, SliceKind::Workqueue, SliceKind::Softirq, SliceKind::TimerSoftirq],
    facts: &[
        "/boot/config-RELEASE",
        "/sys/devices/system/cpu/isolated",
        "/sys/fs/cgroup/cpuset.cpus.isolated",
    ],
    judge,
    examples: Examples {
        fires: "CONFIG_RCU_NOCB_CPU=n\n--cpus 2-3",
        silent: "CONFIG_CPUSETS=y\nCONFIG_CPU_ISOLATION=y\nCONFIG_RCU_NOCB_CPU=y\n--cpus 2-3",
        unknown: "/boot refused\n--cpus 2-3",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let config = machine.kconfig()?;
    let needed = ["CPUSETS", "CPU_ISOLATION", "RCU_NOCB_CPU"];
    // CPUs that are isolated already need no other method.
    let isolated = load_balancing::is_off(machine);
    let wanted = |name: &&str| *name == "RCU_NOCB_CPU" || !isolated;
    let needed: Vec<&str> = needed.into_iter().filter(wanted).collect();
    let missing: Vec<&str> = needed.iter().copied().filter(|name| !config.is_yes(name)).collect();
    if missing.is_empty() {
        return Ok(Judgement::pass(format!("{} built in", needed.join(", "))));
    }
    Ok(Judgement::fail(format!("without {}", missing.join(", ")))
        .fix(Remedy::of(missing.iter().map(|option| Change::kconfig(option, "y")))))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn only_where_cpus_are_isolated() {
        const OPEN: &str = "--cpus 2-3\n/sys/devices/system/cpu/isolated:\n";
        check(&KNOB, "", "pass RCU_NOCB_CPU built in");
        check(&KNOB, "CONFIG_CPUSETS=n", "pass RCU_NOCB_CPU built in");
        check(&KNOB, "CONFIG_RCU_NOCB_CPU=n\nCONFIG_CPUSETS=n", "fail high without RCU_NOCB_CPU");
        check(&KNOB, OPEN, "pass CPUSETS, CPU_ISOLATION, RCU_NOCB_CPU built in");
        check(&KNOB, &format!("{OPEN}CONFIG_CPUSETS=n"), "fail high without CPUSETS");
        check(&KNOB, "--cpus 0-3", "not-applicable");
        check(&KNOB, "/sys/devices/system/cpu/isolated: \nCONFIG_CPUSETS=n", "not-applicable");
        let hidden = "/sys/devices/system/cpu/isolated refused\n/sys/devices/system/cpu/nohz_full \
                      refused";
        check(&KNOB, hidden, "unknown");
        check(&KNOB, &format!("{hidden}\n--cpus 2"), "pass CPUSETS, CPU_ISOLATION, RCU_NOCB_CPU built in");
    }
}
