//! Which folders below a given one hold runs, and whose they are.
//!
//! `DIR/BOARD/RUN` says which board it is by its first folder; a run that lies in the given folder
//! itself is of the board that its machine's model names.

use std::path::{Path, PathBuf};

use host::MachineFiles;

/// Folders below the given one.
const DEEPEST: usize = 4;
/// Names that are looked at.
const MOST_NAMES: usize = 200_000;

/// A folder with a `run.json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBundle {
    pub place: PathBuf,
    /// The folder above it, where that is not the given one.
    pub board: Option<String>,
}

/// The runs below a folder, in the order of their names; whether there were too many to look at.
pub fn bundles(root: &Path) -> (Vec<FoundBundle>, bool) {
    let files = MachineFiles::folder(root);
    let (mut found, mut seen) = (Vec::new(), 0);
    let mut left = vec![(String::new(), 0)];
    while let Some((folder, depth)) = left.pop() {
        let names = files.list(&format!("{folder}/.")).known().cloned().unwrap_or_default();
        seen += names.len();
        if seen > MOST_NAMES {
            return (found, true);
        }
        if names.iter().any(|name| name == "run.json") {
            let below = folder.trim_start_matches('/');
            let board = below.split_once('/').map(|(first, _)| first.to_owned());
            found.push(FoundBundle { place: root.join(below), board });
        } else if depth < DEEPEST {
            // A stack: the last pushed is the next.
            let inner = names.iter().rev().filter(|name| !name.starts_with('.'));
            left.extend(inner.map(|name| (format!("{folder}/{name}"), depth + 1)));
        }
    }
    (found, false)
}

/// What stands for a name in an address: letters, digits and what needs no escape.
pub fn board_key(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' };
    let mut key = String::new();
    for c in name.chars().map(safe).take(64) {
        if c != '-' || !key.ends_with('-') {
            key.push(c);
        }
    }
    let key = key.trim_matches(|c| c == '-' || c == '.');
    if key.is_empty() { "board".to_owned() } else { key.to_owned() }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn runs_are_found_with_their_boards() {
        let root = tempfile::tempdir().unwrap();
        for run in ["x1", "west/a1", "west/2026/a2", "east/b/c/d/e/too-deep", ".hidden/h"] {
            fs::create_dir_all(root.path().join(run)).unwrap();
            fs::write(root.path().join(run).join("run.json"), "{}").unwrap();
        }
        let (found, cut) = bundles(root.path());
        let names: Vec<_> = found
            .iter()
            .map(|one| (one.place.strip_prefix(root.path()).unwrap().to_str().unwrap(), one.board.as_deref()))
            .collect();
        let wanted = [("west/2026/a2", Some("west")), ("west/a1", Some("west")), ("x1", None)];
        assert_eq!((&names[..], cut), (&wanted[..], false));
        let (itself, _) = bundles(&root.path().join("x1"));
        assert_eq!(itself[0].board, None);
        assert!(bundles(&root.path().join("nowhere")).0.is_empty());
    }

    #[test]
    fn a_key_needs_no_escape() {
        for (name, key) in [
            ("rpi5-lab", "rpi5-lab"),
            ("Intel(R) Core(TM) i7", "Intel-R-Core-TM-i7"),
            ("../..", "board"),
            ("<b>", "b"),
            ("", "board"),
        ] {
            assert_eq!(board_key(name), key);
        }
    }
}
