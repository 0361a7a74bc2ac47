//! CPUs of a machine for the functions of a profile: existing ones, and those by package.

use std::collections::{BTreeMap, BTreeSet};

use glob::Pattern;
use host::MachineFiles;
use model::fact::Fact;

use super::cpulists::{packed, unpacked};

const CPUS: &str = "/sys/devices/system/cpu";
const UNCORES: &str = "/sys/devices/system/cpu/intel_uncore_frequency";

/// Text of a file; empty if a running machine does not have it, none if unknown.
pub fn text(files: &MachineFiles, path: &str) -> Option<String> {
    match files.read_text(path) {
        Fact::Known(text) => Some(text),
        Fact::Absent if files.is_live() => Some(String::new()),
        _ => None,
    }
}

/// CPUs that are `online` or `present`.
pub fn cpus_of(files: &MachineFiles, which: &str) -> Option<BTreeSet<u32>> {
    let text = text(files, &format!("{CPUS}/{which}"))?;
    Some(unpacked(text.trim()).unwrap_or_default())
}

/// CPUs with the texts of their packages, in order; those without one are omitted.
fn packages(files: &MachineFiles) -> Option<Vec<(u32, String)>> {
    let names = files.list(CPUS);
    let names = names.known().into_iter().flatten();
    let mut cpus: Vec<u32> = names.filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    cpus.sort_unstable();
    let path = |cpu: u32| format!("{CPUS}/cpu{cpu}/topology/physical_package_id");
    let package = |cpu: u32| Some((cpu, files.read_text(&path(cpu)).known()?.clone()));
    let found: Vec<(u32, String)> = cpus.into_iter().filter_map(package).collect();
    (files.is_live() || !found.is_empty()).then_some(found)
}

/// All CPUs except the first `reserved` of each package.
pub fn isolated_cores(files: &MachineFiles, reserved: usize) -> Option<String> {
    let mut cpus: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (cpu, package) in packages(files)? {
        let package = package.trim();
        if is_number(package) {
            cpus.entry(package.to_owned()).or_default().push(cpu);
        }
    }
    let isolated = cpus.values().flat_map(|cpus| cpus.iter().skip(reserved)).copied().collect();
    Some(packed(&isolated))
}

/// Devices of CPUs in packages by number or pattern.
pub fn cpus_in(files: &MachineFiles, patterns: &[String]) -> Option<String> {
    let cpus = packages(files)?.into_iter().filter(|(_, package)| is_package(patterns, package));
    Some(devices(cpus.map(|(cpu, _)| cpu).collect()))
}

/// Devices of uncores in packages by number or pattern: those of the newer interface, which has the
/// package in a file, or those with it in their names.
pub fn uncores_in(files: &MachineFiles, patterns: &[String]) -> Option<String> {
    let names = match files.list(UNCORES) {
        Fact::Known(names) => names,
        Fact::Absent => Vec::new(),
        _ => return None,
    };
    let newer: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| name.starts_with("uncore")).collect();
    let package = |name: &str| files.read_text(&format!("{UNCORES}/{name}/package_id")).known().cloned();
    let found: Vec<&str> = if newer.is_empty() {
        let in_name = |name: &&str| name.get(8..10).is_some_and(|package| is_package(patterns, package));
        names.iter().map(String::as_str).filter(in_name).collect()
    } else {
        let is_in = |name: &&str| package(name).is_some_and(|package| is_package(patterns, &package));
        newer.into_iter().filter(is_in).collect()
    };
    Some(found.join(","))
}

/// Device names of CPUs.
pub fn devices(cpus: BTreeSet<u32>) -> String {
    cpus.iter().map(|cpu| format!("cpu{cpu}")).collect::<Vec<_>>().join(",")
}

/// True for a text of digits.
pub fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

/// True for a package that matches a number or pattern.
fn is_package(patterns: &[String], text: &str) -> bool {
    let Ok(number) = text.trim().parse::<i64>() else { return false };
    patterns.iter().any(|pattern| match pattern.trim().parse::<i64>() {
        Ok(wanted) => wanted == number,
        Err(_) => Pattern::new(pattern).is_ok_and(|pattern| pattern.matches(text)),
    })
}
