//! Content of the map in words.

use std::collections::{BTreeMap, BTreeSet};

use super::names::collapsed;
use super::{CpuProperty, Map, Work, WorkItem};
use crate::words::{clean, several};
use model::units::{CpuSet, named_cpus};

/// CPUs of a mark, as a list.
pub fn mark(mark: &CpuProperty) -> String {
    match &mark.cpus {
        None => "not known".to_owned(),
        Some(cpus) if cpus.is_empty() => "none".to_owned(),
        Some(cpus) => cpus.to_string(),
    }
}

/// Names separated by commas; those beyond `most` are counted.
pub fn listed(names: &[String], most: usize) -> String {
    let mut words: Vec<String> = names.iter().take(most).map(|name| clean(name)).collect();
    if names.len() > most {
        words.push(format!("and {} more", names.len() - most));
    }
    words.join(", ")
}

/// Names, joined if they differ in numbers only; a single interrupt has its number before the name.
pub fn named(items: &[&WorkItem]) -> Vec<String> {
    let numbers: BTreeMap<&str, u32> =
        items.iter().filter_map(|item| Some((item.name.as_str(), item.number?))).collect();
    let names = collapsed(items.iter().map(|item| item.name.as_str()));
    let with_number = |name: String| match numbers.get(name.as_str()) {
        Some(number) => format!("{number} {name}"),
        None => name,
    };
    names.into_iter().map(with_number).collect()
}

/// CPUs in words: the list, the number per core, split cores and offline ones.
pub fn cpus(map: &Map) -> String {
    let widths: BTreeSet<usize> = map.cores.iter().map(CpuSet::len).collect();
    let mut words = vec![map.cpus.to_string()];
    if let (Some(least), Some(most)) = (widths.first(), widths.last()) {
        let n = if least == most { most.to_string() } else { format!("{least} to {most}") };
        words.push(format!("{n} {} a core", if n == "1" { "CPU" } else { "CPUs" }));
    }
    let matters = map.groups.iter().filter(|group| group.alike.matters);
    let outside = matters.fold(CpuSet::default(), |all, group| all.or(&group.split)).without(&map.matter);
    if !outside.is_empty() {
        words.push(format!("{}: on cores of the audited CPUs", named_cpus(outside)));
    }
    if !map.offline.is_empty() {
        words.push(format!("{} offline", map.offline));
    }
    words.join("; ")
}

/// Number of interrupts, and those on the audited CPUs.
pub fn interrupts(map: &Map) -> String {
    let (all, here) = (map.lands.items.len(), map.lands.on(&map.matter).collect::<Vec<_>>());
    let mut words = vec![format!("{all} in all")];
    if !map.matter.is_empty() {
        words.push(of_those_that_matter(here.len(), &listed(&named(&here), 8)));
        let more = map.may.on(&map.matter).count().saturating_sub(here.len());
        words.extend((more > 0).then(|| format!("{more} more may come")));
    }
    partial(words, &map.lands)
}

/// Number of kernel threads, and those that may run on the audited CPUs.
pub fn threads(map: &Map) -> String {
    let here: Vec<_> = map.movable.on(&map.matter).collect();
    let mut words = vec![format!("{} can be moved", map.movable.items.len())];
    if !map.matter.is_empty() {
        words.push(of_those_that_matter(here.len(), &listed(&named(&here), 8)));
    }
    words.push(format!("{} bound to a CPU, not drawn", map.bound.items.len()));
    partial(words, &map.movable)
}

fn of_those_that_matter(count: usize, names: &str) -> String {
    match count {
        0 => "none on audited CPUs".to_owned(),
        n => format!("{n} on audited CPUs: {names}"),
    }
}

fn partial(words: Vec<String>, work: &Work) -> String {
    match (work.partial, work.items.is_empty()) {
        (true, true) => "not known".to_owned(),
        (true, false) => format!("{}; perhaps more, not all could be read", words.join("; ")),
        (false, _) => words.join("; "),
    }
}

/// Summary of the map in a sentence, for screen readers.
pub fn label(map: &Map) -> String {
    let groups = map.groups.iter().take(8).map(|group| {
        let apart: Vec<&str> = map
            .apart
            .iter()
            .zip(&group.alike.apart)
            .filter(|(_, has)| **has == Some(true))
            .map(|(mark, _)| mark.name)
            .collect();
        let apart = if apart.is_empty() {
            "not isolated".to_owned()
        } else {
            format!("isolated by {}", apart.join(", "))
        };
        format!("{} {apart}", named_cpus(&group.cpus))
    });
    let groups: Vec<String> = groups.collect();
    let threads: usize = map.realtime.iter().map(|step| step.count).sum();
    format!(
        "What each CPU does: {}; {}.",
        groups.join("; "),
        several(threads as u64, "real-time thread", "real-time threads")
    )
}
