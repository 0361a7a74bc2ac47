//! Search for the runs below a folder. Unreadable folders are kept apart from missing ones: the
//! runs in them are not forgotten.

use std::path::{Path, PathBuf};

use host::MachineFiles;
use model::fact::{Fact, errno_name, is_of_other_kind};

/// Depth of the search below a given folder: SUITE/phases/PHASE.
pub const DEEPEST: usize = 3;
/// Limit of directory entries that are examined.
const MOST_NAMES: usize = 200_000;

/// Runs found below a folder.
#[derive(Debug, PartialEq, Eq)]
pub struct FoundRuns {
    /// Folders of the runs, in the order of their names.
    pub places: Vec<PathBuf>,
    /// True if there were too many names to examine.
    pub is_cut: bool,
    /// First folder that cannot be listed, and the name of the error.
    pub unread: Option<(PathBuf, String)>,
    /// True if a run that is not in `places` does not exist.
    pub is_whole: bool,
}

/// Finds the runs in a folder and in the folders below; follows no link.
pub fn found(folder: &Path) -> FoundRuns {
    found_in(&MachineFiles::folder(folder), folder)
}

fn found_in(files: &MachineFiles, folder: &Path) -> FoundRuns {
    let mut found = FoundRuns { places: Vec::new(), is_cut: false, unread: None, is_whole: true };
    let (mut seen, mut left) = (0, vec![(String::new(), 0)]);
    while let Some((inside, depth)) = left.pop() {
        if files.link(&inside).known().is_some() {
            continue;
        }
        let below = Path::new(inside.trim_start_matches('/'));
        let place: PathBuf = folder.components().chain(below.components()).collect();
        let is_run = match files.size(&format!("{inside}/run.json")) {
            Fact::Known(_) => true,
            // The file exists and cannot be read, or nothing in the folder can be.
            Fact::Refused(errno) if !is_of_other_kind(errno) => {
                found.is_whole = false;
                true
            }
            _ => false,
        };
        if is_run {
            found.places.push(place);
        } else if depth < DEEPEST {
            let names = match files.list_as_it_is(&format!("{inside}/.")) {
                Fact::Known(names) => names,
                Fact::Refused(errno) if !is_of_other_kind(errno) => {
                    found.is_whole = false;
                    found.unread.get_or_insert_with(|| (place, errno_name(errno)));
                    continue;
                }
                _ => continue,
            };
            seen += names.len();
            if seen > MOST_NAMES {
                (found.is_cut, found.is_whole) = (true, false);
                return found;
            }
            // A stack: the last name pushed is the next one examined.
            let inner = names.iter().rev().filter(|name| !name.starts_with('.'));
            left.extend(inner.map(|name| (format!("{inside}/{name}"), depth + 1)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use host::access::Access;

    #[test]
    fn what_cannot_be_read_is_not_taken_for_what_is_gone() {
        let names = |all: &[&str]| Access::List(all.iter().map(|name| (*name).to_owned()).collect());
        let with = |path: &str, errno: i32| {
            let answers = [
                ("/.", names(&["file", "run", "suite"])),
                ("/run/run.json", Access::File(b"{}".to_vec())),
                ("/suite/.", names(&["phase"])),
                ("/suite/phase/run.json", Access::File(b"{}".to_vec())),
                (path, Access::Refused(errno)),
            ];
            let answers = answers.map(|(path, seen)| (path.to_owned(), seen)).into();
            found_in(&MachineFiles::in_memory(answers), Path::new("/runs"))
        };
        let places = |all: &FoundRuns| -> Vec<String> {
            all.places.iter().map(|place| place.to_string_lossy().into_owned()).collect()
        };
        // ENOTDIR: a file, not a folder.
        let whole = with("/file/.", 20);
        assert!(whole.is_whole && whole.unread.is_none());
        assert_eq!(places(&whole), ["/runs/run", "/runs/suite/phase"]);
        let of_user = with("/suite/.", 13);
        assert!(!of_user.is_whole && places(&of_user) == ["/runs/run"]);
        let (folder, why) = of_user.unread.unwrap();
        assert!(folder == Path::new("/runs/suite") && why.contains("EACCES"), "{why}");
        // EMFILE: the folder counts as a run, and may hold others.
        let of_now = with("/suite/run.json", 24);
        assert!(!of_now.is_whole && places(&of_now) == ["/runs/run", "/runs/suite"]);
    }
}
