//! `onbeat tune confirm`: keeps changes that would be undone automatically.

use crate::cli::Environment;
use crate::cli::journal;
use crate::cli::outputs::{OutputFlags, Outputs};
use model::error::{Exit, Result};
use study::tuning::boot_id;
use tune::confirm::confirm;

/// Keep changes that would otherwise revert automatically
///
/// This works from another login than the one that made the changes. Without ID it confirms the
/// last entry that waits.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sudo onbeat tune confirm")]
pub struct Args {
    /// Entry, as printed by `tune apply`
    #[arg(value_name = "ID")]
    id: Option<String>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let mut journal = journal::lock_if_there("confirming changes")?;
    let document = confirm(
        &mut journal.kernel,
        &mut *journal.store,
        args.id.as_deref(),
        &boot_id()?,
        journal::boot_time().0,
    )?;
    outputs.json_pretty(&args.output.json, &document);
    outputs.print(&format!("Entry {} stays until `onbeat tune undo` or the next boot.\n", document.id));
    outputs.end(Exit::Ok)
}
