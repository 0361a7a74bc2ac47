//! Files and folders of a bundle, without reading the contents of its files.

use host::MachineFiles;
use model::fact::{Fact, errno_name, is_of_other_kind};
use model::text::excerpt;

use super::manifest::{DEEPEST, MOST_FILES, PARTS};

/// A file of a bundle, or a folder in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundlePart {
    pub path: String,
    pub bytes: u64,
    pub is_folder: bool,
}

/// Parts of a bundle that were found. Other files in its folder are ignored, as are links that lead
/// elsewhere and entries that are neither a file nor a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundleParts {
    /// Parts, each folder before its contents.
    pub found: Vec<BundlePart>,
    /// First part that cannot be read, with the error number.
    pub unread: Option<(String, i32)>,
    /// True if it has more files or deeper folders than a bundle: the rest was not read.
    pub is_cut: bool,
}

impl BundleParts {
    pub fn of(files: &MachineFiles) -> BundleParts {
        let mut left: Vec<(String, usize)> = PARTS.iter().rev().map(|part| ((*part).to_owned(), 1)).collect();
        let (mut parts, mut count) = (BundleParts::default(), 0);
        while let Some((path, depth)) = left.pop() {
            // Endless folders do not belong to a bundle either.
            if depth > DEEPEST || parts.found.len() >= 2 * MOST_FILES {
                parts.is_cut = true;
                break;
            }
            let refused = match files.size(&format!("/{path}")) {
                Fact::Known(_) if count == MOST_FILES => {
                    parts.is_cut = true;
                    break;
                }
                Fact::Known(bytes) => {
                    count += 1;
                    parts.found.push(BundlePart { path, bytes, is_folder: false });
                    continue;
                }
                other => refusal(&other),
            };
            let names = files.list_as_it_is(&format!("/{path}/."));
            if let Fact::Known(names) = &names {
                left.extend(names.iter().rev().map(|name| (format!("{path}/{name}"), depth + 1)));
                parts.found.push(BundlePart { path, bytes: 0, is_folder: true });
            } else if let Some(errno) = refused.or(refusal(&names)) {
                parts.unread.get_or_insert((path, errno));
            }
        }
        parts
    }

    /// Reason why parts of the bundle are lacking, in a line with the remedy, if any are.
    pub fn lacking(&self) -> Option<String> {
        let cut = || {
            format!(
                "it has more than {MOST_FILES} files, or folders more than {DEEPEST} deep: remove what does \
                 not belong to the bundle"
            )
        };
        match &self.unread {
            Some((path, errno)) => {
                let (path, why) = (excerpt(path), errno_name(*errno));
                Some(format!("cannot read its {path} ({why}): check its owner"))
            }
            None => self.is_cut.then(cut),
        }
    }
}

/// Error number of a refusal, unless it means that a file of another kind exists.
fn refusal<T>(fact: &Fact<T>) -> Option<i32> {
    match fact {
        Fact::Refused(errno) => Some(*errno).filter(|errno| !is_of_other_kind(*errno)),
        _ => None,
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make files of their own.
mod tests {
    use super::*;
    use host::access::Access;
    use std::collections::BTreeMap;
    use std::fs;

    fn files(of: &[(&str, Access)]) -> MachineFiles {
        let answers = of.iter().map(|(path, seen)| ((*path).to_owned(), seen.clone()));
        MachineFiles::in_memory(answers.collect())
    }

    #[test]
    fn of_what_cannot_be_read_it_is_not_known_whether_it_is_all() {
        let of = |path: &str, errno: i32| {
            BundleParts::of(&files(&[
                ("/run.json", Access::File(b"{}".to_vec())),
                ("/events", Access::Link("elsewhere".into())),
                (path, Access::Refused(errno)),
            ]))
        };
        // EACCES for a file, for a folder, and for a path that is not a part.
        for (path, named) in [("/blocks.jsonl", Some("blocks.jsonl")), ("/host", Some("host")), ("/x", None)]
        {
            let parts = of(path, 13);
            assert_eq!(parts.found.len(), 1, "{path}");
            assert_eq!(parts.unread.as_ref().map(|unread| unread.0.as_str()), named, "{path}");
            assert_eq!(parts.lacking().is_some(), named.is_some(), "{path}");
        }
        assert!(of("/host", 13).lacking().unwrap().contains("cannot read its host (EACCES"));
    }

    #[test]
    fn what_is_cut_at_the_limits_says_so() {
        let top = tempfile::tempdir().unwrap();
        let of = |depth: usize| {
            let path = format!("host{}", "/a".repeat(depth - 1));
            let file = top.path().join(format!("{depth}/{path}"));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "x").unwrap();
            (path, BundleParts::of(&MachineFiles::folder(top.path().join(depth.to_string()))))
        };
        let (path, parts) = of(DEEPEST);
        assert_eq!((parts.is_cut, parts.lacking()), (false, None));
        assert_eq!(parts.found.last(), Some(&BundlePart { path, bytes: 1, is_folder: false }));
        let (_, parts) = of(DEEPEST + 1);
        assert!(parts.is_cut && parts.lacking().unwrap().contains("24 deep"), "{parts:?}");
    }
    #[test]
    fn as_many_files_as_a_bundle_may_have_are_all_of_it() {
        let of = |count: usize| {
            let mut names: Vec<String> = (1..count).map(|number| format!("n{number}")).collect();
            let there = names.iter().map(|name| (format!("/host/{name}"), Access::File(Vec::new())));
            let mut answers: BTreeMap<String, Access> = there.collect();
            names.push("z".to_owned());
            answers.insert("/run.json".into(), Access::File(Vec::new()));
            answers.insert("/host/.".into(), Access::List(names));
            answers.insert("/host/z/.".into(), Access::List(Vec::new()));
            BundleParts::of(&MachineFiles::in_memory(answers))
        };
        let parts = of(MOST_FILES);
        assert_eq!((parts.is_cut, parts.found.len()), (false, MOST_FILES + 2), "with two folders");
        let parts = of(MOST_FILES + 1);
        assert!(parts.is_cut && parts.lacking().unwrap().contains("20000 files"), "{:?}", parts.unread);
    }
}
