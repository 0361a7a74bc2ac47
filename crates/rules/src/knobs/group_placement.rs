//! The groups of everything else: whether they keep off the audited CPUs.

use super::cgroup_cpuset::with_controller;
use super::sources::{CGROUP_V2, ISOLATION};
use crate::change::{AdviceReason, Change, Persistence};
use crate::isolation::all_readable;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::load_balancing::balanced_cpus;
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::{cpu_list, truncate_list};
use facts::Fact;
use facts::groups::{Group, Groups, Version};
use model::slice::SliceKind;
use model::units::CpuSet;

pub static KNOB: Knob = Knob {
    id: "group-placement",
    title: "CPUs of the other control groups",
    description: "Services, sessions, containers and virtual machines run in top-level control groups: \
                  system.slice, user.slice, init.scope, machine.slice and others that were added. \
                  AllowedCPUs= of systemd, which is cpuset.cpus, sets their CPUs.",
    rationale: "if load is balanced over the audited CPUs, every task of a group that may run there will do \
                so sooner or later",
    detection: "cpuset.cpus.effective of the top-level groups, on CPUs over which load is balanced: nothing \
                has to be done if isolcpus= or a partition keeps tasks away. A group with only audited CPUs \
                is assumed to be that of the real-time program. Masks that tasks inherit (CPUAffinity= of \
                systemd) are not seen here.",
    side_effects: "The rest of the system has fewer CPUs. Container managers that write all CPUs into their \
                   groups get fewer or fail.",
    wanted: "top-level groups are confined to the other CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "systemctl set-property SLICE AllowedCPUs=LIST with the other CPUs, for each top-level group, \
             including init.scope",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: "the groups belong to systemd, and the list stays in the group after AllowedCPUs= is reset",
    sources: &[
        Source { title: "kernel: control groups v2, cpuset.cpus", url: CGROUP_V2 },
        Source { title: "kernel: CPU isolation", url: ISOLATION },
    ],
    cures: &[SliceKind::Thread, SliceKind::Switch],
    after: &["cgroup-cpuset"],
    facts: &["/sys/fs/cgroup/GROUP/cpuset.cpus.effective"],
    judge,
    examples: Examples {
        fires: "--cpus 2-3
                /sys/devices/system/cpu/isolated:
                /sys/fs/cgroup/cpuset.cpus.isolated:
                /sys/fs/cgroup/cgroup.controllers: cpuset cpu
                /sys/fs/cgroup/user.slice/cpuset.cpus.effective: 0-3
                /sys/fs/cgroup/user.slice/cpuset.cpus.partition: member",
        silent: "--cpus 2-3
                /sys/devices/system/cpu/isolated:
                /sys/fs/cgroup absent
                /sys/fs/cgroup/cgroup.controllers: cpuset cpu
                /sys/fs/cgroup/user.slice/cpuset.cpus.effective: 0-1
                /sys/fs/cgroup/user.slice/cpuset.cpus.partition: member",
        unknown: "--cpus 2-3
                  /sys/devices/system/cpu/isolated:
                  /sys/fs/cgroup refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    machine.require_isolation()?;
    let exposed = balanced_cpus(machine)?;
    if exposed.is_empty() {
        return Err(Judgement::not_applicable(format!(
            "out of load balancing, where no task is moved: {}",
            cpu_list(machine.cpus())
        )));
    }
    let groups = match &machine.survey.groups {
        Fact::Absent => {
            return Err(Judgement::unknown("no control groups are mounted at /sys/fs/cgroup"));
        }
        groups => machine.known(groups, "/sys/fs/cgroup")?,
    };
    if groups.version == Version::V1 || groups.cpusets.is_some() {
        return Err(Judgement::not_applicable("the controller cpuset belongs to version 1 (cgroup-cpuset)"));
    }
    let fix = format!(
        "systemctl set-property SLICE AllowedCPUs={} for each, including init.scope; only the group of the \
         real-time program has audited CPUs",
        machine.housekeeping_cpus()?
    );
    let fix = Change::advice(AdviceReason::Program, fix);
    let has_controller = groups.controllers.iter().any(|name| name == "cpuset");
    let remedy = match with_controller(machine).filter(|_| !has_controller) {
        Some(controller) => controller.and(fix),
        None => fix.into(),
    };
    Ok(confined(machine, groups, &exposed)?.fix(remedy))
}

fn confined(machine: &MachineView, groups: &Groups, exposed: &CpuSet) -> Judged {
    let top: Vec<&Group> =
        groups.groups.iter().filter(|group| group.path.matches('/').count() == 1).collect();
    let limited = top.iter().filter(|group| group.effective != Fact::Absent);
    if limited.clone().count() == 0 {
        all_readable(groups)?;
        return Ok(Judgement::fail(format!(
            "no group confines tasks, which may run on {}",
            cpu_list(exposed)
        )));
    }
    let wide = |group: &&&Group| match group.effective.known() {
        Some(cpus) => !cpus.and(exposed).is_empty() && !cpus.without(machine.cpus()).is_empty(),
        None => false,
    };
    let names = truncate_list(
        limited.clone().filter(wide).map(|group| group.path.trim_start_matches('/').to_owned()),
    );
    if !names.is_empty() {
        return Ok(Judgement::fail(format!("{names} may run on {}", cpu_list(exposed))));
    }
    for group in limited {
        if !matches!(group.effective, Fact::Known(_)) {
            let path = format!("{}{}/cpuset.cpus.effective", groups.root, group.path);
            return Err(unknown_from(&path, &group.effective));
        }
    }
    all_readable(groups)?;
    Ok(Judgement::pass(format!("none may run on {}", cpu_list(exposed))))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::{Machine, check};

    const OPEN: &str = "--cpus 2-3\n/sys/devices/system/cpu/isolated:";

    #[test]
    fn groups_that_reach_balanced_cpus_fail() {
        check(&KNOB, "", "not-applicable out of load balancing, where no task is moved: CPUs 2-3");
        check(&KNOB, OPEN, "pass none may run on CPUs 2-3");
        let wide = "/sys/fs/cgroup/system.slice/cpuset.cpus.effective: 0-3\n\
                    /sys/fs/cgroup/user.slice/cpuset.cpus.effective: 1-2";
        check(&KNOB, &format!("{OPEN}\n{wide}"), "fail medium system.slice, user.slice may run on CPUs 2-3");
        check(
            &KNOB,
            &format!("{OPEN}\n{wide}\n/sys/devices/system/cpu/isolated: 2"),
            "fail medium system.slice may run on CPU 3",
        );
        let own = "/sys/fs/cgroup/rt.slice/cpuset.cpus.effective: 2-3\n\
                   /sys/fs/cgroup/rt.slice/cpuset.cpus.partition: member";
        check(&KNOB, &format!("{OPEN}\n{own}"), "pass");
        check(
            &KNOB,
            &format!("{OPEN}\n/sys/fs/cgroup absent\n/sys/fs/cgroup/cgroup.controllers: cpu"),
            "fail medium no group confines tasks, which may run on CPUs 2-3",
        );
        let mut machine = Machine::base();
        let bare = "/sys/fs/cgroup absent\n/sys/fs/cgroup/cgroup.controllers: cpu\nCONFIG_CPUSETS=n";
        machine.edit(&format!("{OPEN}\n{bare}"));
        let fix = machine.finding(&KNOB).fix;
        assert!(fix.starts_with("boot a kernel built with CONFIG_CPUSETS, and systemctl "), "{fix}");
        check(
            &KNOB,
            &format!(
                "{OPEN}\n/sys/fs/cgroup absent\n/sys/fs/cgroup/cgroup.controllers: cpu\n\
                 /sys/fs/cgroup/cgroup.type: domain"
            ),
            "unknown not all control groups below /sys/fs/cgroup could be read: run with \
             CAP_DAC_READ_SEARCH, which root has outside of a container",
        );
        check(&KNOB, &format!("{OPEN}\n/sys/fs/cgroup/user.slice/cpuset.cpus.effective refused"), "unknown");
        check(
            &KNOB,
            &format!(
                "{OPEN}\n/sys/fs/cgroup absent\n/sys/fs/cgroup/unified/cgroup.controllers:\n\
                 /sys/fs/cgroup/cpuset/cpuset.sched_load_balance: 1"
            ),
            "not-applicable the controller cpuset belongs to version 1 (cgroup-cpuset)",
        );
    }
}
