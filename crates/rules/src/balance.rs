//! Which CPUs are out of load balancing, by whatever took them out.
//!
//! Source: Documentation/admin-guide/cpu-isolation.rst, "Cpuset" in cgroup-v2.rst, and section 1.7 of
//! cgroup-v1/cpusets.rst. `/sys/devices/system/cpu/isolated` shows what `isolcpus=` took out; what partitions of
//! version 2 took out shows in the root group.

use super::case::{Case, unread};
use super::judgement::Judgement;
use facts::Fact;
use facts::groups::{Cpusets, Groups, Partition};
use facts::survey::Survey;
use model::error::run_with;
use model::units::CpuSet;

/// The CPUs that control groups keep out of load balancing.
pub fn set_apart(survey: &Survey) -> CpuSet {
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

/// The CPUs over which version 1 balances no load: not over all of them, and not within a set that has them.
fn unbalanced(cpusets: &Cpusets, online: &CpuSet) -> CpuSet {
    if cpusets.balanced != Fact::Known(false) || unread_set(cpusets).is_some() {
        return CpuSet::default();
    }
    let on = cpusets.sets.iter().filter(|set| set.balanced == Fact::Known(true));
    let on = on.filter_map(|set| set.cpus.known()).fold(CpuSet::default(), |all, cpus| all.or(cpus));
    online.without(&on)
}

/// Why one of version 1's sets may have any CPU, or be balanced, for all that could be read.
fn unread_set(cpusets: &Cpusets) -> Option<Judgement> {
    cpusets.sets.iter().find_map(|set| match (&set.cpus, &set.balanced) {
        (Fact::Known(_), Fact::Known(_)) => None,
        (Fact::Known(_), balanced) => {
            Some(unread(&format!("sched_load_balance of the set {}", set.path), balanced))
        }
        (cpus, _) => Some(unread(&format!("cpuset.cpus of the set {}", set.path), cpus)),
    })
}

/// Those of the CPUs that matter over which load is balanced; unknown where that could be any of them.
pub fn exposed(case: &Case) -> Result<CpuSet, Judgement> {
    const BOOT: &str = "/sys/devices/system/cpu/isolated";
    let survey = case.survey;
    let boot = survey.facts.isolated.known().cloned().unwrap_or_default();
    let grouped = set_apart(survey);
    let exposed = case.cpus().without(&boot.or(&grouped));
    if exposed.is_empty() {
        return Ok(exposed);
    }
    case.known(&survey.facts.isolated, BOOT)?;
    match &survey.groups {
        Fact::Absent => {}
        Fact::Known(groups) => told(groups)?,
        other => return Err(unread("/sys/fs/cgroup", other)),
    }
    Ok(exposed)
}

/// Goes on only if all control groups could be looked at.
pub fn told_all(groups: &Groups) -> Result<(), Judgement> {
    match groups.missed {
        0 => Ok(()),
        _ => Err(Judgement::unknown(format!(
            "not all control groups below {} could be looked at: {}",
            groups.root,
            run_with("CAP_DAC_READ_SEARCH")
        ))),
    }
}

/// Goes on only if the control groups told which CPUs they set apart.
pub(super) fn told(groups: &Groups) -> Result<(), Judgement> {
    match &groups.cpusets {
        None | Some(Cpusets { balanced: Fact::Known(true), .. }) => {}
        Some(Cpusets { balanced: balanced @ (Fact::Refused(_) | Fact::Malformed(_)), .. }) => {
            return Err(unread("cpuset.sched_load_balance", balanced));
        }
        Some(cpusets) => unread_set(cpusets).map_or(Ok(()), Err)?,
    }
    match &groups.isolated {
        Fact::Known(_) => Ok(()),
        // Before 6.8 the root did not tell: what each group says has to do.
        Fact::Absent => {
            let partitions = groups.groups.iter().map(|group| &group.partition);
            let missing = partitions.filter(|partition| !matches!(partition, Fact::Known(_) | Fact::Absent));
            if let Some(partition) = missing.into_iter().next() {
                return Err(unread("cpuset.cpus.partition of a control group", partition));
            }
            told_all(groups)
        }
        other => Err(unread(&format!("{}/cpuset.cpus.isolated", groups.root), other)),
    }
}
