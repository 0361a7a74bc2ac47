//! Process that calls `FILE a` if the experiment was killed while `FILE b` was in force.
//!
//! It is started before the first call of the script, and relies on a file in the experiment's
//! folder that names the last call. Only a successful call counts as having reverted the change.

use std::path::{Path, PathBuf};

use super::Args;
use crate::cli::flags::positive_span;
use host::switch_script::{ScriptEnd, SwitchScript, end_marked};
use host::{LockOutcome, ProcessId, RecordFolder, clock, keeper, process_start};
use model::error::{Exit, Failure, Result};
use model::text::{clean, excerpt, quoted, several};
use model::units::{Bare, Nanos};

/// File that names the arm that is or may be in force.
const MARKER: &str = "script-arm";

/// Maximum size of the marker.
const LIMIT: u64 = 4 << 10;

/// Pauses between failed calls of `FILE a`.
const PAUSES: [Nanos; 4] = [Nanos(0), Nanos::SECOND, Nanos(10_000_000_000), Nanos(60_000_000_000)];

/// Interval of the checks while another process uses the experiment.
const PERIOD: Nanos = Nanos::SECOND;

/// State of the script according to the experiment's folder.
pub struct ScriptMarker {
    /// Marker file that the keeper reads.
    pub path: PathBuf,
    /// True if `FILE b` may be in force from an earlier run.
    pub left: bool,
    /// Reason why the keeper could not revert it; `""` if it could, or was killed too.
    pub why: String,
}

/// Starts the keeper for this process, after ending processes that a killed experiment left.
pub fn start(script: &SwitchScript, at_most: Nanos, folder: &Path) -> Result<ScriptMarker> {
    let failed = |error: std::io::Error| {
        let what = "cannot start the process that would undo the change after a kill";
        Failure::of_call(what, &error, Exit::Internal, "try again")
    };
    let marker = host::whole_path(folder).map_err(failed)?.join(MARKER);
    // The marker stays until the change is reverted: this process may be killed before that, too.
    let said = match host::identity(&marker) {
        Some(_) => host::read_user_file(&marker, LIMIT).map_err(failed)?,
        None => b"a".to_vec(),
    };
    let left = said != b"a";
    if left {
        end_marked(&marker);
    } else {
        mark(&marker, "a")?;
    }
    let why = String::from_utf8_lossy(&said).lines().skip(1).map(clean).collect();
    let own = std::process::id();
    let owner = format!("{own}/{}", process_start(own).unwrap_or(0));
    let (marker_text, path) = (marker.display().to_string(), script.path().display().to_string());
    let span = format!("{}ns", at_most.0);
    let line =
        ["prove", "--keep-for", &owner, "--script", &path, "--script-time", &span, "--output", &marker_text];
    keeper::start(&line).map_err(failed)?;
    Ok(ScriptMarker { path: marker, left, why })
}

/// Writes the arm that is in force from now on.
pub fn mark(marker: &Path, word: &str) -> Result<()> {
    host::write_user_file(marker, word.as_bytes()).map_err(|error| {
        let what = format!("cannot write {}", quoted(marker));
        Failure::of_call(what, &error, Exit::Internal, "free some space, then continue with --resume")
    })
}

/// Runs the keeper.
pub fn run(owner: ProcessId, script: &Path, args: &Args) -> Result<Exit> {
    let Some(marker) = &args.folder else {
        return Err(Failure::usage("--keep-for is for onbeat's own process"));
    };
    let at_most = positive_span("--script-time", &args.script_time, Bare::Seconds)?;
    let failed = |error: std::io::Error| {
        Failure::of_call("cannot call the script", &error, Exit::Internal, "call it by hand")
    };
    let script = SwitchScript::open(script).map_err(failed)?;
    keeper::outlive(owner).map_err(failed)?;
    let folder = RecordFolder::open(marker.parent().unwrap_or(Path::new("."))).map_err(failed)?;
    // A resume first reverts the change, unless that process is killed as well.
    let _locked = loop {
        match folder.lock().map_err(failed)? {
            LockOutcome::Locked(lock) => break lock,
            LockOutcome::Held(_) => clock::sleep_for(PERIOD),
        }
    };
    if host::read_user_file(marker, LIMIT).map_err(failed)? == b"a" {
        return Ok(Exit::Ok);
    }
    // A call may be half done: its processes must not continue during `FILE a`.
    end_marked(marker);
    let mut why = String::new();
    for pause in PAUSES {
        clock::sleep_for(pause);
        match script.call("a", at_most, marker, &|| false).map_err(|error| error.to_string()) {
            Ok(ScriptEnd::Done) => return mark(marker, "a").map(|()| Exit::Ok),
            Ok(ended) => why = how_it_ended(&ended, at_most),
            Err(error) => why = error,
        }
        // A resume reports this, and tries again.
        mark(marker, &format!("b\n{} a {}", quoted(script.path()), excerpt(&why)))?;
    }
    Err(Failure { exit: Exit::Limit, message: format!("the change may still be in force: {why}") })
}

/// End of a failed call, as the text that follows its name.
pub fn how_it_ended(ended: &ScriptEnd, at_most: Nanos) -> String {
    match ended {
        ScriptEnd::Done => "ended with 0".to_owned(),
        ScriptEnd::TimedOut => {
            format!("had not ended after {} and was killed: increase --script-time", at_most.spoken())
        }
        ScriptEnd::Stopped => "had not ended yet and was ended when the run stopped".to_owned(),
        ScriptEnd::Left(left) => format!(
            "left {} running, now killed: it must end what it starts, or let a service manager start it",
            several(*left as u64, "process", "processes")
        ),
        ScriptEnd::Failed { code, said } => {
            let how = code.map_or("was ended by a signal".to_owned(), |code| format!("ended with {code}"));
            let said = if said.is_empty() { String::new() } else { format!(" ({})", excerpt(said)) };
            format!("{how}{said}: fix it, and try it by hand")
        }
    }
}
