//! Partitions of control groups: whether the requested ones are in effect.

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
use facts::groups::{Group, Partition};
use model::slice::SliceKind;

pub static KNOB: Knob = Knob {
    id: "cpuset-partition",
    title: "cpuset partitions",
    description: "A control group whose cpuset.cpus.partition is `isolated` has exclusive CPUs without load \
                  balancing; one with `root` has a separate scheduling domain. The kernel accepts the value \
                  without an error, but may not fulfil it, then or later: the file then reads `isolated \
                  invalid (reason)`.",
    rationale: "an invalid partition isolates nothing: its CPUs take part in load balancing and unbound work \
                as before",
    detection: "cpuset.cpus.partition of the groups down to two levels below the root. A partition can \
                become invalid later, when CPUs go offline or other groups change.",
    side_effects: "Other groups with the same CPUs lose them, or have to release them first. On 6.12, a \
                   partition directly below the root stayed invalid next to a group with its CPUs, even with \
                   cpuset.cpus.exclusive, was refused for CPUs of isolcpus=, and vanished with systemctl \
                   daemon-reload; a nested group, with cpuset.cpus.exclusive in both (from 6.7 on), had none \
                   of these problems.",
    wanted: "root or isolated, without `invalid`",
    fix: || {
        Remedy::advice(
            AdviceReason::Choice,
            "remove the CPUs from cpuset.cpus of its sibling groups, then write member and the type again to \
             cpuset.cpus.partition, and read it back; from 6.7 on a partition in a nested group, with \
             cpuset.cpus.exclusive written in both, is valid without a change of the siblings; the reason is \
             in parentheses",
        )
    },
    severity: Severity::High,
    evidence: EvidenceKind::Documented,
    persistence: Persistence::Runtime,
    unsettable: "the partition and its sibling groups belong to another program: only its user can decide \
                 which of them changes",
    sources: &[Source { title: "kernel: control groups v2, cpuset.cpus.partition", url: CGROUP_V2 }],
    cures: &[SliceKind::Thread, SliceKind::Workqueue, SliceKind::Softirq],
    after: &["cgroup-cpuset"],
    facts: &["/sys/fs/cgroup/GROUP/cpuset.cpus.partition", "/sys/fs/cgroup/GROUP/cpuset.cpus.effective"],
    judge,
    examples: Examples {
        fires: "/sys/fs/cgroup/cgroup.controllers: cpuset cpu
                /sys/fs/cgroup/rt.slice/cpuset.cpus: 2-3
                /sys/fs/cgroup/rt.slice/cpuset.cpus.partition: isolated invalid (Cpu list in cpuset.cpus not exclusive)",
        silent: "/sys/fs/cgroup/cgroup.controllers: cpuset cpu
                 /sys/fs/cgroup/rt.slice/cpuset.cpus: 2-3
                 /sys/fs/cgroup/rt.slice/cpuset.cpus.effective: 2-3
                 /sys/fs/cgroup/rt.slice/cpuset.cpus.partition: isolated",
        unknown: "/sys/fs/cgroup/cgroup.controllers: cpuset cpu
                  /sys/fs/cgroup/rt.slice/cpuset.cpus: 2-3
                  /sys/fs/cgroup/rt.slice/cpuset.cpus.partition refused",
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
    let invalid = groups.groups.iter().filter_map(|group| match &group.partition {
        Fact::Known(Partition::Invalid { wanted, reason }) => {
            let reason = if reason.is_empty() { String::new() } else { format!(" ({reason})") };
            Some(format!("{} {wanted} invalid{reason}", name(group)))
        }
        _ => None,
    });
    let invalid = truncate_list(invalid);
    if !invalid.is_empty() {
        return Ok(Judgement::fail(invalid));
    }
    for group in &groups.groups {
        if !matches!(group.partition, Fact::Known(_) | Fact::Absent) {
            let path = format!("{}{}/cpuset.cpus.partition", groups.root, group.path);
            return Err(unknown_from(&path, &group.partition));
        }
    }
    all_readable(groups)?;
    let valid = groups.groups.iter().filter_map(|group| match &group.partition {
        Fact::Known(Partition::Root) => Some(format!("{} root", name(group))),
        Fact::Known(Partition::Isolated) => Some(format!("{} isolated", name(group))),
        _ => None,
    });
    let valid = truncate_list(valid);
    if valid.is_empty() {
        return Err(Judgement::not_applicable("no control group is a partition"));
    }
    Ok(Judgement::pass(valid))
}

fn name(group: &Group) -> &str {
    group.path.trim_start_matches('/')
}

#[cfg(test)]
mod tests {
    use super::KNOB;
    use crate::fixture::check;

    const RT: &str = "/sys/fs/cgroup/rt.slice/cpuset.cpus.partition:";

    #[test]
    fn invalid_partitions_fail_whatever_else_is_there() {
        check(&KNOB, "", "not-applicable no control group is a partition");
        check(&KNOB, &format!("{RT} isolated"), "pass rt.slice isolated");
        check(
            &KNOB,
            &format!(
                "{RT} root invalid (Parent is not a partition root)\n\
                 /sys/fs/cgroup/a/cpuset.cpus.partition: isolated"
            ),
            "fail high rt.slice root invalid (Parent is not a partition root)",
        );
        check(&KNOB, &format!("{RT} isolated invalid"), "fail high rt.slice isolated invalid");
        check(
            &KNOB,
            &format!("{RT} isolated invalid\n/sys/fs/cgroup/a/cpuset.cpus.partition: x"),
            "fail high rt.slice isolated invalid",
        );
        check(&KNOB, &format!("{RT} isolated\n/sys/fs/cgroup/a/cpuset.cpus.partition: x"), "unknown");
        check(&KNOB, "/sys/fs/cgroup absent", "unknown no control groups are mounted at /sys/fs/cgroup");
    }
}
