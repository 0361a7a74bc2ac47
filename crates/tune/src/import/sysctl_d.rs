//! Files of sysctl.d(5).

use std::collections::BTreeSet;

use host::MachineFiles;

use super::assignment::{Assignment, ROOT, assignment, key_of};
use super::pattern::expand;
use super::{Collected, Imported, ImportedFile};

/// Collects the values requested by the files, in order of precedence; the last one wins.
pub fn collect(files: &[&ImportedFile], machine: &MachineFiles, collected: &mut Collected) {
    let mut all: Vec<(String, Assignment)> = Vec::new();
    for file in files {
        for (number, line) in file.text.lines().enumerate() {
            let place = format!("{}, line {}", file.name, number + 1);
            match assignment(line) {
                Ok(Some(found)) => all.push((place, found)),
                Ok(None) => {}
                Err(why) => collected.leave(place, why, ""),
            }
        }
    }
    // Patterns skip names that are assigned individually anywhere.
    let named: BTreeSet<String> = all
        .iter()
        .filter(|(_, found)| !is_pattern(&found.name))
        .map(|(_, found)| found.name.clone())
        .collect();
    for (place, found) in all {
        let Some(value) = found.value else {
            // It also replaces the value of an earlier line.
            if let Some(key) = key_of(&found.name) {
                collected.forget(&key);
            }
            continue;
        };
        let names = if is_pattern(&found.name) {
            match matching(machine, &found.name) {
                Ok(names) => names.into_iter().filter(|name| !named.contains(name)).collect(),
                Err(why) => {
                    collected.leave(place, why, "");
                    continue;
                }
            }
        } else {
            vec![found.name]
        };
        for name in names {
            match key_of(&name) {
                Some(key) => collected.want(Imported {
                    key,
                    value: value.clone(),
                    place: place.clone(),
                    optional: found.optional,
                }),
                None => collected.leave(place.clone(), "it is not a sysctl name", ""),
            }
        }
    }
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

fn matching(machine: &MachineFiles, name: &str) -> Result<Vec<String>, String> {
    let paths = expand(machine, &format!("{ROOT}{name}"))?;
    Ok(paths.iter().filter_map(|path| path.strip_prefix(ROOT)).map(str::to_owned).collect())
}
