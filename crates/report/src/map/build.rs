//! Map of a machine, built from the survey.

use std::collections::BTreeMap;

use super::cpus::{CpuGroup, CpuTraits, Map, WorkItem};
use super::{properties, tasks};
use facts::Fact;
use facts::irqs::Irq;
use facts::survey::Survey;
use model::sort::CompactSort;
use model::units::{Cpu, CpuSet};
use rules::intent::Intent;

impl Map {
    /// Builds the map of a machine; `intent` gives the audited CPUs.
    pub fn of(survey: &Survey, intent: &Intent) -> Map {
        let facts = &survey.facts;
        let mut unknown = Vec::new();
        let online = properties::noted(&mut unknown, &facts.online, "/sys/devices/system/cpu/online");
        let online = online.cloned().unwrap_or_default();
        let cpus = online.or(facts.present.known().unwrap_or(&online));
        let matter =
            if online.without(&intent.cpus).is_empty() { CpuSet::default() } else { intent.cpus.clone() };
        let mut map = Map {
            offline: cpus.without(&online),
            matter,
            types: facts.core_types.clone(),
            nodes: properties::nodes(survey, &mut unknown),
            cores: properties::cores(survey, &mut unknown),
            apart: properties::apart(survey, &cpus, &mut unknown),
            workqueues: properties::workqueues(survey, &mut unknown),
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
        let Some(found) = properties::noted(unknown, &survey.irqs, "/proc/irq") else {
            (self.lands.partial, self.may.partial) = (true, true);
            return;
        };
        let mut unclear = found.missed;
        // Per-CPU interrupts, such as arm64's timers, arrive where they are needed.
        for irq in found.irqs.iter().filter(|irq| irq.per_cpu != Some(true)) {
            let item = |cpus: &CpuSet| WorkItem {
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
            unknown.push(format!("the CPUs of {unclear} interrupts could not be read"));
        }
    }

    fn threads(&mut self, survey: &Survey, unknown: &mut Vec<String>) {
        let Some(found) = properties::noted(unknown, &survey.threads, "/proc") else {
            (self.movable.partial, self.bound.partial) = (true, true);
            return;
        };
        if found.kernel.is_empty() {
            unknown.push("kernel threads are not visible: in a container, or hidden by hidepid=".to_owned());
        } else if !found.complete {
            unknown.push("not every thread could be read, so some may be missing".to_owned());
        }
        let partial = found.kernel.is_empty() || !found.complete;
        (self.movable.partial, self.bound.partial) = (partial, partial);
        let mut unclear = 0;
        for thread in found.kernel.iter().filter(|thread| !thread.comm.starts_with("irq/")) {
            let Some(cpus) = thread.cpus() else {
                unclear += 1;
                continue;
            };
            let item = WorkItem { number: None, name: thread.comm.clone(), cpus };
            if thread.immovable { self.bound.items.push(item) } else { self.movable.items.push(item) }
        }
        if unclear > 0 {
            self.movable.partial = true;
            unknown.push(format!("the CPUs of {unclear} kernel threads could not be read"));
        }
        self.realtime = tasks::steps(found, &self.matter);
    }

    fn alike(&self, cpu: Cpu) -> CpuTraits {
        CpuTraits {
            online: !self.offline.contains(cpu),
            matters: self.matter.contains(cpu),
            kind: self.types.get(&cpu).cloned().unwrap_or_default(),
            node: self.nodes.get(&cpu).copied(),
            threads: self.core_of(cpu).map_or(1, CpuSet::len),
            apart: self.apart.iter().map(|mark| mark.has(cpu)).collect(),
            workqueues: self.workqueues.has(cpu),
        }
    }

    fn grouped(&self) -> Vec<CpuGroup> {
        let mut groups: BTreeMap<CpuTraits, CpuSet> = BTreeMap::new();
        for cpu in self.cpus.iter() {
            groups.entry(self.alike(cpu)).or_default().0.insert(cpu);
        }
        let group = |(alike, cpus): (CpuTraits, CpuSet)| {
            let cores = cpus.iter().filter_map(|cpu| self.core_of(cpu));
            let split = cores.fold(CpuSet::default(), |all, core| all.or(core)).without(&cpus);
            CpuGroup { cpus, alike, split }
        };
        let mut groups: Vec<CpuGroup> = groups.into_iter().map(group).collect();
        groups.compact_sort_by_key(|group| group.cpus.iter().next());
        groups
    }
}

/// CPUs that take an interrupt now; all allowed ones if the controller does not report it.
fn lands(irq: &Irq) -> Option<&CpuSet> {
    match &irq.effective {
        Fact::Absent => irq.allowed.known(),
        effective => effective.known(),
    }
}
