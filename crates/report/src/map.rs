//! The map of a machine: what each CPU is kept for, and what may run there, as a value that the terminal and the
//! page draw.

mod marks;
mod names;
pub mod order;
mod tasks;
#[cfg(test)]
pub mod tests;
pub mod words;

use std::collections::BTreeMap;

pub use names::collapsed;
pub use tasks::{Step, rank_name};

use facts::Fact;
use facts::irqs::Irq;
use facts::survey::Survey;
use facts::threads::Thread;
use model::units::{Cpu, CpuSet};
use rules::intent::Intent;

/// Patterns of the texts that the map reads besides those of the rules.
pub const READS: &[&str] = &[marks::NODES, marks::WORKQUEUES];

/// What each CPU of a machine is kept for, and what may run there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Map {
    /// The CPUs, those that are offline among them; empty where it is not known which there are.
    pub cpus: CpuSet,
    /// Those that do not run.
    pub offline: CpuSet,
    /// Those that matter; none where all do.
    pub matter: CpuSet,
    /// The kind of each CPU's core; empty where all are of one kind.
    pub types: BTreeMap<Cpu, String>,
    /// The node of each CPU; empty where there is only one, or where it is not known.
    pub nodes: BTreeMap<Cpu, u32>,
    /// The CPUs of each core that has more than one.
    pub cores: Vec<CpuSet>,
    /// What keeps CPUs apart, in the order of [`APART`].
    pub apart: Vec<Mark>,
    /// The CPUs of unbound workqueues.
    pub workqueues: Mark,
    /// Interrupts on the CPUs that take them now.
    pub lands: Work,
    /// Interrupts on the CPUs that may take them.
    pub may: Work,
    /// Threads of the kernel that could be moved, on the CPUs that they may run on; those of interrupts are not
    /// among them, for they follow their interrupt.
    pub movable: Work,
    /// Threads of the kernel that belong where they are.
    pub bound: Work,
    /// Real-time threads, the highest first.
    pub realtime: Vec<Step>,
    /// CPUs with the same description, by their first.
    pub groups: Vec<Group>,
    /// What could not be read, a sentence each.
    pub unknown: Vec<String>,
}

/// What keeps CPUs apart from the rest of the machine.
pub const APART: [&str; 4] = ["isolcpus", "cpuset partition", "nohz_full", "rcu_nocbs"];

/// The CPUs that have a property.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The property.
    pub name: &'static str,
    /// Its CPUs; none where that is not known.
    pub cpus: Option<CpuSet>,
}

impl Mark {
    /// Whether a CPU has the property; none where that is not known.
    pub fn has(&self, cpu: Cpu) -> Option<bool> {
        self.cpus.as_ref().map(|cpus| cpus.contains(cpu))
    }
}

/// What may take time from the CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Each with its CPUs.
    pub items: Vec<Item>,
    /// Whether there could be more that was not seen.
    pub partial: bool,
}

/// An interrupt or a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The interrupt's number.
    pub number: Option<u32>,
    /// The name; of a shared interrupt all, with commas between them.
    pub name: String,
    /// Where it may be.
    pub cpus: CpuSet,
}

impl Work {
    /// What may be on any of these CPUs.
    pub fn on<'a>(&'a self, cpus: &'a CpuSet) -> impl Iterator<Item = &'a Item> {
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
pub struct Alike {
    /// Whether they run.
    pub online: bool,
    /// Whether they matter and others do not.
    pub matters: bool,
    /// The kind of their cores, `""` where all are of one kind.
    pub kind: String,
    /// Their node, where there are several.
    pub node: Option<u32>,
    /// How many CPUs their cores have.
    pub threads: usize,
    /// Whether each of [`APART`] keeps them apart; none where that is not known.
    pub apart: Vec<Option<bool>>,
    /// Whether unbound workqueues may use them.
    pub workqueues: Option<bool>,
}

/// A group of CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Which.
    pub cpus: CpuSet,
    /// What is the same of all.
    pub alike: Alike,
    /// Siblings of theirs that are in another group: half a core is set apart.
    pub split: CpuSet,
}

impl Map {
    /// Draws the map of a machine; `intent` says which CPUs matter.
    pub fn of(survey: &Survey, intent: &Intent) -> Map {
        let facts = &survey.facts;
        let mut unknown = Vec::new();
        let online = marks::noted(&mut unknown, &facts.online, "/sys/devices/system/cpu/online");
        let online = online.cloned().unwrap_or_default();
        let cpus = online.or(facts.present.known().unwrap_or(&online));
        let matter =
            if online.without(&intent.cpus).is_empty() { CpuSet::default() } else { intent.cpus.clone() };
        let mut map = Map {
            offline: cpus.without(&online),
            matter,
            types: facts.core_types.clone(),
            nodes: marks::nodes(survey, &mut unknown),
            cores: marks::cores(survey, &mut unknown),
            apart: marks::apart(survey, &cpus, &mut unknown),
            workqueues: marks::workqueues(survey, &mut unknown),
            cpus,
            ..Map::default()
        };
        map.interrupts(survey, &mut unknown);
        map.threads(survey, &mut unknown);
        map.unknown = unknown;
        map.groups = map.grouped();
        map
    }

    fn interrupts(&mut self, survey: &Survey, unknown: &mut Vec<String>) {
        let Some(found) = marks::noted(unknown, &survey.irqs, "/proc/irq") else {
            (self.lands.partial, self.may.partial) = (true, true);
            return;
        };
        let mut unclear = found.missed;
        // What each CPU has of its own, such as arm64's timers, lands where it is needed.
        for irq in found.irqs.iter().filter(|irq| irq.per_cpu != Some(true)) {
            let item = |cpus: &CpuSet| Item {
                number: Some(irq.number),
                name: irq.actions.join(","),
                cpus: cpus.clone(),
            };
            match (lands(irq), irq.allowed.known()) {
                (Some(lands), Some(allowed)) => {
                    self.lands.items.push(item(lands));
                    self.may.items.push(item(allowed));
                }
                _ => unclear += 1,
            }
        }
        if unclear > 0 {
            (self.lands.partial, self.may.partial) = (true, true);
            unknown.push(format!("where {unclear} of the interrupts may land could not be read"));
        }
    }

    fn threads(&mut self, survey: &Survey, unknown: &mut Vec<String>) {
        let Some(found) = marks::noted(unknown, &survey.threads, "/proc") else {
            (self.movable.partial, self.bound.partial) = (true, true);
            return;
        };
        if found.kernel.is_empty() {
            unknown
                .push("the kernel's threads do not show: in a container, or hidden by hidepid=".to_owned());
        } else if !found.complete {
            unknown.push("not every thread could be read, so some may be missing".to_owned());
        }
        let partial = found.kernel.is_empty() || !found.complete;
        (self.movable.partial, self.bound.partial) = (partial, partial);
        let mut unclear = 0;
        for thread in found.kernel.iter().filter(|thread| !thread.comm.starts_with("irq/")) {
            let Some(cpus) = place(thread) else {
                unclear += 1;
                continue;
            };
            let item = Item { number: None, name: thread.comm.clone(), cpus };
            if thread.immovable { self.bound.items.push(item) } else { self.movable.items.push(item) }
        }
        if unclear > 0 {
            self.movable.partial = true;
            unknown.push(format!("where {unclear} of the kernel's threads may run could not be read"));
        }
        self.realtime = tasks::steps(found, &self.matter);
    }

    fn alike(&self, cpu: Cpu) -> Alike {
        Alike {
            online: !self.offline.contains(cpu),
            matters: self.matter.contains(cpu),
            kind: self.types.get(&cpu).cloned().unwrap_or_default(),
            node: self.nodes.get(&cpu).copied(),
            threads: self.core_of(cpu).map_or(1, CpuSet::len),
            apart: self.apart.iter().map(|mark| mark.has(cpu)).collect(),
            workqueues: self.workqueues.has(cpu),
        }
    }

    /// The CPUs of a CPU's core, where it has more than one.
    pub fn core_of(&self, cpu: Cpu) -> Option<&CpuSet> {
        // They ascend by their first CPU, so what holds this one is among those that begin before it.
        let end = self.cores.partition_point(|core| core.iter().next().is_some_and(|first| first <= cpu));
        self.cores[..end].iter().rev().find(|core| core.contains(cpu))
    }

    fn grouped(&self) -> Vec<Group> {
        let mut groups: BTreeMap<Alike, CpuSet> = BTreeMap::new();
        for cpu in self.cpus.iter() {
            groups.entry(self.alike(cpu)).or_default().0.insert(cpu);
        }
        let group = |(alike, cpus): (Alike, CpuSet)| {
            let cores = cpus.iter().filter_map(|cpu| self.core_of(cpu));
            let split = cores.fold(CpuSet::default(), |all, core| all.or(core)).without(&cpus);
            Group { cpus, alike, split }
        };
        let mut groups: Vec<Group> = groups.into_iter().map(group).collect();
        groups.sort_by_key(|group| group.cpus.iter().next());
        groups
    }
}

/// The CPUs that take an interrupt now: where controllers do not tell, all that may.
fn lands(irq: &Irq) -> Option<&CpuSet> {
    match &irq.effective {
        Fact::Absent => irq.allowed.known(),
        effective => effective.known(),
    }
}

/// Where a thread may run. One that belongs to a CPU has that in its name, as `cpuhp/3`.
fn place(thread: &Thread) -> Option<CpuSet> {
    match &thread.allowed {
        Fact::Absent => {
            let number = thread.comm.rsplit_once('/').and_then(|(_, number)| number.parse::<u32>().ok());
            Some(number.and_then(|number| Cpu::try_from(number).ok()).into_iter().collect())
        }
        allowed => allowed.known().cloned(),
    }
}
