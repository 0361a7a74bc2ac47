//! `onbeat tune`: changes of settings through a journal, and their undo.

pub(super) mod apply;
mod confirm;
mod export;
mod hold;
mod import;
mod plan;
mod plan_flags;
mod status;
mod undo;

use super::Environment;
use model::error::{Exit, Result};

/// Plan, apply and undo settings for real-time use
///
/// `plan` prints the changes with their reasons, and writes nothing. `apply` makes them: each
/// change is recorded on disk before it is made, then read back; if one fails, the changes before
/// it are undone. `undo` restores every value that onbeat set and that is still in place, the last
/// change first, and names those that another program has changed since. Nothing lasts beyond the
/// next boot; `export` writes files that make the changes permanent.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  onbeat tune plan --cpus 2-3\n  sudo onbeat tune apply --cpus 2-3 \
        --confirm-within 60s\n  sudo onbeat tune apply vmstat-interval=120\n  sudo onbeat tune undo")]
pub struct Args {
    #[command(subcommand)]
    command: TuneCommand,
}

#[derive(clap::Subcommand)]
enum TuneCommand {
    Plan(plan::Args),
    Apply(apply::Args),
    Confirm(confirm::Args),
    Status(status::Args),
    Undo(undo::Args),
    Export(export::Args),
    Import(import::Args),
    #[command(hide = true)]
    Hold(hold::Args),
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    match &args.command {
        TuneCommand::Plan(args) => plan::run(args, environment),
        TuneCommand::Apply(args) => apply::run(args, environment),
        TuneCommand::Confirm(args) => confirm::run(args, environment),
        TuneCommand::Status(args) => status::run(args, environment),
        TuneCommand::Undo(args) => undo::run(args, environment),
        TuneCommand::Export(args) => export::run(args, environment),
        TuneCommand::Import(args) => import::run(args, environment),
        TuneCommand::Hold(args) => hold::run(args),
    }
}
