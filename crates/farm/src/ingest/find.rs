//! Search for the runs and records below a folder, and their boards.
//!
//! In `DIR/BOARD/RUN` the first folder names the board; the board of a run directly in the given
//! folder is named by its machine's model.

use std::path::{Path, PathBuf};

use bundle::record::read::is_record_of;
use host::MachineFiles;
use model::fact::{Fact, errno_name, is_of_other_kind};

/// Maximum depth below the given folder.
const DEEPEST: usize = 4;
/// Names that are looked at.
const MOST_NAMES: usize = 200_000;

/// A folder with a `run.json`, or a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundBundle {
    pub place: PathBuf,
    /// The folder above it, unless that is the given one.
    pub board: Option<String>,
}

/// Runs and records below a folder, in the order of their names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundBundles {
    pub runs: Vec<FoundBundle>,
    /// Records of `onbeat watch`, whole or damaged.
    pub records: Vec<FoundBundle>,
    /// True if there were too many folders to search.
    pub cut: bool,
    /// Unreadable folders and the reasons; their contents are unknown.
    pub unread: Vec<(PathBuf, String)>,
}

/// Looks below a folder, and at itself; no link is followed.
pub fn bundles(root: &Path) -> FoundBundles {
    bundles_in(&MachineFiles::folder(root), root)
}

/// Sentence on an unreadable folder.
pub fn unread(why: &str) -> String {
    format!("it cannot be read ({why}), and runs in it are skipped: run this as its owner")
}

fn bundles_in(files: &MachineFiles, root: &Path) -> FoundBundles {
    let (mut found, mut seen) = (FoundBundles::default(), 0);
    let mut left = vec![(String::new(), 0)];
    while let Some((folder, depth)) = left.pop() {
        // The target belongs to another board, or would be found twice.
        if files.link(&folder).known().is_some() {
            continue;
        }
        let below = folder.trim_start_matches('/');
        let names = match files.list_as_it_is(&format!("{folder}/.")) {
            Fact::Known(names) => names,
            Fact::Refused(errno) if !is_of_other_kind(errno) => {
                found.unread.push((root.join(below), errno_name(errno)));
                continue;
            }
            _ => continue,
        };
        seen += names.len();
        if seen > MOST_NAMES {
            found.cut = true;
            break;
        }
        let board = below.split_once('/').map(|(first, _)| first.to_owned());
        let one = FoundBundle { place: root.join(below), board };
        if names.iter().any(|name| name == "run.json") {
            found.runs.push(one);
        } else if is_record_of(&names) {
            found.records.push(one);
        } else if depth < DEEPEST {
            // A stack: the last pushed is the next.
            let inner = names.iter().rev().filter(|name| !name.starts_with('.'));
            left.extend(inner.map(|name| (format!("{folder}/{name}"), depth + 1)));
        }
    }
    found
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use host::access::Access;
    use std::fs;

    #[test]
    fn runs_and_records_are_found_with_their_boards() {
        let root = tempfile::tempdir().unwrap();
        for run in [
            "x1",
            "west/a1",
            "west/2026/a2",
            "enx001122aabbcc/0ffff0123456789abcd",
            "east/b/c/d/e/too-deep",
            ".hidden/h",
        ] {
            fs::create_dir_all(root.path().join(run)).unwrap();
            fs::write(root.path().join(run).join("run.json"), "{}").unwrap();
        }
        for (record, file) in [("watch", "record.json"), ("east/w", "00000007.interval.timer.rows.jsonl")] {
            fs::create_dir_all(root.path().join(record)).unwrap();
            fs::write(root.path().join(record).join(file), "").unwrap();
        }
        std::os::unix::fs::symlink("../watch", root.path().join("west/link")).unwrap();
        fn names<'a>(root: &Path, found: &'a [FoundBundle]) -> Vec<(&'a str, Option<&'a str>)> {
            let name = |one: &'a FoundBundle| one.place.strip_prefix(root).unwrap().to_str().unwrap();
            found.iter().map(|one| (name(one), one.board.as_deref())).collect()
        }
        let found = bundles(root.path());
        let runs = [
            // As a board may be called, after its interface.
            ("enx001122aabbcc/0ffff0123456789abcd", Some("enx001122aabbcc")),
            ("west/2026/a2", Some("west")),
            ("west/a1", Some("west")),
            ("x1", None),
        ];
        assert_eq!((names(root.path(), &found.runs), found.cut), (runs.to_vec(), false));
        assert_eq!(names(root.path(), &found.records), [("east/w", Some("east")), ("watch", None)]);
        let itself = bundles(&root.path().join("x1"));
        assert_eq!((itself.runs[0].board.as_deref(), itself.records.len()), (None, 0));
        let itself = bundles(&root.path().join("east/w"));
        assert_eq!((itself.runs.len(), itself.records[0].board.as_deref()), (0, None));
        assert_eq!(bundles(&root.path().join("nowhere")), FoundBundles::default());
    }
    #[test]
    fn a_folder_that_cannot_be_read_is_named() {
        let names = |all: &[&str]| Access::List(all.iter().map(|name| (*name).to_owned()).collect());
        let answers = [
            ("/.", names(&["east", "file", "west"])),
            ("/east/.", names(&["a"])),
            ("/east/a/.", names(&["run.json"])),
            // ENOTDIR, and EACCES.
            ("/file/.", Access::Refused(20)),
            ("/west/.", Access::Refused(13)),
        ];
        let answers = answers.map(|(path, seen)| (path.to_owned(), seen)).into();
        let found = bundles_in(&MachineFiles::in_memory(answers), Path::new("/runs"));
        assert_eq!(found.runs.len(), 1);
        assert_eq!(found.unread.len(), 1, "{:?}", found.unread);
        let (folder, why) = &found.unread[0];
        assert!(folder == Path::new("/runs/west") && why.contains("EACCES"), "{why}");
    }
}
