//! The map as a value: what each CPU is kept for, and what may run there.

use std::collections::BTreeMap;

use super::tasks::PriorityStep;
use model::units::{Cpu, CpuSet};

/// What each CPU of a machine is kept for, and what may run there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// The CPUs, those that are offline among them; empty where it is not known which there are.
    pub cpus: CpuSet,
    /// Those that do not run.
    pub offline: CpuSet,
    /// The audited ones; none where all are.
    pub matter: CpuSet,
    /// The kind of each CPU's core; empty where all are of one kind.
    pub types: BTreeMap<Cpu, String>,
    /// The node of each CPU; empty where there is only one, or where it is not known.
    pub nodes: BTreeMap<Cpu, u32>,
    /// The CPUs of each core that has more than one.
    pub cores: Vec<CpuSet>,
    /// What isolates CPUs, in the order of [`APART`].
    pub apart: Vec<CpuProperty>,
    /// The CPUs of unbound workqueues.
    pub workqueues: CpuProperty,
    /// Interrupts on the CPUs that take them now.
    pub lands: Work,
    /// Interrupts on the CPUs that may take them.
    pub may: Work,
    /// Threads of the kernel that could be moved, on the CPUs that they may run on; those of
    /// interrupts are not among them, for they follow their interrupt.
    pub movable: Work,
    /// Threads of the kernel that belong where they are.
    pub bound: Work,
    /// Real-time threads, the highest first.
    pub realtime: Vec<PriorityStep>,
    /// CPUs with the same description, by their first.
    pub groups: Vec<CpuGroup>,
    /// What could not be read, a sentence each.
    pub unknown: Vec<String>,
}

/// What isolates CPUs from the rest of the machine.
pub const APART: [&str; 4] = ["isolcpus", "cpuset partition", "nohz_full", "rcu_nocbs"];

/// The CPUs that have a property.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuProperty {
    pub name: &'static str,
    /// Its CPUs; none where that is not known.
    pub cpus: Option<CpuSet>,
}

impl CpuProperty {
    /// Whether a CPU has the property; none where that is not known.
    pub fn has(&self, cpu: Cpu) -> Option<bool> {
        self.cpus.as_ref().map(|cpus| cpus.contains(cpu))
    }
}

/// What may take time from the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Each with its CPUs.
    pub items: Vec<WorkItem>,
    /// Whether there could be more that was not seen.
    pub partial: bool,
}

/// An interrupt or a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkItem {
    pub number: Option<u32>,
    /// The name; of a shared interrupt all, with commas between them.
    pub name: String,
    /// Where it may be.
    pub cpus: CpuSet,
}

impl Work {
    /// What may be on any of these CPUs.
    pub fn on<'a>(&'a self, cpus: &'a CpuSet) -> impl Iterator<Item = &'a WorkItem> {
        self.items.iter().filter(|item| !item.cpus.0.is_disjoint(&cpus.0))
    }

    /// How much there is on each CPU.
    pub fn per_cpu(&self) -> BTreeMap<Cpu, usize> {
        let mut counts = BTreeMap::new();
        for cpu in self.items.iter().flat_map(|item| item.cpus.iter()) {
            *counts.entry(cpu).or_insert(0) += 1;
        }
        counts
    }
}

/// CPUs with the same description.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuTraits {
    pub online: bool,
    /// Whether they are audited and others are not.
    pub matters: bool,
    /// The kind of their cores, `""` where all are of one kind.
    pub kind: String,
    /// Their node, where there are several.
    pub node: Option<u32>,
    /// How many CPUs their cores have.
    pub threads: usize,
    /// Whether each of [`APART`] isolates them; `None` where that is not known.
    pub apart: Vec<Option<bool>>,
    /// Whether unbound workqueues may use them.
    pub workqueues: Option<bool>,
}

/// A group of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuGroup {
    pub cpus: CpuSet,
    /// What is the same of all.
    pub alike: CpuTraits,
    /// Siblings of theirs that are in another group: half a core is isolated.
    pub split: CpuSet,
}

impl Map {
    /// The CPUs of a CPU's core, where it has more than one.
    pub fn core_of(&self, cpu: Cpu) -> Option<&CpuSet> {
        // They ascend by their first CPU, so what holds this one is among those that begin before
        // it.
        let end = self.cores.partition_point(|core| core.iter().next().is_some_and(|first| first <= cpu));
        self.cores[..end].iter().rev().find(|core| core.contains(cpu))
    }
}
