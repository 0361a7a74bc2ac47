//! Copies a bundle next to the store, so that its source may be removed.
//!
//! Only the parts of a bundle are copied; links in it are not followed (`host::beneath`).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bundle::manifest::{DEEPEST, MOST_BYTES, MOST_FILES, PARTS, size_words};
use host::dir::Dir;
use host::{FolderLock, MachineFiles, RecordFolder};
use model::error::Failure;
use model::fact::Fact;
use model::units::Nanos;
use sha2::{Digest, Sha256};

use super::environment::hex;
use super::remove_tree::remove_tree;
use crate::records::BundleRecord;

/// Interval between two attempts to lock the folder of bundles.
const LOOK: Duration = Duration::from_millis(20);
/// Time limit of a command for the lock: in ten minutes the largest bundle is copied.
pub const PATIENCE: Nanos = Nanos(600 * Nanos::SECOND.0);

/// Beginning of the message of [`keep`] for a copy that could not be written.
const UNWRITTEN: &str = "it cannot be copied";

/// True if [`keep`] failed at the destination, and not at the source.
pub fn is_of_the_copy(why: &str) -> bool {
    why.starts_with(UNWRITTEN)
}

/// The lock of those that write into a folder of bundles and into its store, held as long as the
/// value lives: import, prune, forget, backup, and the server for each run that a board sends. None
/// on a file system that has no locks. Waits for it; why it does not come, in a line.
pub async fn writer_lock(kept: &Path, patience: Nanos) -> model::error::Result<Option<FolderLock>> {
    let until = host::clock::monotonic() + patience;
    loop {
        let of = kept.to_owned();
        let look = move || RecordFolder::make(&of).and_then(|folder| folder.take_turn());
        match tokio::task::spawn_blocking(look).await {
            Ok(Ok(Some(lock))) => return Ok(Some(lock)),
            Ok(Ok(None)) if host::clock::monotonic() >= until => break,
            Ok(Ok(None)) => tokio::time::sleep(LOOK).await,
            _ => return Ok(None),
        }
    }
    Err(Failure::internal(format!(
        "another program writes into {}, such as an import or a backup: try again when it has ended",
        model::text::quoted(kept)
    )))
}

/// The lock, if the folder exists.
pub async fn lock_of_writers(kept: &Path, patience: Nanos) -> model::error::Result<Option<FolderLock>> {
    match host::identity(kept) {
        Some(_) => writer_lock(kept, patience).await,
        None => Ok(None),
    }
}

/// Name of the bundle of a run's state in a bucket, to which several machines may write: each state
/// has a different name, so that none overwrites another. The last seconds of a killed run are not
/// in its document.
pub fn name_of_state(record: &BundleRecord) -> String {
    let run = &record.run;
    let mut of_state = record.digest.clone();
    if !run.complete {
        let seconds = record.slots.iter().flat_map(|slot| [slot.n, slot.missed]);
        let counted = [run.cycles, run.missed.unwrap_or_default(), run.spikes];
        of_state.extend(counted.into_iter().chain(seconds).flat_map(u64::to_le_bytes));
        of_state = Sha256::digest(&of_state).to_vec();
    }
    format!("{}+{}", run.id, hex(&of_state[..of_state.len().min(8)]))
}

/// Copies a bundle to `kept/ID`, or over the copy of an earlier state, whose other parts are
/// removed; the run's document is last, so that an interrupted copy is no bundle. Returns its path
/// and the number of skipped files, or the reason of a failure.
pub fn keep(bundle: &Path, id: &str, kept: &Path) -> Result<(PathBuf, u64), String> {
    let trouble =
        |error: std::io::Error| format!("{UNWRITTEN} ({error}): check the free space next to the store");
    // A copy must not be removed because its source is.
    if host::identity(&bundle.join("run.json")).is_none() {
        return Err("it no longer exists".to_owned());
    }
    let place = kept.join(id);
    let target = match host::is_dir(&place) {
        Ok(true) => Dir::existing(&place).map_err(trouble)?,
        _ => Dir::create(&place).map_err(trouble)?.0,
    };
    let files = MachineFiles::folder(bundle);
    let top = Dir::existing(&place).map_err(trouble)?;
    let there = MachineFiles::folder(&place);
    let mut copy = Copying { files, there, top, bytes: 0, count: 0, left_out: 0 };
    for part in PARTS.iter().rev() {
        copy.entry(&format!("/{part}"), &target, part, 0)?;
    }
    Ok((place, copy.left_out))
}

/// Copies some files of a bundle over those of its copy, in this order; why not, in a line.
pub fn copy_files(bundle: &Path, copy: &Path, paths: &[String]) -> Result<(), String> {
    let trouble = |error: std::io::Error| {
        format!("it cannot be copied ({error}): check the free space next to the store")
    };
    let files = MachineFiles::folder(bundle);
    for path in paths {
        let mut folder = Dir::existing(copy).map_err(trouble)?;
        let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
        for inner in above.split('/').filter(|inner| !inner.is_empty()) {
            folder = folder.subdir(inner).map_err(trouble)?;
        }
        match files.copy_as_it_is(&format!("/{path}"), MOST_BYTES, &folder, OsStr::new(name)) {
            Fact::Known(copied) => copied.map_err(trouble)?,
            _ => return Err(format!("its {path} cannot be read: check its owner")),
        };
    }
    Ok(())
}

struct Copying {
    files: MachineFiles,
    /// Contents of the copy, of an earlier state.
    there: MachineFiles,
    top: Dir,
    bytes: u64,
    count: usize,
    /// Number of links and unreadable files.
    left_out: u64,
}

impl Copying {
    fn entry(&mut self, path: &str, into: &Dir, name: &str, depth: usize) -> Result<(), String> {
        self.count += 1;
        if self.count > MOST_FILES || depth > DEEPEST {
            return Err(format!(
                "it is not a bundle: more than {MOST_FILES} files, or folders {DEEPEST} deep"
            ));
        }
        let left = MOST_BYTES - self.bytes;
        let trouble =
            |error: std::io::Error| format!("{UNWRITTEN} ({error}): check the free space next to the store");
        match self.files.copy_as_it_is(path, left, into, OsStr::new(name)) {
            Fact::Known(copied) => {
                self.bytes += copied.map_err(trouble)?;
                Ok(())
            }
            Fact::Absent => {
                self.remove(path);
                Ok(())
            }
            Fact::Refused(number) if is_too_large(number) => {
                Err(format!("it is not a bundle: larger than {}", size_words(MOST_BYTES)))
            }
            _ => {
                let Fact::Known(names) = self.files.list_as_it_is(&format!("{path}/.")) else {
                    // Without one of these parts it would be another run.
                    if depth == 0 {
                        return Err(format!("its {name} cannot be read: check its owner"));
                    }
                    self.left_out += 1;
                    self.remove(path);
                    return Ok(());
                };
                let inner = into.subdir(name).map_err(trouble)?;
                let there = self.there.list(&format!("{path}/.")).known().cloned().unwrap_or_default();
                let gone = there.iter().filter(|name| !names.contains(name));
                gone.for_each(|name| self.remove(&format!("{path}/{name}")));
                names
                    .iter()
                    .try_for_each(|name| self.entry(&format!("{path}/{name}"), &inner, name, depth + 1))
            }
        }
    }

    fn remove(&self, path: &str) {
        remove_tree(&self.there, &self.top, path.trim_start_matches('/'), 0);
    }
}

fn is_too_large(number: i32) -> bool {
    std::io::Error::from_raw_os_error(number).kind() == std::io::ErrorKind::FileTooLarge
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests make folders of their own.
mod tests {
    use super::*;
    use crate::fixture::{killed_run, run_folder};
    use crate::ingest::bundle::read;
    use crate::ingest::find::FoundBundle;
    use std::fs;

    #[test]
    fn writers_wait_for_each_other() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.enable_all().build().unwrap().block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let kept = folder.path().join("bundles");
            let turn = writer_lock(&kept, PATIENCE).await.unwrap();
            assert!(turn.is_some() && fs::read_dir(&kept).unwrap().next().is_none());
            let mut waiting = std::pin::pin!(writer_lock(&kept, PATIENCE));
            let soon = tokio::time::sleep(LOOK * 3);
            tokio::select! {
                _ = &mut waiting => panic!("both have it"),
                () = soon => {}
            }
            drop(turn);
            assert!(waiting.await.unwrap().is_some());
        });
    }

    #[test]
    fn states_of_a_killed_run_that_have_one_document_have_names_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("run");
        let named = |seconds: i64| {
            killed_run(&place, seconds);
            let record = read(&FoundBundle { place: place.clone(), board: None }).unwrap().0;
            (name_of_state(&record), record)
        };
        let ((first, earlier), (second, later)) = (named(1), named(2));
        assert!(earlier.digest == later.digest && first != second && named(2).0 == second);
        let over = crate::fixture::recorded_run("measured", "a");
        assert_eq!(name_of_state(&over), format!("{}+{}", over.run.id, hex(&over.digest[..8])));
    }

    #[test]
    fn a_later_state_leaves_nothing_of_the_earlier_one() {
        let folder = tempfile::tempdir().unwrap();
        let (earlier, later) = (folder.path().join("earlier"), folder.path().join("later"));
        let all = ["run.json", "tail", "events/spikes.jsonl", "events/explained.jsonl", "host/proc/version"];
        for (place, files) in [(&earlier, &all[..]), (&later, &[all[0], all[2]][..])] {
            for file in files {
                fs::create_dir_all(place.join(file).parent().unwrap()).unwrap();
                fs::write(place.join(file), place.to_str().unwrap()).unwrap();
            }
        }
        let kept = folder.path().join("kept");
        for state in [&earlier, &later] {
            let copy = keep(state, "id", &kept).unwrap().0;
            for file in all {
                let wanted = fs::read_to_string(state.join(file)).ok();
                assert_eq!(fs::read_to_string(copy.join(file)).ok(), wanted, "{file}");
            }
        }
        assert!(!kept.join("id/host").exists() && kept.join("id/events").exists());
        fs::remove_dir_all(&later).unwrap();
        assert!(keep(&later, "id", &kept).unwrap_err().contains("no longer exists"));
        assert!(kept.join("id/run.json").exists());
    }

    #[test]
    fn a_copy_reads_as_its_bundle_and_links_are_not_followed() {
        let source = run_folder("hunt");
        let folder = tempfile::tempdir().unwrap();
        let secret = folder.path().join("secret");
        fs::write(&secret, "x").unwrap();
        let bundle = folder.path().join("bundle");
        fs::create_dir(&bundle).unwrap();
        for entry in ["run.json", "blocks.jsonl"] {
            fs::copy(source.join(entry), bundle.join(entry)).unwrap();
        }
        fs::create_dir(bundle.join("host")).unwrap();
        std::os::unix::fs::symlink(&secret, bundle.join("host/leak")).unwrap();
        fs::write(bundle.join("other"), "no part of a bundle").unwrap();
        // Text that reads like an address is not secret here.
        let address = "at ffffffff81000000 of enx001122aabbcc";
        for name in ["notes", "enx001122aabbcc"] {
            fs::write(bundle.join("host").join(name), address).unwrap();
        }
        let (place, left_out) = keep(&bundle, "id", &folder.path().join("kept")).unwrap();
        assert_eq!(left_out, 1);
        let record = |place: &Path| {
            let (mut record, _) = read(&FoundBundle { place: place.to_owned(), board: None }).unwrap();
            record.run.place.clear();
            record
        };
        assert_eq!(record(&place), record(&bundle));
        assert!(!place.join("other").exists() && !place.join("host/leak").exists());
        assert_eq!(fs::read_to_string(place.join("host/notes")).unwrap(), address);
        assert_eq!(fs::read_to_string(place.join("host/enx001122aabbcc")).unwrap(), address);
        fs::write(place.join("host/notes"), "").unwrap();
        copy_files(&bundle, &place, &["host/notes".to_owned()]).unwrap();
        assert_eq!(fs::read_to_string(place.join("host/notes")).unwrap(), address);
        // A part that is a link is not copied.
        fs::remove_file(bundle.join("blocks.jsonl")).unwrap();
        std::os::unix::fs::symlink(&secret, bundle.join("blocks.jsonl")).unwrap();
        assert!(keep(&bundle, "id", &folder.path().join("again")).unwrap_err().contains("blocks.jsonl"));
    }
}
