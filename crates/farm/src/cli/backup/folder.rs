//! The folder of a backup: whole under its name, or not there.

use std::path::{Path, PathBuf};

use host::dir::Dir;
use host::{FolderLock, MachineFiles, RecordFolder};
use model::error::{Exit, Failure, Result};
use model::text::quoted;

use crate::ingest::keep::{PATIENCE, writer_lock};
use crate::ingest::remove_tree::remove_tree;

/// Suffix of folders in which a backup is in progress; their names begin with a dot, so that tools
/// that count backups by name skip them.
const UNFINISHED: &str = ".onbeat.part";

/// A folder that gets its name when its contents are complete. Dropped before that, it is removed.
pub struct BackupFolder {
    above: PathBuf,
    name: String,
    unfinished: String,
    is_whole: bool,
    /// Released by the kernel with this process, which identifies the remains of a killed one.
    _lock: Option<FolderLock>,
}

impl BackupFolder {
    /// Creates it next to its destination, and removes the remains of killed backups there.
    pub async fn make(dir: &Path) -> Result<BackupFolder> {
        let (above, name) = free_place(dir)?;
        let failed = |error: &std::io::Error| unwritable(dir, error);
        let starting = writer_lock(&above, PATIENCE).await?;
        remove_killed(&above);
        let unfinished = format!(".{name}{UNFINISHED}");
        let folder = RecordFolder::make(&above.join(&unfinished)).map_err(|error| failed(&error))?;
        let lock = match folder.take_turn() {
            Ok(None) => {
                return Err(Failure::not_permitted(format!(
                    "another backup into {} is running: wait for it, or name another folder",
                    quoted(dir)
                )));
            }
            // Not every file system has locks.
            taken => taken.ok().flatten(),
        };
        drop(starting);
        Ok(BackupFolder { above, name, unfinished, is_whole: false, _lock: lock })
    }

    /// The store in it, until it has its name.
    pub fn file(&self) -> PathBuf {
        self.above.join(&self.unfinished).join("farm.db")
    }

    /// Renames it once all contents are on the disk; returns its path.
    pub fn finish(mut self) -> Result<PathBuf> {
        let place = self.above.join(&self.name);
        let done = Dir::existing(&self.above).and_then(|above| {
            above.existing_subdir(&self.unfinished)?.sync_file_system()?;
            // Over an empty folder, and over nothing else.
            above.rename(&self.unfinished, &self.name, true)
        });
        done.map_err(|error| unwritable(&place, &error))?;
        self.is_whole = true;
        Ok(place)
    }
}

impl Drop for BackupFolder {
    fn drop(&mut self) {
        if !self.is_whole {
            remove(&self.above, &self.unfinished);
        }
    }
}

/// Parent folder, without links, and the name in it, which is absent or an empty folder.
fn free_place(dir: &Path) -> Result<(PathBuf, String)> {
    let failed = |error: std::io::Error| unwritable(dir, &error);
    let place = if host::is_dir(dir).unwrap_or(false) {
        host::whole_path(dir).map_err(failed)?
    } else {
        let name = dir.file_name().ok_or_else(|| Failure::usage("name a folder for the backup"))?;
        let above = dir.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !host::is_dir(above).unwrap_or(false) {
            Dir::create(above).map_err(failed)?;
        }
        host::whole_path(above).map_err(failed)?.join(name)
    };
    let (above, name) = (place.parent(), place.file_name().and_then(|name| name.to_str()));
    let Some(above) = above else { return Err(Failure::usage("a backup needs a folder above it: name one")) };
    let Some(name) = name else {
        return Err(Failure::usage("the folder's name is not UTF-8: choose another"));
    };
    if let Some((device, _)) = host::identity(&place) {
        if !Dir::existing(&place).and_then(|there| there.names()).is_ok_and(|names| names.is_empty()) {
            let device_above = host::identity(above).map(|(device, _)| device);
            let other = if device_above == Some(device) {
                "name another folder for each backup"
            } else {
                "name a folder in it"
            };
            return Err(Failure::usage(format!("{} exists already: {other}", quoted(&place))));
        }
        if host::identity(above).is_some_and(|(device_above, _)| device_above != device) {
            return Err(Failure::usage(format!("{} is a mount point: name a folder in it", quoted(&place))));
        }
    }
    Ok((above.to_owned(), name.to_owned()))
}

/// Removes the remains of killed backups: their locks are free.
fn remove_killed(above: &Path) {
    let names = Dir::existing(above).and_then(|folder| folder.names()).unwrap_or_default();
    for name in names.iter().filter(|name| name.starts_with('.') && name.ends_with(UNFINISHED)) {
        let turn = RecordFolder::open(&above.join(name)).and_then(|folder| folder.take_turn());
        if let Ok(Some(_turn)) = turn {
            remove(above, name);
        }
    }
}

fn remove(above: &Path, name: &str) {
    let Ok(top) = Dir::existing(above) else { return };
    let files = MachineFiles::folder(above);
    // Each bundle by itself may be as deep as is removed at once.
    let bundles = format!("{name}/farm.db.bundles");
    let runs = Dir::existing(&above.join(&bundles)).and_then(|folder| folder.names());
    for run in runs.unwrap_or_default() {
        remove_tree(&files, &top, &format!("{bundles}/{run}"), 0);
    }
    remove_tree(&files, &top, name, 0);
}

fn unwritable(dir: &Path, error: &std::io::Error) -> Failure {
    let what = format!("cannot write to {}", quoted(dir));
    Failure::of_call(what, error, Exit::Usage, "name a folder that you may write to, with enough space")
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // Tests look at what was written.
mod tests {
    use super::*;
    use crate::fixture::block_on;
    use std::fs;

    fn made(dir: &Path) -> Result<BackupFolder> {
        block_on(BackupFolder::make(dir))
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|one| one.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_backup_is_whole_under_its_name_or_not_there() {
        let top = tempfile::tempdir().unwrap();
        let dir = top.path().join("backups/monday/");
        let deep = |folder: &BackupFolder| {
            let bundle = folder.file().with_file_name("farm.db.bundles").join("r/host/proc");
            fs::create_dir_all(&bundle).unwrap();
            fs::write(bundle.join("cmdline"), "x").unwrap();
            fs::write(folder.file(), "").unwrap();
        };
        let folder = made(&dir).unwrap();
        deep(&folder);
        assert_eq!(names(&top.path().join("backups")), [".monday.onbeat.part"]);
        let refused = made(&dir).err().unwrap();
        assert!(refused.exit == Exit::NotPermitted && refused.message.contains("is running"), "{refused}");
        // Another one in progress is not affected.
        drop(made(&top.path().join("backups/tuesday")).unwrap());
        assert!(folder.file().exists());
        drop(folder);
        assert_eq!(names(&top.path().join("backups")), [""; 0]);
        let folder = made(&dir).unwrap();
        deep(&folder);
        let place = folder.finish().unwrap();
        assert_eq!(names(&top.path().join("backups")), ["monday"]);
        assert_eq!(names(&place), ["farm.db", "farm.db.bundles"]);
        let refused = made(&dir).err().unwrap();
        assert!(refused.exit == Exit::Usage && refused.message.contains("exists already"), "{refused}");
        fs::create_dir(top.path().join("empty")).unwrap();
        made(&top.path().join("empty")).unwrap().finish().unwrap();
    }

    #[test]
    fn what_a_killed_backup_left_goes_with_the_next_and_nothing_else_does() {
        let top = tempfile::tempdir().unwrap();
        for left in [".sunday.onbeat.part/farm.db.bundles/r", ".mine.part", "old.onbeat.part"] {
            fs::create_dir_all(top.path().join(left)).unwrap();
        }
        made(&top.path().join("monday")).unwrap().finish().unwrap();
        assert_eq!(names(top.path()), [".mine.part", "monday", "old.onbeat.part"]);
    }

    #[test]
    fn what_came_to_its_place_meanwhile_stays() {
        let top = tempfile::tempdir().unwrap();
        let folder = made(&top.path().join("monday")).unwrap();
        fs::create_dir(top.path().join("monday")).unwrap();
        fs::write(top.path().join("monday/farm.db"), "another's").unwrap();
        assert!(folder.finish().is_err());
        assert_eq!(names(top.path()), ["monday"]);
        assert_eq!(fs::read(top.path().join("monday/farm.db")).unwrap(), b"another's");
    }
}
