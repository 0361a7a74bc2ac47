//! The folder of a cure: made, kept up to date, gone on with.

use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::Environment;
use crate::cli::prove::folder::{make, named};
use model::cure::{CureRun, parse};
use model::error::{Exit, Failure, Result, json_pretty};
use model::text::quoted;

/// The file of the record in a cure's folder.
const RECORD: &str = "cure.json";

/// No record is longer.
const LIMIT: u64 = 16 << 20;

/// Where it is kept, made if it is new; one that is there is not written over.
pub fn folder_of(args: &Args, environment: &Environment) -> Result<PathBuf> {
    match (&args.resume, &args.folder) {
        (Some(folder), _) => Ok(folder.clone()),
        (None, Some(folder)) => make(folder.clone()),
        (None, None) => make(named(environment, "cures", "cure")),
    }
}

/// Writes the record; what it holds counts when the cure is gone on with.
pub fn keep(folder: &Path, record: &CureRun) -> Result<()> {
    let file = folder.join(RECORD);
    host::write_user_file(&file, json_pretty(record)?.as_bytes()).map_err(|error| {
        let what = format!("cannot write {}", quoted(&file));
        Failure::of_call(what, &error, Exit::Internal, "free some space, then go on with --resume")
    })
}

pub fn read_record(folder: &Path) -> Result<CureRun> {
    let file = folder.join(RECORD);
    let remedy = "name the folder of a cure, which has a cure.json";
    let bytes = host::read_user_file(&file, LIMIT).map_err(|error| {
        Failure::of_call(format!("cannot read {}", quoted(&file)), &error, Exit::Usage, remedy)
    })?;
    parse(&bytes).map_err(|what| Failure::usage(format!("{}: {what}: {remedy}", quoted(&file))))
}

/// Whether it is the folder of a cure.
pub fn is_cure(path: &Path) -> bool {
    host::identity(&path.join(RECORD)).is_some()
}
