//! Expansion of shell patterns to the files of a machine.

use glob::{MatchOptions, Pattern};
use host::MachineFiles;

/// Limit of files that a pattern matches.
const FOUND_LIMIT: usize = 10_000;

const MAGIC: [char; 3] = ['*', '?', '['];

/// Links of sysfs by which files have further paths.
const LINKS: &[(&str, &str)] = &[
    ("/sys/bus/workqueue/devices/", "/sys/devices/virtual/workqueue/"),
    ("/sys/bus/cpu/devices/", "/sys/devices/system/cpu/"),
    ("/sys/bus/machinecheck/devices/", "/sys/devices/system/machinecheck/"),
];

/// Like a shell: `*` does not match a slash, or a dot at the start of a name.
const OPTIONS: MatchOptions =
    MatchOptions { case_sensitive: true, require_literal_separator: true, require_literal_leading_dot: true };

/// Path without the links that give a file several paths.
pub fn canonical(path: &str) -> String {
    LINKS.iter().fold(path.to_owned(), |path, (link, target)| path.replacen(link, target, 1))
}

/// Existing paths that match a pattern; a path without one, whether it exists or not.
///
/// # Errors
/// It is an invalid pattern, or matches too many files.
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
        let pattern = Pattern::new(part).map_err(|error| format!("invalid pattern: {}", error.msg))?;
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
                return Err(format!("it matches more than {FOUND_LIMIT} files"));
            }
        }
        places = further;
    }
    if searched {
        // Checked by the folder, because reading some files has an effect.
        places.retain(|place| {
            let (folder, name) = place.rsplit_once('/').unwrap_or(("", place));
            files.list(folder).known().is_some_and(|names| names.iter().any(|known| known == name))
        });
    }
    Ok(places)
}
