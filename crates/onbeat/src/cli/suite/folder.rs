//! Folder of a suite: created, updated, resumed.

use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::Environment;
use ::suite::recipe::Recipe;
use host::{clock, random_u64};
use model::error::{Exit, Failure, Result, json_pretty};
use model::suite::SuiteRun;
use model::text::{clean, quoted};
use model::units::CpuSet;
use model::wall_time::wall_time;

/// Name of the document in a suite's folder.
const DOCUMENT: &str = "suite.json";

/// Maximum size of a document.
const LIMIT: u64 = 16 << 20;

/// Folder of the suite; an existing one is not overwritten.
pub fn folder_of(args: &Args, recipe: &Recipe, environment: &Environment) -> Result<PathBuf> {
    let folder = match (&args.resume, &args.folder) {
        (Some(folder), _) => return Ok(folder.clone()),
        (None, Some(folder)) => folder.clone(),
        (None, None) => new_folder(recipe, environment),
    };
    match host::identity(&folder) {
        None => Ok(folder),
        Some(_) => Err(Failure::usage(format!(
            "{} already exists: choose another folder, or continue it with --resume",
            quoted(&folder)
        ))),
    }
}

pub fn new_folder(recipe: &Recipe, environment: &Environment) -> PathBuf {
    let now = wall_time(clock::monotonic() + clock::wall_offset());
    let compact: String = now.chars().take(19).filter(|c| *c != '-' && *c != ':').collect();
    let name = format!("{}-{compact}-{:08x}", recipe.name, random_u64() as u32);
    environment.runs().with_file_name("suites").join(name)
}

pub fn make_folder(folder: &Path) -> Result<()> {
    if host::is_dir(folder).unwrap_or(false) {
        return Ok(());
    }
    host::dir::Dir::create(folder).map(drop).map_err(|error| {
        let what = format!("cannot make {}", quoted(folder));
        Failure::of_call(what, &error, Exit::Usage, "choose another folder with -o")
    })
}

pub fn keep(folder: &Path, suite: &SuiteRun) -> Result<()> {
    let file = folder.join(DOCUMENT);
    host::write_user_file(&file, json_pretty(suite)?.as_bytes()).map_err(|error| {
        let what = format!("cannot write {}", quoted(&file));
        Failure::of_call(what, &error, Exit::Internal, "free some space, then continue with --resume")
    })
}

pub fn read_suite(folder: &Path) -> Result<SuiteRun> {
    let file = folder.join(DOCUMENT);
    let remedy = "give the folder of a suite, which contains suite.json";
    let bytes = host::read_user_file(&file, LIMIT).map_err(|error| {
        Failure::of_call(format!("cannot read {}", quoted(&file)), &error, Exit::Usage, remedy)
    })?;
    let suite: SuiteRun = model::suite::parse(&bytes)
        .map_err(|what| Failure::usage(format!("{}: {what}: {remedy}", quoted(&file))))?;
    Ok(suite)
}

/// True if the path is the folder of a suite.
pub fn is_suite(path: &Path) -> bool {
    host::identity(&path.join(DOCUMENT)).is_some()
}

/// Suites whose rows are added, each once.
pub fn others(args: &Args) -> Result<Vec<SuiteRun>> {
    let folders: Vec<&PathBuf> = args.resume.iter().chain(&args.with).collect();
    for (at, folder) in folders.iter().enumerate() {
        let identity = host::identity(folder);
        if identity.is_some() && folders[..at].iter().any(|other| host::identity(other) == identity) {
            return Err(Failure::usage(format!("--with: {} is given twice: remove one", quoted(folder))));
        }
    }
    args.with.iter().map(|folder| read_suite(folder)).collect()
}

/// Refuses to resume a suite with other parameters: its rows could not be compared.
pub fn as_begun<T: PartialEq>(flag: &str, given: Option<&T>, begun: Option<&T>) -> Result<()> {
    match given {
        Some(_) if begun.is_some() && given != begun => Err(Failure::usage(format!(
            "{flag}: the suite was started with another value: remove the flag, or start a new suite"
        ))),
        _ => Ok(()),
    }
}

pub fn kept_cpus(text: &str) -> Result<CpuSet> {
    let what = |_| Failure::usage(format!("suite.json: invalid CPUs '{}': start a new suite", clean(text)));
    CpuSet::parse(text).map_err(what)
}
