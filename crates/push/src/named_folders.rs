//! Named folders: remarks on those that hold nothing to send, and records among them.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bundle::record::read::{is_record, is_record_of};
use host::{RecordDisk, RecordFolder};
use model::text::quoted;

use super::runs::found_runs::found;

/// Remarks on these folders, a line each; none on a folder that does not exist yet.
pub fn nothing_in(runs: &[PathBuf], records: &[PathBuf]) -> Vec<String> {
    let is_there = |folder: &&PathBuf| host::identity(folder).is_some();
    let runs = runs.iter().filter(is_there).filter_map(|folder| {
        let shown = quoted(folder);
        if is_no_folder(folder) {
            return Some(format!("--runs: {shown} is not a folder: name the one that holds runs or suites"));
        }
        // An unreadable folder is reported when its runs are sent.
        let found = found(folder);
        let is_empty = found.places.is_empty() && found.unread.is_none();
        is_empty.then(|| format!("--runs: {shown} holds no run: name the folder that holds runs or suites"))
    });
    let records = records.iter().filter(is_there).filter(|folder| !is_record(folder)).map(|folder| {
        let shown = quoted(folder);
        if is_no_folder(folder) {
            format!("--record: {shown} is not a folder: name that of `onbeat watch`")
        } else {
            format!("--record: {shown} holds no record of `onbeat watch` yet")
        }
    });
    runs.chain(records).collect()
}

/// True if there is a record, or a folder that cannot be read and may hold one.
pub fn may_be_record(record: &Path) -> bool {
    match RecordFolder::open(record).and_then(|folder| folder.names()) {
        Ok(names) => is_record_of(&names),
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

fn is_no_folder(path: &Path) -> bool {
    host::is_dir(path).is_ok_and(|is_dir| !is_dir)
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make files of their own.
mod tests {
    use super::*;

    #[test]
    fn a_file_is_told_from_a_folder_without_runs_and_from_one_that_is_not_there() {
        let place = tempfile::tempdir().unwrap();
        let (file, folder) = (place.path().join("run.json"), place.path().join("runs"));
        std::fs::write(&file, "{}").unwrap();
        std::fs::create_dir(&folder).unwrap();
        let all = [file, folder, place.path().join("later")];
        let (runs, records) = (nothing_in(&all, &[]), nothing_in(&[], &all));
        assert!(runs.len() == 2 && records.len() == 2, "{runs:?} {records:?}");
        for (said, later) in [(&runs, "holds no run"), (&records, "no record")] {
            assert!(said[0].contains("run.json is not a folder") && said[1].contains(later), "{said:?}");
        }
    }
}
