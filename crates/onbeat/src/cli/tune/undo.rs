//! `onbeat tune undo`: restores the settings that onbeat changed.

use crate::cli::Environment;
use crate::cli::journal;
use crate::cli::outputs::{OutputFlags, Outputs};
use crate::cli::running::block_signals;
use model::error::{Exit, Result};
use report::tuning::text::{Layout, Stage, render};
use study::tuning::boot_id;
use tune::undo::{Which, undo};

/// Restore the previous settings, the last change first
///
/// A value that another program has changed since is kept and named, and the exit code is 3.
/// Without ID it undoes the last entry. An entry is refused while a later one that changed the same
/// settings is in force.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  sudo onbeat tune undo\n  sudo onbeat tune undo 3\n  sudo onbeat tune \
        undo --all --force")]
pub struct Args {
    /// Entry, as printed by `tune apply` and `tune status`
    #[arg(value_name = "ID", conflicts_with_all = ["all", "unconfirmed"])]
    id: Option<String>,
    /// Undo all entries, the last first
    #[arg(long)]
    all: bool,
    /// Undo entries that would end automatically and were not confirmed, also before their time,
    /// and those of killed commands; for the start of the system
    #[arg(long, conflicts_with = "all")]
    unconfirmed: bool,
    /// Also restore settings that another program has changed since
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let which = match (&args.id, args.all) {
        (Some(id), _) => Which::Id(id.clone()),
        (None, true) => Which::All,
        (None, false) if args.unconfirmed => Which::Unconfirmed,
        (None, false) => Which::Last,
    };
    let mut journal = journal::lock_if_there("undoing changes")?;
    // Not interruptible: half an undo would be useless, and all of it takes a moment.
    block_signals()?;
    let result = undo(&mut journal.kernel, &mut *journal.store, &which, &boot_id()?, args.force)?;
    outputs.json_pretty(&args.output.json, &result.document);
    let layout = Layout { columns: outputs.screen.columns, color: outputs.screen.color, verbose: false };
    outputs.print(&render(&result.document, Stage::Undone, "", layout));
    let left = result.left_something();
    if let Some(failure) = result.unwritten {
        outputs.keep(Err(failure));
    }
    outputs.end(if left { Exit::Limit } else { Exit::Ok })
}
