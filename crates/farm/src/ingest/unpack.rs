//! Makes bundles of a tar archive that comes from a board, within the limits of what boards send.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use bundle::manifest::{DEEPEST, MOST_BYTES, MOST_FILES, RUN_LIMIT, is_part, size_words};
use host::MachineFiles;
use host::dir::Dir;
use model::fact::Fact;
use model::text::excerpt;

use super::tar::{TarEntry, TarReader};

/// Entries of an archive besides what is a bundle's.
const MOST_LEFT_OUT: u64 = 100_000;
/// No folder of a bundle is deeper, with the few in which it lies.
const DEEPEST_FOLDER: usize = DEEPEST + 8;

/// What came, by the folder of each run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnpackedRuns {
    pub runs: BTreeMap<String, RunVolume>,
    /// Links, devices, and files that are no part of a bundle.
    pub left_out: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunVolume {
    pub files: usize,
    pub bytes: u64,
}

/// Writes the files of the wanted runs below a folder of their names, `most` bytes in all; why not,
/// in a line, where the archive is none or has what no bundle has.
pub fn unpack(
    archive: &mut impl Read,
    into: &Dir,
    wanted: &BTreeSet<String>,
    most: u64,
) -> Result<UnpackedRuns, String> {
    let mut reader = TarReader::new(archive);
    let (mut found, mut total) = (UnpackedRuns::default(), 0u64);
    while let Some(entry) = reader.next_entry()? {
        let (path, bytes) = match &entry {
            TarEntry::File { path, bytes } => (path.strip_prefix("./").unwrap_or(path), *bytes),
            TarEntry::Folder => continue,
            TarEntry::Other => ("", 0),
        };
        let part = path.split_once('/').filter(|(run, part)| wanted.contains(*run) && is_part(part));
        // A file that is passed over comes over the network all the same.
        total = total.saturating_add(bytes);
        if total > most {
            return Err(format!("it has more than the {most} bytes that are left for this board"));
        }
        let Some((run, part)) = part else {
            found.left_out += 1;
            match found.left_out > MOST_LEFT_OUT {
                true => return Err("it has more files than any folder of runs".to_owned()),
                false => continue,
            }
        };
        let volume = found.runs.entry(run.to_owned()).or_default();
        volume.files += 1;
        volume.bytes = volume.bytes.saturating_add(bytes);
        if volume.files > MOST_FILES || volume.bytes > MOST_BYTES {
            return Err(format!("{run} has more than {MOST_FILES} files or {}", size_words(MOST_BYTES)));
        }
        if part == "run.json" && bytes > RUN_LIMIT {
            let most = size_words(RUN_LIMIT);
            return Err(format!("{run}: run.json is larger than {most}, more than a run's can be"));
        }
        write(&mut reader, into, run, part, bytes)
            .map_err(|why| excerpt(&format!("{run}/{part} cannot be written: {why}")))?;
    }
    Ok(found)
}

fn write(reader: &mut impl Read, into: &Dir, run: &str, part: &str, bytes: u64) -> Result<(), String> {
    let words = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            "it is in the archive twice: copy this run by hand, and import it".to_owned()
        }
        _ => format!("{error}: look at the space next to the store"),
    };
    let mut folder = into.subdir(run).map_err(words)?;
    let (above, name) = part.rsplit_once('/').unwrap_or(("", part));
    for name in above.split('/').filter(|name| !name.is_empty()) {
        folder = folder.subdir(name).map_err(words)?;
    }
    let mut file = folder.new_file(name).map_err(words)?;
    match std::io::copy(&mut reader.take(bytes), &mut file).map_err(words)? {
        written if written == bytes => Ok(()),
        _ => Err("the archive was cut: ask the board again".to_owned()),
    }
}

/// Removes a folder with all that is in it; links are removed, and not followed.
pub fn remove_tree(files: &MachineFiles, top: &Dir, path: &str, depth: usize) {
    match files.list_as_it_is(&format!("/{path}/.")) {
        Fact::Known(names) if depth < DEEPEST_FOLDER => {
            names.iter().for_each(|name| remove_tree(files, top, &format!("{path}/{name}"), depth + 1));
            top.remove_dir(path);
        }
        _ => top.remove(path),
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests look at what was written.
mod tests {
    use super::super::tar::made::{archive, entry};
    use super::*;

    fn unpacked(entries: &[Vec<u8>], most: u64) -> (tempfile::TempDir, Result<UnpackedRuns, String>) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("into")).unwrap();
        let into = Dir::existing(&folder.path().join("into")).unwrap();
        let wanted = BTreeSet::from(["r1".to_owned(), "r2".to_owned()]);
        let outcome = unpack(&mut &archive(entries)[..], &into, &wanted, most);
        (folder, outcome)
    }

    #[test]
    fn only_what_was_asked_for_is_written_and_nothing_elsewhere() {
        let mut link = entry(b'2', "r1/host", b"");
        link[157..161].copy_from_slice(b"/tmp");
        super::super::tar::made::summed(&mut link);
        let (folder, outcome) = unpacked(
            &[
                entry(b'5', "./r1/", b""),
                entry(b'0', "./r1/run.json", b"{}"),
                link,
                entry(b'0', "r1/host/proc/a", b"12"),
                entry(b'0', "r1/../../climbed", b"x"),
                entry(b'0', "../climbed", b"x"),
                entry(b'0', "/climbed", b"x"),
                entry(b'0', "r1/host/../../../climbed", b"x"),
                entry(b'0', "r3/run.json", b"not asked for"),
                entry(b'0', "r2/report.html", b"no part"),
                entry(b'0', "r2/run.json", b"{}"),
            ],
            1_000,
        );
        let outcome = outcome.unwrap();
        assert_eq!(outcome.left_out, 7);
        assert_eq!(outcome.runs["r1"], RunVolume { files: 2, bytes: 4 });
        let into = folder.path().join("into");
        assert_eq!(std::fs::read(into.join("r1/host/proc/a")).unwrap(), b"12");
        assert_eq!(std::fs::read_dir(&into).unwrap().count(), 2);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        std::fs::create_dir(into.join("enx001122aabbcc")).unwrap();
        std::fs::write(into.join("enx001122aabbcc/0ffff0123456789abcd"), b"x").unwrap();
        remove_tree(&MachineFiles::folder(folder.path()), &Dir::existing(folder.path()).unwrap(), "into", 0);
        assert!(!into.exists());
    }

    #[test]
    fn two_of_a_name_and_too_much_are_refused() {
        let twice = [entry(b'0', "r1/tail", b"1"), entry(b'0', "./r1/tail", b"2")];
        assert!(unpacked(&twice, 1_000).1.unwrap_err().contains("twice"));
        // What is no part counts too: it has to be read.
        assert!(unpacked(&[entry(b'0', "r1/other", &[0; 900])], 800).1.unwrap_err().contains("800"));
        assert!(unpacked(&[entry(b'0', "r1/run.json/a", b"")], 800).1.is_ok());
    }
}
