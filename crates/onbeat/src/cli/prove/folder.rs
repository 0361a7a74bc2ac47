//! Folder of an experiment: created, updated, resumed.

use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::Environment;
use host::{FolderLock, RecordFolder, clock, random_u64};
use model::error::{Exit, Failure, Result, json_pretty};
use model::experiment::{ExperimentRun, parse};
use model::text::quoted;
use model::wall_time::wall_time;

/// Name of the record in an experiment's folder.
const RECORD: &str = "experiment.json";

/// Maximum size of a record.
const LIMIT: u64 = 16 << 20;

/// Folder of the experiment, created if it is new; an existing one is not overwritten.
pub fn folder_of(args: &Args, environment: &Environment) -> Result<PathBuf> {
    match (&args.resume, &args.folder) {
        (Some(folder), _) => Ok(folder.clone()),
        (None, Some(folder)) => make(folder.clone()),
        (None, None) => make(named(environment, "experiments", "prove")),
    }
}

/// Creates a folder, which must not exist.
pub fn make(folder: PathBuf) -> Result<PathBuf> {
    if host::identity(&folder).is_some() {
        return Err(Failure::usage(format!(
            "{} already exists: choose another folder, or continue it with --resume",
            quoted(&folder)
        )));
    }
    host::dir::Dir::create(&folder).map_err(|error| {
        let what = format!("cannot create {}", quoted(&folder));
        Failure::of_call(what, &error, Exit::Usage, "choose another folder with -o")
    })?;
    Ok(folder)
}

/// A folder of this kind next to the runs, named after the time.
pub fn named(environment: &Environment, kind: &str, command: &str) -> PathBuf {
    let now = wall_time(clock::monotonic() + clock::wall_offset());
    let compact: String = now.chars().take(19).filter(|c| *c != '-' && *c != ':').collect();
    let name = format!("{command}-{compact}-{:08x}", random_u64() as u32);
    environment.runs().with_file_name(kind).join(name)
}

/// Writes the record, from which an experiment is resumed.
pub fn keep(folder: &Path, record: &ExperimentRun) -> Result<()> {
    let file = folder.join(RECORD);
    host::write_user_file(&file, json_pretty(record)?.as_bytes()).map_err(|error| {
        let what = format!("cannot write {}", quoted(&file));
        Failure::of_call(what, &error, Exit::Internal, "free some space, then continue with --resume")
    })
}

pub fn read_record(folder: &Path) -> Result<ExperimentRun> {
    let file = folder.join(RECORD);
    let remedy = "give the folder of an experiment, which contains experiment.json";
    let bytes = host::read_user_file(&file, LIMIT).map_err(|error| {
        Failure::of_call(format!("cannot read {}", quoted(&file)), &error, Exit::Usage, remedy)
    })?;
    parse(&bytes).map_err(|what| Failure::usage(format!("{}: {what}: {remedy}", quoted(&file))))
}

/// True if the path is the folder of an experiment.
pub fn is_experiment(path: &Path) -> bool {
    host::identity(&path.join(RECORD)).is_some()
}

/// Record of an existing experiment, and its lock.
pub fn begun(folder: &Path) -> Result<(ExperimentRun, FolderLock)> {
    // Only an experiment gets a lock; it may have been resumed after the first read.
    read_record(folder)?;
    let locked = lock(folder)?;
    Ok((read_record(folder)?, locked))
}

/// Locks the experiment, so that no other process resumes it.
///
/// # Errors
/// Not permitted: another onbeat uses it.
pub fn lock(folder: &Path) -> Result<FolderLock> {
    let locked = RecordFolder::open(folder).and_then(|open| open.lock()).map_err(|error| {
        let what = format!("cannot lock {}", quoted(folder));
        Failure::of_call(what, &error, Exit::Usage, "choose another folder with -o")
    })?;
    locked.ok_or_else(|owner| Failure {
        exit: Exit::NotPermitted,
        message: format!(
            "another onbeat (process {}) uses {}: wait until it ends",
            owner.pid,
            quoted(folder)
        ),
    })
}
