//! `onbeat explain`: a hunt's explanation again, from what its bundle holds.

use model::vocabulary::Command;
use std::io;
use std::path::{Path, PathBuf};

use super::{Environment, print, say, write_output};
use crate::hunt::again;
use bundle::events::each_window;
use bundle::read::Bundle;
use model::error::{Exit, Outcome, Trouble, json};
use model::run::Run;
use model::text::{quoted, several};
use report::hunt::perfetto;
use report::hunt::text;
use rules::culprits::context::StealInterval;

/// Explain a hunt again, from its bundle, without root
///
/// Takes the spikes apart anew from the events that `onbeat hunt` kept around each of them, and ranks the culprits by
/// the rules of this version. Nothing is read of the machine that this runs on.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat explain ~/.local/state/onbeat/runs/ID\n  onbeat explain run --json explained.json\n  onbeat explain run --perfetto spikes.json    open it in ui.perfetto.dev"
)]
pub struct Args {
    /// A bundle of `onbeat hunt`
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Write the run with its explanation as JSON; `-` is standard output, which then holds nothing else
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the worst spikes' events and slices for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
    /// No remarks on standard error
    #[arg(short, long)]
    quiet: bool,
}

/// Explains.
pub fn run(args: &Args, environment: &Environment) -> Outcome<Exit> {
    let outputs = [&args.json, &args.perfetto];
    super::check_outputs(&outputs)?;
    let mut bundle = Bundle::open(&args.bundle)?;
    let mut stolen = Vec::new();
    bundle.each_block(|block| stolen.extend(StealInterval::of(block)))?;
    let (mut run, mut remarks) = (std::mem::take(&mut bundle.run), std::mem::take(&mut bundle.remarks));
    if run.command != Command::Hunt {
        return Err(Trouble::usage(format!(
            "{} is a run of `onbeat {}`, in which nothing was traced: give one of `onbeat hunt`",
            quoted(&args.bundle),
            run.command
        )));
    }
    let unread = again::explain(&args.bundle, &mut run, &stolen, |_| ())?;
    if unread > 0 {
        remarks.push(format!(
            "{} of events could not be read: what was explained before stays",
            several(unread, "window", "windows")
        ));
    }
    if !args.quiet {
        remarks.iter().for_each(|remark| say(&format!("onbeat: {}: {remark}", quoted(&args.bundle))));
    }
    if !outputs.iter().any(|path| path.as_deref() == Some("-".as_ref())) {
        print(text::render(&run, environment.columns(), environment.color(&io::stdout())).as_bytes())?;
    }
    if let Some(path) = &args.json {
        write_output(path, (json(&run)? + "\n").as_bytes())?;
    }
    if let Some(path) = &args.perfetto {
        write_perfetto(&args.bundle, &run, path)?;
    }
    Ok(Exit::Fine)
}

/// Spikes whose events go into a trace for Perfetto: more than anybody looks at, and few enough for its memory.
pub const TRACED: usize = 200;
/// And so many events of theirs.
const MOST_EVENTS: usize = 500_000;

/// Writes what ui.perfetto.dev opens, of the worst spikes whose windows the bundle has.
pub fn write_perfetto(bundle: &Path, run: &Run, to: &Path) -> Outcome<()> {
    let mut latencies: Vec<_> = run.spikes.iter().map(|spike| spike.latency_ns).collect();
    latencies.sort_unstable_by(|a, b| b.cmp(a));
    let least = latencies.get(TRACED - 1).copied().unwrap_or_default();
    let (mut windows, mut events) = (Vec::new(), 0);
    each_window(bundle, |window| {
        if window.latency() >= least && windows.len() < TRACED && events < MOST_EVENTS {
            events += window.events.len();
            windows.push(window);
        }
    })?;
    let title = bundle.file_name().map_or_else(|| run.id.clone(), |name| name.to_string_lossy().into_owned());
    let traced = perfetto::Traced { title: &title, run, windows: &windows };
    write_output(to, perfetto::render(&[traced]).as_bytes())
}
