//! Properties of CPUs: nodes, cores, and isolation.
//!
//! Source: Documentation/admin-guide/kernel-parameters.rst (isolcpus, nohz_full, rcu_nocbs),
//! workqueues' masks in Documentation/admin-guide/kernel-per-CPU-kthreads.rst,
//! Documentation/ABI/stable/sysfs-devices-node; that `nohz_full` offloads RCU callbacks too is in
//! `rcu_init_nohz()` of kernel/rcu/tree_nocb.h.

use std::collections::BTreeMap;

use super::cpus::{APART, CpuProperty};
use facts::Fact;
use facts::groups::Partition;
use facts::line::{parse_cpus, parse_mask};
use facts::survey::Survey;
use model::units::{Cpu, CpuSet};
use rules::unknown::unknown_from;

/// Files with the CPUs of each node.
pub const NODES: &str = "/sys/devices/system/node/node#/cpulist";
/// File with the mask of unbound workqueues.
pub const WORKQUEUES: &str = "/sys/devices/virtual/workqueue/cpumask";

/// Value of a fact; adds the reason to `unknown` if it is not known.
pub fn noted<'a, T>(unknown: &mut Vec<String>, fact: &'a Fact<T>, what: &str) -> Option<&'a T> {
    if fact.known().is_none() {
        unknown.push(unknown_from(what, fact).reason);
    }
    fact.known()
}

/// Node of each CPU; empty if there is only one, or if that is not known.
pub fn nodes(survey: &Survey, unknown: &mut Vec<String>) -> BTreeMap<Cpu, u32> {
    let texts = match survey.texts.all(NODES) {
        Fact::Known(texts) => texts,
        // A kernel without NUMA has no nodes.
        Fact::Absent => return BTreeMap::new(),
        other => {
            unknown.push(unknown_from(NODES, &other).reason);
            return BTreeMap::new();
        }
    };
    let mut nodes = BTreeMap::new();
    for text in texts {
        let number = text.names.first().and_then(|number| number.parse().ok());
        let cpus = text.content.clone().parse(|content| parse_cpus(&content));
        if let (Some(number), Some(cpus)) = (number, noted(unknown, &cpus, &text.path)) {
            nodes.extend(cpus.iter().map(|cpu| (cpu, number)));
        }
    }
    let several = texts.len() > 1;
    if several { nodes } else { BTreeMap::new() }
}

/// CPUs of each core that has more than one.
pub fn cores(survey: &Survey, unknown: &mut Vec<String>) -> Vec<CpuSet> {
    match &survey.facts.siblings {
        Fact::Absent => Vec::new(),
        fact => noted(unknown, fact, "the list of each CPU's siblings").cloned().unwrap_or_default(),
    }
}

/// CPUs that unbound workqueues may use.
pub fn workqueues(survey: &Survey, unknown: &mut Vec<String>) -> CpuProperty {
    let mask = survey.texts.one(WORKQUEUES).parse(parse_mask);
    CpuProperty { name: "unbound work", cpus: noted(unknown, &mask, WORKQUEUES).cloned() }
}

/// Mechanisms that isolate CPUs, in the order of [`APART`].
pub fn apart(survey: &Survey, cpus: &CpuSet, unknown: &mut Vec<String>) -> Vec<CpuProperty> {
    let facts = &survey.facts;
    let isolated = noted(unknown, &facts.isolated, "/sys/devices/system/cpu/isolated").cloned();
    // A kernel without CONFIG_NO_HZ_FULL has no such file.
    let nohz_full = match &facts.nohz_full {
        Fact::Absent => Some(CpuSet::default()),
        fact => noted(unknown, fact, "/sys/devices/system/cpu/nohz_full").cloned(),
    };
    let offloaded = offloaded(survey, cpus, nohz_full.as_ref(), unknown);
    let found = [isolated, partitions(survey, unknown), nohz_full, offloaded];
    APART.into_iter().zip(found).map(|(name, cpus)| CpuProperty { name, cpus }).collect()
}

/// CPUs of isolated partitions.
fn partitions(survey: &Survey, unknown: &mut Vec<String>) -> Option<CpuSet> {
    let groups = match &survey.groups {
        Fact::Absent => return Some(CpuSet::default()),
        fact => noted(unknown, fact, "/sys/fs/cgroup")?,
    };
    let own = groups.groups.iter().filter(|group| group.partition == Fact::Known(Partition::Isolated));
    let own =
        own.filter_map(|group| group.effective.known()).fold(CpuSet::default(), |all, cpus| all.or(cpus));
    match &groups.isolated {
        // Kernels before 6.8 have no such sum.
        Fact::Absent => Some(own),
        // The kernel's sum includes the CPUs isolated at boot.
        fact => {
            let boot = survey.facts.isolated.known().cloned().unwrap_or_default();
            noted(unknown, fact, "cpuset.cpus.isolated").map(|all| all.without(&boot).or(&own))
        }
    }
}

/// CPUs whose RCU callbacks are offloaded.
fn offloaded(
    survey: &Survey,
    cpus: &CpuSet,
    nohz_full: Option<&CpuSet>,
    unknown: &mut Vec<String>,
) -> Option<CpuSet> {
    let facts = &survey.facts;
    if facts.option("RCU_NOCB_CPU") == Some(false) {
        return Some(CpuSet::default());
    }
    let cmdline = noted(unknown, &facts.cmdline, "/proc/cmdline")?;
    let nohz_full = nohz_full?;
    let Some(list) = cmdline.value("rcu_nocbs") else {
        let none = !cmdline.has("rcu_nocbs") && nohz_full.is_empty();
        let all = none && facts.option("RCU_NOCB_CPU_DEFAULT_ALL") == Some(true);
        return Some(if all { cpus.clone() } else { nohz_full.clone() });
    };
    let last = cpus.iter().last().unwrap_or_default();
    match list {
        "all" => Some(cpus.clone()),
        list => {
            let list = Fact::Known(list.replace('N', &last.to_string())).parse(|list| parse_cpus(&list));
            noted(unknown, &list, "rcu_nocbs= of the command line").map(|list| list.or(nohz_full))
        }
    }
}
