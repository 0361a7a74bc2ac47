//! The map as a value: the purpose of each CPU, and the work that may run there.

use std::collections::BTreeMap;

use super::tasks::PriorityStep;
use model::units::{Cpu, CpuSet};

/// Purpose of each CPU of a machine, and the work that may run there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// CPUs, including offline ones; empty if they are not known.
    pub cpus: CpuSet,
    /// Offline CPUs.
    pub offline: CpuSet,
    /// Audited CPUs; none if all are audited.
    pub matter: CpuSet,
    /// Kind of each CPU's core; empty if all are of one kind.
    pub types: BTreeMap<Cpu, String>,
    /// Node of each CPU; empty if there is only one, or if it is not known.
    pub nodes: BTreeMap<Cpu, u32>,
    /// CPUs of each core that has more than one.
    pub cores: Vec<CpuSet>,
    /// Mechanisms that isolate CPUs, in the order of [`APART`].
    pub apart: Vec<CpuProperty>,
    /// CPUs of unbound workqueues.
    pub workqueues: CpuProperty,
    /// Interrupts on the CPUs that take them now.
    pub lands: Work,
    /// Interrupts on the CPUs that may take them.
    pub may: Work,
    /// Movable kernel threads, on the CPUs that they may run on; without those of interrupts, which
    /// follow their interrupt.
    pub movable: Work,
    /// Kernel threads that are bound to their CPU.
    pub bound: Work,
    /// Real-time threads, the highest first.
    pub realtime: Vec<PriorityStep>,
    /// CPUs with the same description, by their first.
    pub groups: Vec<CpuGroup>,
    /// Facts that could not be read, a sentence each.
    pub unknown: Vec<String>,
}

/// Mechanisms that isolate CPUs from the rest of the machine.
pub const APART: [&str; 4] = ["isolcpus", "cpuset partition", "nohz_full", "rcu_nocbs"];

/// CPUs that have a property.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuProperty {
    pub name: &'static str,
    /// CPUs with the property; none if that is not known.
    pub cpus: Option<CpuSet>,
}

impl CpuProperty {
    /// True if a CPU has the property; none if that is not known.
    pub fn has(&self, cpu: Cpu) -> Option<bool> {
        self.cpus.as_ref().map(|cpus| cpus.contains(cpu))
    }
}

/// Work that may take time from the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Items, each with its CPUs.
    pub items: Vec<WorkItem>,
    /// True if there may be more work that was not seen.
    pub partial: bool,
}

/// Interrupt or thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkItem {
    pub number: Option<u32>,
    /// Name; for a shared interrupt all names, separated by commas.
    pub name: String,
    /// CPUs that it may run on.
    pub cpus: CpuSet,
}

impl Work {
    /// Work that may run on any of these CPUs.
    pub fn on<'a>(&'a self, cpus: &'a CpuSet) -> impl Iterator<Item = &'a WorkItem> {
        self.items.iter().filter(|item| !item.cpus.0.is_disjoint(&cpus.0))
    }

    /// Number of items on each CPU.
    pub fn per_cpu(&self) -> BTreeMap<Cpu, usize> {
        let mut counts = BTreeMap::new();
        for cpu in self.items.iter().flat_map(|item| item.cpus.iter()) {
            *counts.entry(cpu).or_insert(0) += 1;
        }
        counts
    }
}

/// Description that a group of CPUs shares.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuTraits {
    pub online: bool,
    /// True if they are audited and others are not.
    pub matters: bool,
    /// Kind of their cores, `""` if all are of one kind.
    pub kind: String,
    /// Their node, if there are several.
    pub node: Option<u32>,
    /// Number of CPUs in each of their cores.
    pub threads: usize,
    /// For each of [`APART`], true if it isolates them; `None` if that is not known.
    pub apart: Vec<Option<bool>>,
    /// True if unbound workqueues may use them.
    pub workqueues: Option<bool>,
}

/// Group of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuGroup {
    pub cpus: CpuSet,
    /// Common description.
    pub alike: CpuTraits,
    /// Siblings of these CPUs in other groups: only a part of the core is isolated.
    pub split: CpuSet,
}

impl Map {
    /// CPUs of a CPU's core, if it has more than one.
    pub fn core_of(&self, cpu: Cpu) -> Option<&CpuSet> {
        // Cores ascend by their first CPU, so the core of this CPU is among those that begin before
        // it.
        let end = self.cores.partition_point(|core| core.iter().next().is_some_and(|first| first <= cpu));
        self.cores[..end].iter().rev().find(|core| core.contains(cpu))
    }
}
