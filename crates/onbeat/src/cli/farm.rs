//! `onbeat farm`: runs the program of the farm, which boards do not need.

use std::ffi::OsString;
use std::io::{Error, ErrorKind};
use std::path::{Path, PathBuf};

use model::error::{Exit, Failure, Result};
use model::text::quoted;

/// Name of the program, in the folder of this one.
const PROGRAM: &str = "onbeat-farm";

/// Collect the runs of many boards and show them in a browser (runs onbeat-farm)
///
/// The farm is a separate program, so that the one on the boards stays small. For example: onbeat
/// farm serve --runs ~/.local/state/onbeat/runs
#[derive(clap::Args)]
pub struct Args {
    /// Arguments for onbeat-farm
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGS")]
    arguments: Vec<OsString>,
}

pub fn run(args: &Args) -> Result<Exit> {
    let program = program();
    // Returns only if the program is missing or may not be run.
    let error = host::replace_by(&program.clone().into_os_string(), &args.arguments);
    Err(not_run(&program, &error))
}

/// Path of the farm's program, beside this one.
fn program() -> PathBuf {
    let own = std::env::current_exe().ok();
    own.and_then(|own| Some(own.parent()?.join(PROGRAM))).unwrap_or_else(|| PathBuf::from(PROGRAM))
}

/// Refuses a machine without the farm's program.
///
/// # Errors
/// Those of the command.
pub fn require_program() -> Result<()> {
    let program = program();
    host::check_executable(&program).map_err(|error| not_run(&program, &error))
}

fn not_run(program: &Path, error: &Error) -> Failure {
    match error.kind() {
        ErrorKind::NotFound => Failure::not_supported(format!(
            "{PROGRAM} is not in the folder of this program: build it with `cargo build -p {PROGRAM} --profile farm`, and copy it to {}",
            quoted(program)
        )),
        _ => Failure::of_call(
            format!("cannot run {}", quoted(program)),
            error,
            Exit::NotPermitted,
            "make it executable for you",
        ),
    }
}
