//! Control groups: whether they can isolate CPUs at run time.

use super::sources::{CGROUP_V2, CPUSETS1, ISOLATION};
use crate::change::{AdviceReason, Change, Persistence};
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing;
use crate::remedy::Remedy;
use crate::view::MachineView;
use crate::words::cpu_list;
use facts::Fact;
use facts::cmdline::Cmdline;
use facts::groups::{Group, Groups, Partition, Version};
use facts::kconfig::OptionValue;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "cgroup-cpuset",
    title: "control groups that can isolate CPUs",
    description: "Isolated partitions take CPUs out of load balancing at run time. They need cgroup v2 with \
                  the cpuset controller, from 6.1 on, or earlier with a distribution's backport. If that \
                  controller belongs to v1, as in legacy and hybrid setups, partitions are not available: \
                  sets of v1 can only switch load balancing off for all CPUs, and then on again for some.",
    rationale: "without them CPUs can be isolated only at boot with isolcpus=, or with the coarse switch of \
                v1",
    detection: "The file system mounted at /sys/fs/cgroup, cgroup.controllers of the root, and the kernel's \
                version. Hierarchies mounted elsewhere are not seen.",
    side_effects: "Container managers older than v2 do not run with v2 alone. A kernel without \
                   CONFIG_CPUSETS has to be rebuilt.",
    wanted: "only v2, with cpuset in cgroup.controllers",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "boot with systemd.unified_cgroup_hierarchy=1 and without cgroup_disable=cpuset, on a \
             kernel with CONFIG_CPUSETS; or isolate at boot with isolcpus=",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: "the mounted cgroup version and its controllers are chosen at boot",
    sources: &[
        Source { title: "kernel: CPU isolation, scheduler domain isolation, requirements", url: ISOLATION },
        Source { title: "kernel: control groups v2, cpuset", url: CGROUP_V2 },
        Source { title: "kernel: cpusets of version 1, sched_load_balance", url: CPUSETS1 },
    ],
    cures: &[SliceKind::Thread],
    facts: &[
        "/sys/fs/cgroup/cgroup.controllers",
        "/sys/fs/cgroup/unified/cgroup.controllers",
        "/sys/fs/cgroup/GROUP/cpuset.cpus.partition",
        "/proc/sys/kernel/osrelease",
    ],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /sys/devices/system/cpu/isolated:
                /sys/fs/cgroup absent
                /sys/fs/cgroup/cpuset/cpuset.sched_load_balance: 1",
        silent: "--cpus 2-3
                 /proc/sys/kernel/osrelease: 6.12.9
                 /sys/devices/system/cpu/isolated:
                 /sys/fs/cgroup/cgroup.controllers: cpuset cpu io",
        unknown: "--cpus 2-3
                  /sys/devices/system/cpu/isolated:
                  /sys/fs/cgroup refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let groups = match &machine.survey.groups {
        Fact::Absent => Err(Judgement::unknown("no control groups are mounted at /sys/fs/cgroup")),
        groups => machine.known(groups, "/sys/fs/cgroup"),
    };
    let found = groups.map(|groups| (groups.version, can_isolate(machine, groups)));
    match found {
        Ok((Version::V2, Ok(true))) => return Ok(Judgement::pass("v2 with cpuset")),
        Ok((Version::Hybrid, Ok(true))) => {
            return Ok(Judgement::pass("v2 with cpuset, next to v1"));
        }
        _ if load_balancing::is_off(machine) => {
            return Err(Judgement::not_applicable(format!("isolated already: {}", cpu_list(machine.cpus()))));
        }
        _ => {}
    }
    let (version, cpuset) = found?;
    cpuset?;
    let judged = Judgement::fail(match version {
        Version::V2 => "v2 without cpuset",
        Version::Hybrid => "v2 without cpuset, next to v1",
        Version::V1 => "v1",
    });
    Ok(match with_controller(machine).filter(|_| version == Version::V2) {
        Some(remedy) => judged.fix(remedy.or(load_balancing::isolate_at_boot(machine))),
        None => judged,
    })
}

/// The controller, where the kernel was told to go without it or built so; none where neither is
/// known.
pub fn with_controller(machine: &MachineView) -> Option<Remedy> {
    let disabled = |line: &&Cmdline| {
        line.values("cgroup_disable").any(|value| value.split(',').any(|name| name == "cpuset"))
    };
    if machine.facts().cmdline.known().filter(disabled).is_some() {
        let words = "remove cpuset from cgroup_disable= on the kernel's command line";
        return Some(Remedy::advice(AdviceReason::Choice, words).with_persistence(Persistence::Boot));
    }
    let config = machine.facts().kconfig.known();
    let lacks = config.is_some_and(|config| config.get("CPUSETS") == OptionValue::No);
    lacks.then(|| Change::kconfig("CPUSETS", "y").into())
}

/// Whether version 2 has the controller; unknown where the kernel may be too old for isolated
/// partitions.
fn can_isolate(machine: &MachineView, groups: &Groups) -> Result<bool, Judgement> {
    if !groups.controllers.iter().any(|controller| controller == "cpuset") {
        return Ok(false);
    }
    // One that was asked for is proof enough: an older kernel refuses the very word.
    let isolated = |group: &Group| match &group.partition {
        Fact::Known(Partition::Isolated) => true,
        Fact::Known(Partition::Invalid { wanted, .. }) => wanted == "isolated",
        _ => false,
    };
    if !groups.groups.iter().any(isolated) && machine.series()? < (6, 1) {
        return Err(Judgement::unknown(
            "kernels before 6.1 have isolated partitions only as a distribution's backport: write isolated \
             to cpuset.cpus.partition of a group, and read it back",
        ));
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const OPEN: &str = "--cpus 2-3\n/sys/devices/system/cpu/isolated:";

    #[test]
    fn the_controller_has_to_be_in_version_two() {
        check(&KNOB, "", "pass v2 with cpuset");
        check(&KNOB, "/sys/fs/cgroup absent", "not-applicable isolated already: CPUs 2-3");
        check(&KNOB, OPEN, "pass v2 with cpuset");
        let old = format!("{OPEN}\n/proc/sys/kernel/osrelease: 5.14.0-570.el9.x86_64");
        check(&KNOB, &old, "unknown");
        let asked = "/sys/fs/cgroup/rt.slice/cpuset.cpus.partition: isolated invalid (x)";
        check(&KNOB, &format!("{old}\n{asked}"), "pass v2 with cpuset");
        check(
            &KNOB,
            &format!("{OPEN}\n/sys/fs/cgroup/cgroup.controllers: cpu"),
            "fail medium v2 without cpuset",
        );
        for (edit, remedy) in [
            ("CONFIG_CPUSETS=n", "boot a kernel built with CONFIG_CPUSETS, or "),
            ("cmdline + cgroup_disable=memory,cpuset", "remove cpuset from cgroup_disable= on "),
        ] {
            let mut machine = Machine::base();
            machine.edit(&format!("{OPEN}\n/sys/fs/cgroup/cgroup.controllers: cpu\n{edit}"));
            let fix = machine.finding(&KNOB).fix;
            assert!(fix.starts_with(remedy), "{fix}");
        }
        check(
            &KNOB,
            &format!(
                "{OPEN}\n/sys/fs/cgroup absent\n/sys/fs/cgroup/unified/cgroup.controllers:\n\
                 /sys/fs/cgroup/cpuset/tasks:"
            ),
            "fail medium v2 without cpuset, next to v1",
        );
        check(
            &KNOB,
            &format!("{OPEN}\n/sys/fs/cgroup absent\n/sys/fs/cgroup/cpuset/tasks:"),
            "fail medium v1",
        );
        check(
            &KNOB,
            &format!("{OPEN}\n/sys/fs/cgroup absent"),
            "unknown no control groups are mounted at /sys/fs/cgroup",
        );
    }
}
