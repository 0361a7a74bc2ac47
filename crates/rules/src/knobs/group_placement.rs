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
    title: "groups of the rest of the system",
    description: "Services, sessions, containers and virtual machines live in control groups at \
                  the top: system.slice, user.slice, init.scope, machine.slice and those that \
                  somebody added. AllowedCPUs= of systemd, which is cpuset.cpus, says on which \
                  CPUs.",
    rationale: "where load is balanced over the audited CPUs, every task of a group that may run there \
                sooner or later does",
    detection: "cpuset.cpus.effective of the groups at the top, on CPUs over which load is balanced: where \
                isolcpus= or a partition keeps tasks away there is nothing to do. A group with none but \
                audited CPUs is taken for that of the real-time program. Masks that tasks inherit \
                (CPUAffinity= of systemd) are not seen here.",
    side_effects: "The rest of the system has fewer CPUs. Container managers that write all CPUs \
                   into their groups are cut down or fail.",
    wanted: "groups at the top confined to the other CPUs",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "systemctl set-property SLICE AllowedCPUs=LIST with the other CPUs, for each group at \
             the top, init.scope too",
        )
    },
    severity: Severity::Medium,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Boot,
    unsettable: "the groups are systemd's, and an AllowedCPUs= that was set leaves its list in \
                 the group when it is taken back",
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
            "out of load balancing, where no task comes by itself: {}",
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
        "systemctl set-property SLICE AllowedCPUs={} for each, init.scope too; the group of the real-time \
         program has only audited CPUs",
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
        check(&KNOB, "", "not-applicable out of load balancing, where no task comes by itself: CPUs 2-3");
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
            "unknown not all control groups below /sys/fs/cgroup could be looked at: run with \
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
