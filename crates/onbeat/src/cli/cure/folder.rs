//! Folder of a cure: created, updated, resumed.

use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::Environment;
use crate::cli::prove::folder::{make, named};
use model::cure::{CureRun, parse};
use model::error::{Exit, Failure, Result, json_pretty};
use model::text::quoted;

/// Name of the record in a cure's folder.
const RECORD: &str = "cure.json";

/// Maximum size of a record.
const LIMIT: u64 = 16 << 20;

/// Folder of the cure, created if it is new; an existing one is not overwritten.
pub fn folder_of(args: &Args, environment: &Environment) -> Result<PathBuf> {
    match (&args.resume, &args.folder) {
        (Some(folder), _) => Ok(folder.clone()),
        (None, Some(folder)) => make(folder.clone()),
        (None, None) => make(named(environment, "cures", "cure")),
    }
}

/// Writes the record, from which a cure is resumed.
pub fn keep(folder: &Path, record: &CureRun) -> Result<()> {
    let file = folder.join(RECORD);
    host::write_user_file(&file, json_pretty(record)?.as_bytes()).map_err(|error| {
        let what = format!("cannot write {}", quoted(&file));
        Failure::of_call(what, &error, Exit::Internal, "free some space, then continue with --resume")
    })
}

pub fn read_record(folder: &Path) -> Result<CureRun> {
    let file = folder.join(RECORD);
    let remedy = "give the folder of a cure, which contains cure.json";
    let bytes = host::read_user_file(&file, LIMIT).map_err(|error| {
        Failure::of_call(format!("cannot read {}", quoted(&file)), &error, Exit::Usage, remedy)
    })?;
    parse(&bytes).map_err(|what| Failure::usage(format!("{}: {what}: {remedy}", quoted(&file))))
}

/// True if the path is the folder of a cure.
pub fn is_cure(path: &Path) -> bool {
    host::identity(&path.join(RECORD)).is_some()
}
