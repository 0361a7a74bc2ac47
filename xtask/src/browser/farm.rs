//! The farm's pages over a synthetic fleet, as files: the farm is a separate program, because this
//! one must not depend on SQLite.

use super::folder;
use crate::built::program;
use crate::tools::{self, Result, Tool, root};

/// Boards and days: enough for each kind of a change.
const FLEET: [&str; 2] = ["14", "70"];

/// A page of each kind with its name.
pub fn pages() -> Result<Vec<(String, String)>> {
    let store = folder()?.join("farm.db");
    let made = folder()?.join("farm");
    // Files of an older schema, and obsolete pages.
    for old in [store.clone(), store.with_extension("db-wal"), store.with_extension("db-shm")] {
        if old.is_file() {
            std::fs::remove_file(&old).map_err(|error| super::fault(&old, &error))?;
        }
    }
    if made.is_dir() {
        std::fs::remove_dir_all(&made).map_err(|error| super::fault(&made, &error))?;
    }
    let [store, folder] = [&store, &made].map(|path| path.display().to_string());
    let words = [&store, FLEET[0], FLEET[1], "pages", &folder];
    Tool::new(program("examples/farm_year")?).args(words).dir(&root()).quiet().show()?;
    let entries = std::fs::read_dir(&made).map_err(|error| super::fault(&made, &error))?;
    let mut pages = Vec::new();
    for entry in entries.filter_map(|entry| entry.ok()) {
        let name = entry.file_name().to_string_lossy().trim_end_matches(".html").to_owned();
        pages.push((name, String::from_utf8_lossy(&tools::read(&entry.path())?).into_owned()));
    }
    pages.sort();
    // Those of another board, day or run are made by the same lines.
    let mut kinds = std::collections::BTreeSet::new();
    pages.retain(|(name, _)| kinds.insert(name.replace(|c: char| c.is_ascii_digit(), "")));
    Ok(pages)
}
