//! `onbeat explain`: a hunt's explanation again, from what its bundle holds.

use std::path::PathBuf;

use super::Environment;
use super::outputs::{OutputFlags, Outputs, remark};
use model::error::{Exit, Result};
use model::text::quoted;
use report::hunt::text;
use study::explain::ExplainedRun;
use study::page::perfetto;

/// Explain a hunt again, from its bundle, without root
///
/// Takes the spikes apart anew from the events that `onbeat hunt` kept around each of them, and
/// ranks the culprits by the rules of this version. Nothing is read of the machine that this runs
/// on.
#[derive(clap::Args)]
#[command(
    mut_arg("json", |arg| arg.help("Write the run with its explanation as JSON; `-` is standard output, which then holds nothing else")),
    after_help = "Examples:\n  onbeat explain ~/.local/state/onbeat/runs/ID\n  onbeat explain run --json explained.json\n  onbeat explain run --perfetto spikes.json    open it in ui.perfetto.dev"
)]
pub struct Args {
    /// A bundle of `onbeat hunt`
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Write the worst spikes' events and slices for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json, &args.perfetto], environment)?;
    let ExplainedRun { run, remarks } = study::explain::open(&args.bundle)?;
    if !args.output.quiet {
        remarks.iter().for_each(|own| remark(&format!("onbeat: {}: {own}", quoted(&args.bundle))));
    }
    outputs.print(&text::render(&run, outputs.screen.columns, outputs.screen.color));
    outputs.json(&args.output.json, &run);
    outputs.write(&args.perfetto, || perfetto(&args.bundle, &run));
    outputs.end(Exit::Ok)
}
