//! `onbeat explain`: a hunt's explanation again, from what its bundle holds.

use std::path::PathBuf;

use super::Environment;
use super::newest::ChosenRun;
use super::outputs::{OutputFlags, Outputs, Screen, remark};
use super::run_text::{Detail, run_text};
use model::error::{Exit, Failure, Result};
use model::run::Run;
use model::text::quoted;
use report::hunt::spike_text;
use report::last_lines::RunPlace;
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
    after_help = "Examples:\n  onbeat explain                               the newest hunt\n  onbeat explain --spike 17                    one spike of it\n  onbeat explain run --json explained.json\n  onbeat explain run --perfetto spikes.json    open it in ui.perfetto.dev"
)]
pub struct Args {
    /// A bundle of `onbeat hunt`; by default the newest of this user's
    #[arg(value_name = "BUNDLE")]
    bundle: Option<PathBuf>,
    /// The conditions, and what the recorder says of itself
    #[arg(short, long)]
    verbose: bool,
    /// One spike alone, all of it: every part, its stack, what cures it; 1 is the worst
    #[arg(long, value_name = "N")]
    spike: Option<usize>,
    /// Write the worst spikes' events and slices for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json, &args.perfetto], environment)?;
    let chosen = ChosenRun::of(args.bundle.as_ref(), true, environment)?;
    chosen.announce(&mut outputs, false);
    let shown = quoted(&chosen.path);
    let ExplainedRun { run, remarks } = study::explain::open(&chosen.path)?;
    if !args.output.quiet {
        remarks.iter().for_each(|own| remark(&format!("onbeat: {shown}: {own}")));
    }
    // `-q` is of remarks here.
    let detail = Detail::of(false, args.verbose);
    let place = RunPlace { path: &shown, newest: chosen.newest, fresh: false };
    match args.spike {
        None => outputs.print(&run_text(&run, Some(place), detail, outputs.screen)),
        Some(number) => outputs.print(&spike(&run, number, place, outputs.screen)?),
    }
    outputs.json(&args.output.json, &run);
    outputs.write(&args.perfetto, || perfetto(&chosen.path, &run));
    outputs.end(Exit::Ok)
}

fn spike(run: &Run, number: usize, place: RunPlace, screen: Screen) -> Result<String> {
    spike_text::render(run, number, place, screen.columns, screen.color).ok_or_else(|| {
        Failure::usage(match run.spikes.len() {
            0 => format!("--spike {number}: this hunt kept no spike"),
            1 => format!("--spike {number}: this hunt kept one spike, its number is 1"),
            kept => format!(
                "--spike {number}: this hunt kept {kept} spikes, numbered from 1, the worst, to {kept}"
            ),
        })
    })
}
