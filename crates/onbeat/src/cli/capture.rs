//! `onbeat capture`: the files of this machine that an audit reads, as a bundle.

use std::path::{Path, PathBuf};

use super::Environment;
use super::outputs::{OutputFlags, Outputs};
use super::running::{block_signals, unless_stopped};
use bundle::capture::{Capture, SCHEMA, write};
use facts::survey::survey;
use host::{MachineFiles, clock, is_root, random_u64, rt};
use model::error::{Exit, Failure, Result};
use model::text::quoted;
use model::wall_time::wall_time;
use study::audit::survey_request;

/// Save the machine's settings for an audit elsewhere
///
/// Writes the files that the audit reads, at their own paths, and which of them were refused or
/// absent, so that `onbeat audit --bundle` gives the same result elsewhere, byte for byte. Serial
/// numbers, MAC addresses, host names and the arguments of programs are not included. Run it as
/// root: files that are refused now stay unknown.
#[derive(clap::Args)]
#[command(
    mut_arg("json", |arg| arg.help("Write a summary of the capture as JSON; `-` is standard output, which then holds nothing else")),
    after_help = "Examples:\n  sudo onbeat capture -o board\n  onbeat audit --bundle board")]
pub struct Args {
    /// Folder to create; by default under ~/.local/state/onbeat/runs
    #[arg(short = 'o', long = "output", value_name = "DIR")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let default = || environment.runs().join(format!("capture-{:016x}", random_u64()));
    let path = args.folder.clone().unwrap_or_else(default);
    block_signals()?;
    let capture = take(&path)?;
    rt::unblock_signals();
    outputs.json(&args.output.json, &capture);
    outputs.print(&format!("kept in {}\n", quoted(&path)));
    unless_stopped(outputs.end(Exit::Ok))
}

/// Reads the files that an audit reads, and stores them in this new folder.
pub fn take(path: &Path) -> Result<Capture> {
    let host = MachineFiles::live().recording();
    survey(&host, &survey_request());
    let Some(recorder) = host.recorded() else { return Err(Failure::internal("nothing was recorded")) };
    let capture = Capture {
        schema: SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        taken: wall_time(clock::monotonic() + clock::wall_offset()),
        root: is_root(),
    };
    write(path, &capture, recorder)?;
    Ok(capture)
}
