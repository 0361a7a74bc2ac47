//! `onbeat farm`: runs the program of the farm, which boards do not need.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;

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
    let own = std::env::current_exe().ok();
    let program =
        own.and_then(|own| Some(own.parent()?.join(PROGRAM))).unwrap_or_else(|| PathBuf::from(PROGRAM));
    // Returns only if the program is missing or may not be run.
    let error = host::replace_by(&program.clone().into_os_string(), &args.arguments);
    Err(match error.kind() {
        ErrorKind::NotFound => Failure::not_supported(format!(
            "{PROGRAM} is not in the folder of this program: build it with `cargo build -p {PROGRAM} --profile farm`, and copy it to {}",
            quoted(&program)
        )),
        _ => Failure::of_call(
            format!("cannot run {}", quoted(&program)),
            &error,
            Exit::NotPermitted,
            "make it executable for you",
        ),
    })
}
