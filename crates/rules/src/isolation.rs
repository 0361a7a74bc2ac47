//! CPUs that the machine isolates: by `isolcpus=`, `nohz_full=` or control groups, as far as that
//! could be read.
//!
//! Source: Documentation/admin-guide/cpu-isolation.rst, "Cpuset" in cgroup-v2.rst, and section 1.7
//! of cgroup-v1/cpusets.rst. `/sys/devices/system/cpu/isolated` shows the CPUs of `isolcpus=`;
//! those of version 2's partitions are listed by the root group.

use crate::judgement::Judgement;
use crate::unknown::unknown_from;
use facts::Fact;
use facts::groups::{Cpusets, Groups, Partition};
use facts::survey::Survey;
use model::error::run_with;
use model::units::CpuSet;

/// CPUs that the machine reserves: by `isolcpus=`, `nohz_full=` or a control group.
///
/// None if no CPU is known to be isolated and one of the three could not be read. A kernel without
/// `nohz_full` has no such file, and a machine need not have control groups; the list of isolated
/// CPUs always exists.
pub fn isolated_cpus(survey: &Survey) -> Option<CpuSet> {
    let facts = &survey.facts;
    let grouped = isolated_by_cgroup(survey);
    let listed = [&facts.isolated, &facts.nohz_full].into_iter().filter_map(|list| list.known());
    let all = listed.fold(grouped, |all, list| all.or(list));
    let read = facts.isolated.known().is_some()
        && matches!(facts.nohz_full, Fact::Known(_) | Fact::Absent)
        && match &survey.groups {
            Fact::Known(groups) => readable(groups).is_ok(),
            groups => *groups == Fact::Absent,
        };
    (read || !all.is_empty()).then_some(all)
}

/// CPUs that control groups keep out of load balancing.
pub fn isolated_by_cgroup(survey: &Survey) -> CpuSet {
    let Fact::Known(groups) = &survey.groups else { return CpuSet::default() };
    let partitions = groups.groups.iter().filter(|group| group.partition == Fact::Known(Partition::Isolated));
    let sets = partitions.filter_map(|group| group.effective.known());
    let all = sets.fold(CpuSet::default(), |all, cpus| all.or(cpus));
    let all = groups.isolated.known().map_or(all.clone(), |cpus| all.or(cpus));
    match (&groups.cpusets, &survey.facts.online) {
        (Some(cpusets), Fact::Known(online)) => all.or(&unbalanced(cpusets, online)),
        _ => all,
    }
}

/// CPUs over which version 1 balances no load: neither over all CPUs, nor within a set that
/// contains them.
fn unbalanced(cpusets: &Cpusets, online: &CpuSet) -> CpuSet {
    if cpusets.balanced != Fact::Known(false) || unread_set(cpusets).is_some() {
        return CpuSet::default();
    }
    let on = cpusets.sets.iter().filter(|set| set.balanced == Fact::Known(true));
    let on = on.filter_map(|set| set.cpus.known()).fold(CpuSet::default(), |all, cpus| all.or(cpus));
    online.without(&on)
}

/// Reason why one of version 1's sets may have any CPU, or may be balanced.
fn unread_set(cpusets: &Cpusets) -> Option<Judgement> {
    cpusets.sets.iter().find_map(|set| match (&set.cpus, &set.balanced) {
        (Fact::Known(_), Fact::Known(_)) => None,
        (Fact::Known(_), balanced) => {
            Some(unknown_from(&format!("sched_load_balance of the set {}", set.path), balanced))
        }
        (cpus, _) => Some(unknown_from(&format!("cpuset.cpus of the set {}", set.path), cpus)),
    })
}

/// Returns early with `unknown` unless all control groups could be read.
pub fn all_readable(groups: &Groups) -> Result<(), Judgement> {
    match groups.missed {
        0 => Ok(()),
        _ => Err(Judgement::unknown(format!(
            "not all control groups below {} could be read: {}",
            groups.root,
            run_with("CAP_DAC_READ_SEARCH")
        ))),
    }
}

/// Returns early with `unknown` unless the CPUs that control groups isolate could be read.
pub fn readable(groups: &Groups) -> Result<(), Judgement> {
    match &groups.cpusets {
        None | Some(Cpusets { balanced: Fact::Known(true), .. }) => {}
        Some(Cpusets {
            balanced: balanced @ (Fact::Refused(_) | Fact::Malformed(_) | Fact::NotCaptured),
            ..
        }) => {
            return Err(unknown_from("cpuset.sched_load_balance", balanced));
        }
        Some(cpusets) => unread_set(cpusets).map_or(Ok(()), Err)?,
    }
    match &groups.isolated {
        Fact::Known(_) => Ok(()),
        // Before 6.8 the root has no such file: the partitions of the groups are used.
        Fact::Absent => {
            let partitions = groups.groups.iter().map(|group| &group.partition);
            let missing = partitions.filter(|partition| !matches!(partition, Fact::Known(_) | Fact::Absent));
            if let Some(partition) = missing.into_iter().next() {
                return Err(unknown_from("cpuset.cpus.partition of a control group", partition));
            }
            all_readable(groups)
        }
        other => Err(unknown_from(&format!("{}/cpuset.cpus.isolated", groups.root), other)),
    }
}
