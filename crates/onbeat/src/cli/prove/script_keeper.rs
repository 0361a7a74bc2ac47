//! The process that calls `FILE a` where the experiment was killed while `FILE b` was in force.
//!
//! It is started before the script is called for the first time, and goes by a file in the
//! experiment's folder, which says what was called last.

use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::flags::positive_span;
use host::switch_script::SwitchScript;
use host::work::ProcessId;
use host::{RecordFolder, clock, keeper, process_start};
use model::error::{Exit, Failure, Result};
use model::text::quoted;
use model::units::{Bare, Nanos};

/// The file that says which arm is in force, or may be.
const MARKER: &str = "script-arm";

/// No marker is longer.
const LIMIT: u64 = 16;

/// How often the experiment is looked at while another process is at it.
const PERIOD: Nanos = Nanos::SECOND;

/// Starts it for this process; the file that it goes by, and whether `FILE b` may be in force from
/// before.
pub fn start(script: &SwitchScript, at_most: Nanos, folder: &Path) -> Result<(PathBuf, bool)> {
    let failed = |error: std::io::Error| {
        let what = "the process that would undo the change after a kill cannot be started";
        Failure::of_call(what, &error, Exit::Internal, "try again")
    };
    let marker = host::whole_path(folder).map_err(failed)?.join(MARKER);
    // What was left says so until it is put back: this process may be killed before that, too.
    let left =
        host::identity(&marker).is_some() && host::read_user_file(&marker, LIMIT).map_err(failed)? != b"a";
    if !left {
        mark(&marker, "a")?;
    }
    let own = std::process::id();
    let owner = format!("{own}/{}", process_start(own).unwrap_or(0));
    let (marker_text, path) = (marker.display().to_string(), script.path().display().to_string());
    let span = format!("{}ns", at_most.0);
    let line =
        ["prove", "--keep-for", &owner, "--script", &path, "--script-time", &span, "--output", &marker_text];
    keeper::start(&line).map_err(failed)?;
    Ok((marker, left))
}

/// Says which arm is in force from now on.
pub fn mark(marker: &Path, word: &str) -> Result<()> {
    host::write_user_file(marker, word.as_bytes()).map_err(|error| {
        let what = format!("cannot write {}", quoted(marker));
        Failure::of_call(what, &error, Exit::Internal, "free some space, then go on with --resume")
    })
}

/// The keeper's own part.
pub fn run(owner: ProcessId, script: &Path, args: &Args) -> Result<Exit> {
    let Some(marker) = &args.folder else {
        return Err(Failure::usage("--keep-for is for onbeat's own process"));
    };
    let at_most = positive_span("--script-time", &args.script_time, Bare::Seconds)?;
    let failed = |error: std::io::Error| {
        Failure::of_call("the script cannot be called", &error, Exit::Internal, "call it by hand")
    };
    let script = SwitchScript::open(script).map_err(failed)?;
    keeper::outlive(owner).map_err(failed)?;
    let folder = RecordFolder::open(marker.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    // A resume begins by putting it back, unless that process is killed as well.
    let _locked = loop {
        match folder.lock().map_err(failed)? {
            Ok(locked) => break locked,
            Err(_) => clock::sleep_for(PERIOD),
        }
    };
    let word = host::read_user_file(marker, LIMIT).map_err(failed)?;
    if word != b"a" {
        script.call("a", at_most).map_err(failed)?;
        mark(marker, "a")?;
    }
    Ok(Exit::Ok)
}
