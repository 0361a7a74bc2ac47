//! CPUs that share a core, and the kinds of core.
//!
//! Source: Documentation/admin-guide/cputopology.rst; the kinds are those of hybrid x86 processors
//! (event sources `cpu_core`, `cpu_atom`, `cpu_lowpower`) and, elsewhere, `cpu_capacity` in
//! Documentation/scheduler/sched-capacity.rst.

use std::collections::{BTreeMap, BTreeSet};

use model::units::{Cpu, CpuSet};

/// Event sources in `/sys/devices` that the kernel creates on hybrid x86, one per kind of core, and
/// the kind's name.
pub const HYBRID: [(&str, &str); 3] = [("cpu_core", "P"), ("cpu_atom", "E"), ("cpu_lowpower", "LP-E")];

/// Number in a name such as `cpu12`, `policy0` or `state3`.
pub fn numbered(name: &str, prefix: &str) -> Option<u32> {
    let digits = name.strip_prefix(prefix)?;
    digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
}

/// Cores with more than one CPU, ascending, from the sibling list of each CPU; an error if a CPU is
/// in two of them.
pub fn shared_cores(siblings: impl IntoIterator<Item = CpuSet>) -> Result<Vec<CpuSet>, String> {
    let cores: BTreeSet<BTreeSet<Cpu>> = siblings.into_iter().map(|core| core.0).collect();
    let mut seen = BTreeSet::new();
    match cores.iter().flatten().find(|cpu| !seen.insert(**cpu)) {
        Some(cpu) => Err(format!("expected each CPU on one core, found CPU {cpu} on several")),
        None => Ok(cores.into_iter().filter(|core| core.len() > 1).map(CpuSet).collect()),
    }
}

/// The CPUs; an error if one of them is not present.
pub fn among(cpus: CpuSet, present: Option<&CpuSet>) -> Result<CpuSet, String> {
    let others = present.filter(|present| !present.is_empty()).map(|present| cpus.without(present));
    match others.filter(|others| !others.is_empty()) {
        Some(others) => {
            Err(format!("expected CPUs of those in /sys/devices/system/cpu/present, found {others}"))
        }
        None => Ok(cpus),
    }
}

/// Kind of core of each CPU; empty if all are of one kind.
///
/// `hybrid` are the CPUs of each kind in [`HYBRID`]. Capacities are used only if there are no such
/// kinds: on hybrid x86 they also differ between cores of one kind.
pub fn core_types(
    online: &CpuSet,
    hybrid: &[(&str, CpuSet)],
    capacities: &BTreeMap<Cpu, u64>,
) -> BTreeMap<Cpu, String> {
    let mut types = BTreeMap::new();
    for cpu in online.iter() {
        let kind = hybrid.iter().find(|(_, cpus)| cpus.contains(cpu)).map(|&(name, _)| name.to_owned());
        let capacity = || capacities.get(&cpu).map(|capacity| format!("capacity {capacity}"));
        if let Some(kind) = if hybrid.is_empty() { capacity() } else { kind } {
            types.insert(cpu, kind);
        }
    }
    let distinct: BTreeSet<&String> = types.values().collect();
    if distinct.len() < 2 { BTreeMap::new() } else { types }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(text: &str) -> CpuSet {
        CpuSet::parse(text).unwrap()
    }

    fn check(online: &str, hybrid: &[(&str, &str)], capacities: &[u64], expected: &[&str]) {
        let hybrid: Vec<(&str, CpuSet)> = hybrid.iter().map(|&(name, cpus)| (name, set(cpus))).collect();
        let capacities = capacities.iter().enumerate().map(|(n, &c)| (Cpu(n as u32), c)).collect();
        let types = core_types(&set(online), &hybrid, &capacities);
        let types: Vec<&str> = types.values().map(String::as_str).collect();
        assert_eq!(types, expected);
    }

    #[test]
    fn kinds_are_named_only_where_they_differ() {
        check("0-2", &[("P", "0-1"), ("E", "2-3")], &[1024, 1009, 600], &["P", "P", "E"]);
        check("0-1", &[("P", "0-1"), ("E", "2-3")], &[1024, 1009], &[]);
        check("0-1", &[], &[446, 1024], &["capacity 446", "capacity 1024"]);
        check("0-1", &[], &[1024, 1024], &[]);
        check("0-1", &[], &[], &[]);
    }

    #[test]
    fn cores_are_listed_once() {
        let cores = shared_cores([set("0,2"), set("1"), set("0,2"), set("3-4")]);
        assert_eq!(cores, Ok(vec![set("0,2"), set("3-4")]));
        // One CPU lists a sibling, which does not list it.
        assert!(shared_cores([set("0,2"), set("2")]).is_err());
    }

    #[test]
    fn what_is_online_is_present() {
        assert_eq!(among(set("0-1"), Some(&set("0-3"))), Ok(set("0-1")));
        assert_eq!(among(set("0-1"), None), Ok(set("0-1")));
        assert!(among(set("0-4"), Some(&set("0-3"))).is_err());
    }

    #[test]
    fn numbers_in_names() {
        assert_eq!(numbered("cpu12", "cpu"), Some(12));
        for bad in ["cpu", "cpufreq", "cpu-1", "cpu99999999999", "x1"] {
            assert_eq!(numbered(bad, "cpu"), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn parser_is_total(name in "(cpu)?\\PC{0,20}") {
            let _ = numbered(&name, "cpu");
        }
    }
}
