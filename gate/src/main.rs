//! `cargo xtask`: builds and starts the program `xtask`; for `ci`, with the whole workspace.
//!
//! Clippy is the compiler of that build, so one pass lints, compiles, and serves all tests. This
//! program has no dependencies, because they would be built twice.

use std::io::{Error, Result};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

/// Clippy's separator of its arguments in `CLIPPY_ARGS`, as `cargo clippy` writes it.
const WARNINGS_ARE_ERRORS: &str = "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let is_gate = args.first().is_some_and(|arg| arg == "ci") && !args.iter().any(|arg| arg.contains("-h"));
    let error = if is_gate { check(&args) } else { start(&args) };
    eprintln!("cargo xtask: {error}");
    ExitCode::FAILURE
}

/// Replaces this process by `xtask`, built with the features that it needs alone.
fn start(args: &[String]) -> Error {
    Command::new(cargo()).args(["run", "--quiet", "--package", "xtask", "--"]).args(args).exec()
}

/// Builds the workspace, then replaces this process by `xtask ci`.
fn check(args: &[String]) -> Error {
    match build() {
        Ok(mut xtask) => xtask.args(args).exec(),
        Err(error) => error,
    }
}

fn build() -> Result<Command> {
    let this = std::env::current_exe()?;
    let debug = this.parent().unwrap_or(Path::new("."));
    let mut variables = vec![
        ("RUSTC_WORKSPACE_WRAPPER", PathBuf::from("clippy-driver")),
        ("CLIPPY_ARGS", WARNINGS_ARE_ERRORS.into()),
    ];
    // In an empty clone there is no earlier build to reuse, and most likely no later one, for which
    // incremental data would take time and fill the disk. Panics name their lines without the rest.
    if !debug.join("onbeat-farm").exists() && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        variables.push(("CARGO_INCREMENTAL", "0".into()));
        variables.push(("CARGO_PROFILE_DEV_DEBUG", "0".into()));
    }
    println!("== build and lints");
    let since = Instant::now();
    let mut build = Command::new(cargo());
    build.args(["build", "--quiet", "--all-targets"]).args(gate::WORKSPACE);
    let status = build.envs(variables.iter().cloned()).status()?;
    println!("  {} s", since.elapsed().as_secs());
    if !status.success() {
        return Err(Error::other("invalid sources: expected a build without warnings; see above"));
    }
    let mut xtask = Command::new(debug.join("xtask"));
    xtask.envs(variables);
    Ok(xtask)
}

fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or("cargo".into(), PathBuf::from)
}
