//! `onbeat isolate undo`: ends the isolation of CPUs.

use crate::cli::Environment;
use crate::cli::journal;
use crate::cli::outputs::{OutputFlags, Outputs};
use crate::cli::running::block_signals;
use model::error::{Exit, Result};
use model::plan::PlanDocument;
use report::tuning::text::{Layout, Stage, render};
use study::tuning::boot_id;
use tune::isolate::list::current;
use tune::undo::{Which, entries, undo};

/// Remove the partition and restore the settings
///
/// The partition is removed first; then the processes in it return to their previous groups,
/// together with processes that they started; none is killed. A setting that another program has
/// changed since is kept and named, and the exit code is 3.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sudo onbeat isolate undo")]
pub struct Args {
    /// Also restore settings that another program has changed since
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let mut journal = journal::lock_if_there("removing the partition")?;
    block_signals()?;
    let boot = boot_id()?;
    let all = entries(&*journal.store)?;
    let (document, unwritten, left) = match current(&all, &boot) {
        None => (PlanDocument::new(&boot, Vec::new(), Vec::new()), None, false),
        Some(entry) => {
            let which = Which::Id(entry.opened.id.clone());
            let result = undo(&mut journal.kernel, &mut *journal.store, &which, &boot, args.force)?;
            let left = result.left_something();
            (result.document, result.unwritten, left)
        }
    };
    outputs.json_pretty(&args.output.json, &document);
    let layout = Layout { columns: outputs.screen.columns, color: outputs.screen.color, verbose: false };
    outputs.print(&render(&document, Stage::Undone, "", layout));
    if let Some(failure) = unwritten {
        outputs.keep(Err(failure));
    }
    outputs.end(if left { Exit::Limit } else { Exit::Ok })
}
