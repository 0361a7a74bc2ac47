//! Order of the CPUs in a picture: siblings side by side.

use std::collections::BTreeMap;

use super::Map;
use model::units::Cpu;

/// Number of runs of similar CPUs beyond which siblings are separated to get fewer runs.
const RUNS: usize = 16;

/// Number of each CPU's group.
pub fn grouped(map: &Map) -> BTreeMap<Cpu, usize> {
    let groups = map.groups.iter().enumerate();
    groups.flat_map(|(at, group)| group.cpus.iter().map(move |cpu| (cpu, at))).collect()
}

/// CPUs from left to right: by node and core, or by group if that would scatter the groups.
pub fn order(map: &Map) -> Vec<Cpu> {
    let groups: BTreeMap<Cpu, usize> = map
        .groups
        .iter()
        .enumerate()
        .flat_map(|(at, group)| group.cpus.iter().map(move |cpu| (cpu, at)))
        .collect();
    let core = |cpu: Cpu| map.core_of(cpu).and_then(|core| core.iter().next()).unwrap_or(cpu);
    let mut order: Vec<Cpu> = map.cpus.iter().collect();
    order.sort_by_cached_key(|&cpu| (map.nodes.get(&cpu).copied(), core(cpu), cpu));
    let runs = order.windows(2).filter(|pair| groups.get(&pair[0]) != groups.get(&pair[1])).count();
    if runs > RUNS.max(map.groups.len()) {
        order.sort_by_cached_key(|&cpu| (groups.get(&cpu).copied(), core(cpu), cpu));
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::map::tests::{machine, map_of};

    #[test]
    fn siblings_are_adjacent_unless_that_scatters_the_groups() {
        let core = |cpus: u32| {
            let line = move |cpu| {
                let first = cpu % (cpus / 2);
                format!(
                    "/sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list: {first},{}\n",
                    first + cpus / 2
                )
            };
            (0..cpus).map(line).collect::<String>()
        };
        let order_of = |cpus: u32, edits: &str| {
            let order = order(&map_of(&machine(cpus as usize, &(core(cpus) + edits))));
            order.iter().take(4).map(Cpu::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(order_of(4, ""), "0 2 1 3");
        assert_eq!(order_of(64, "/sys/devices/system/cpu/isolated: 4-31,36-63"), "0 32 1 33");
        assert_eq!(order_of(64, "/sys/devices/system/cpu/isolated: 32-63"), "0 1 2 3");
    }
}
