//! The files of a machine that a shell pattern stands for.

use glob::{MatchOptions, Pattern};
use host::MachineFiles;

/// More files than any such pattern finds on a machine.
const FOUND_LIMIT: usize = 10_000;

const MAGIC: [char; 3] = ['*', '?', '['];

/// Links of sysfs under which files are known as well.
const LINKS: &[(&str, &str)] = &[
    ("/sys/bus/workqueue/devices/", "/sys/devices/virtual/workqueue/"),
    ("/sys/bus/cpu/devices/", "/sys/devices/system/cpu/"),
    ("/sys/bus/machinecheck/devices/", "/sys/devices/system/machinecheck/"),
];

/// As in a shell: `*` stops at a slash, and takes no dot at the start of a name.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// A path without the links by which a file has several.
pub fn canonical(path: &str) -> String {
    LINKS.iter().fold(path.to_owned(), |path, (link, target)| path.replacen(link, target, 1))
}

/// The paths that are there; the path itself, there or not, where it is no pattern.
///
/// # Errors
/// It is no pattern, or finds more than any does.
pub fn expand(files: &MachineFiles, path: &str) -> Result<Vec<String>, String> {
    let path = canonical(path);
    let mut places = vec![String::new()];
    let mut searched = false;
    for part in path.split('/').filter(|part| !part.is_empty()) {
        if matches!(part, "." | "..") {
            return Err("its path leads somewhere else".to_owned());
        }
        if !part.contains(MAGIC) {
            places.iter_mut().for_each(|place| *place = format!("{place}/{part}"));
            continue;
        }
        searched = true;
        let pattern = Pattern::new(part).map_err(|error| format!("it is no pattern: {}", error.msg))?;
        let mut further = Vec::new();
        for place in &places {
            let names = files.list(if place.is_empty() { "/" } else { place });
            let names = names.known().cloned().unwrap_or_default();
            further.extend(
                names
                    .iter()
                    .filter(|name| pattern.matches_with(name, OPTIONS))
                    .map(|name| format!("{place}/{name}")),
            );
            if further.len() > FOUND_LIMIT {
                return Err(format!("it stands for more than {FOUND_LIMIT} files"));
            }
        }
        places = further;
    }
    if searched {
        // By its folder: reading some files has an effect.
        places.retain(|place| {
            let (folder, name) = place.rsplit_once('/').unwrap_or(("", place));
            files.list(folder).known().is_some_and(|names| names.iter().any(|known| known == name))
        });
    }
    Ok(places)
}
