//! Quotas of control groups: limits of CPU time per period.

use super::sources::CGROUP_V2;
use crate::change::AdviceReason;
use crate::change::Persistence;
use crate::isolation::all_readable;
use crate::judgement::{Judged, Judgement, Severity};
use crate::knob::{EvidenceKind, Examples, Knob, Source};
use crate::remedy::Remedy;
use crate::unknown::unknown_from;
use crate::view::MachineView;
use crate::words::truncate_list;
use facts::Fact;
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "cpu-quota",
    title: "CPU quotas",
    description: "cpu.max (cpu.cfs_quota_us in v1) limits the CPU time of a control group in each period; \
                  once it is used up, the ordinary tasks of the group stop until the next period. Only \
                  ordinary tasks are affected: tasks with a real-time policy continue.",
    rationale: "an ordinary thread of a group without remaining quota stops for tens of milliseconds, while \
                a real-time thread may wait for it: for a lock, a pipe, a file",
    detection: "cpu.max, or cpu.cfs_quota_us in v1, of the groups down to two levels below the root; those \
                of pods can be deeper. It is not known which of them contains a helper of a real-time \
                program; `onbeat measure` reports it when the quota of its group ran out.",
    side_effects: "Without a quota a group can use all CPU time, limited only by its fair share.",
    wanted: "no quota on groups with threads that real-time threads wait for",
    fix: || {
        Remedy::advice(
            AdviceReason::Program,
            "echo max >cpu.max in the groups of the real-time program and its helpers, or CPUQuota= (empty) \
             in the unit; other groups may keep theirs",
        )
    },
    severity: Severity::Info,
    evidence: EvidenceKind::Documented,
    disputed: "on PREEMPT_RT a thread that holds a lock with priority inheritance continues at the waiter's \
               priority; other waits have no owner: `onbeat measure` in the group, with the helpers running, \
               shows whether it matters",
    persistence: Persistence::Runtime,
    unsettable: "the groups of the real-time program and its helpers are not known, and the service manager \
                 that set a quota sets it again",
    sources: &[Source { title: "kernel: control groups v2, cpu.max", url: CGROUP_V2 }],
    cures: &[SliceKind::Throttled, SliceKind::PriorityInversion],
    facts: &["/sys/fs/cgroup/GROUP/cpu.max", "/sys/fs/cgroup/cpu/GROUP/cpu.cfs_quota_us"],
    judge,
    examples: Examples {
        fires: "/sys/fs/cgroup/cgroup.controllers: cpu
                /sys/fs/cgroup/app.slice/cpu.max: 50000 100000",
        silent: "/sys/fs/cgroup absent
                /sys/fs/cgroup/cgroup.controllers: cpu
                /sys/fs/cgroup/app.slice/cpu.max: max 100000",
        unknown: "/sys/fs/cgroup refused",
    },
    ..Knob::DEFAULT
};

fn judge(machine: &MachineView) -> Judged {
    let groups = match &machine.survey.groups {
        Fact::Absent => {
            return Err(Judgement::unknown("no control groups are mounted at /sys/fs/cgroup"));
        }
        groups => machine.known(groups, "/sys/fs/cgroup")?,
    };
    let name = |path: &str, quota: &Fact<Option<(u64, u64)>>| match quota {
        Fact::Known(Some((quota, period))) => {
            Some(format!("{} {quota} of {period} us", path.trim_start_matches('/')))
        }
        _ => None,
    };
    let limited = truncate_list(groups.groups.iter().filter_map(|group| name(&group.path, &group.quota)));
    let old = truncate_list(groups.old_quotas.iter().filter_map(|(path, quota)| name(path, quota)));
    if !limited.is_empty() {
        return Ok(Judgement::fail(limited));
    }
    if !old.is_empty() {
        return Ok(Judgement::fail(old).fix(Remedy::advice(
            AdviceReason::Program,
            "echo -1 >cpu.cfs_quota_us in the groups of the real-time program and its helpers, or CPUQuota= \
             (empty) in the unit; other groups may keep theirs",
        )));
    }
    for group in &groups.groups {
        if !matches!(group.quota, Fact::Known(_) | Fact::Absent) {
            return Err(unknown_from(&format!("{}{}/cpu.max", groups.root, group.path), &group.quota));
        }
    }
    for (path, quota) in &groups.old_quotas {
        if !matches!(quota, Fact::Known(_)) {
            // A quota exists, but not its period.
            let file = if *quota == Fact::Absent { "cpu.cfs_period_us" } else { "cpu.cfs_quota_us" };
            return Err(unknown_from(&format!("/sys/fs/cgroup/cpu{path}/{file}"), quota));
        }
    }
    all_readable(groups)?;
    if groups.groups.iter().all(|group| group.quota == Fact::Absent) && groups.old_quotas.is_empty() {
        return Err(Judgement::not_applicable("no control group has a quota to set"));
    }
    Ok(Judgement::pass("none"))
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    #[test]
    fn quotas_are_named() {
        check(&KNOB, "", "pass none");
        check(
            &KNOB,
            "/sys/fs/cgroup/user.slice/cpu.max: 50000 100000\n/sys/fs/cgroup/init.scope/cpu.max \
             refused",
            "fail info user.slice 50000 of 100000 us",
        );
        check(&KNOB, "/sys/fs/cgroup/user.slice/cpu.max: much", "unknown");
        check(
            &KNOB,
            "/sys/fs/cgroup absent\n/sys/fs/cgroup/cgroup.controllers: io",
            "not-applicable no control group has a quota to set",
        );
        let old = |docker: &str, pod: &str| {
            format!(
                "/sys/fs/cgroup absent
                 /sys/fs/cgroup/cpu/docker/cpu.cfs_quota_us: {docker}
                 /sys/fs/cgroup/cpu/docker/cpu.cfs_period_us: 100000
                 /sys/fs/cgroup/cpu/docker/pod/cpu.cfs_quota_us: {pod}
                 /sys/fs/cgroup/cpu/docker/pod/cpu.cfs_period_us: 100000"
            )
        };
        check(&KNOB, &old("50000", "-1"), "fail info docker 50000 of 100000 us");
        check(&KNOB, &old("-1", "20000"), "fail info docker/pod 20000 of 100000 us");
        check(&KNOB, &old("-1", "-1"), "pass none");
        check(&KNOB, &old("-1", "much"), "unknown");
        let period = "/sys/fs/cgroup/cpu/docker/cpu.cfs_period_us";
        let without = format!("{}\n{period} absent", old("50000", "-1"));
        check(&KNOB, &without, &format!("unknown {period} is not there"));
    }
}
