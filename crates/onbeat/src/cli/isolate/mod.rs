//! `onbeat isolate`: isolation of CPUs on a running machine.

mod create;
mod list;
mod moving;
mod run;
mod undo;

use super::Environment;
use super::journal::LockedJournal;
use super::outputs::remark;
use ::tune::isolate::list::current;
use ::tune::undo::{entries, undo_abandoned};
use host::settings::EntryRecords;
use model::error::{Exit, Failure, Result};
use model::units::named_cpus;
use study::isolating::isolation_of;
use study::tuning::boot_id;

/// Isolate CPUs on the running machine, place processes there, and undo it
///
/// An isolated cpuset partition takes the CPUs out of load balancing and moves all threads off
/// them; interrupts, kernel threads, timers and other work follow step by step. All changes go
/// through the journal of `onbeat tune` and last until the next boot at most. `onbeat isolate undo`
/// reverts them: the processes inside return to their previous groups, and none is killed.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        sudo onbeat isolate create 2-3\n  \
        sudo onbeat isolate run -c 3 -p 80 -- ./control\n  \
        sudo onbeat isolate list\n  \
        sudo onbeat isolate undo")]
pub struct Args {
    #[command(subcommand)]
    command: IsolateCommand,
}

#[derive(clap::Subcommand)]
enum IsolateCommand {
    Create(Box<create::Args>),
    List(list::Args),
    Run(run::Args),
    Move(moving::Args),
    Undo(undo::Args),
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    match &args.command {
        IsolateCommand::Create(args) => create::run(args, environment),
        IsolateCommand::List(args) => list::run(args, environment),
        IsolateCommand::Run(args) => run::run(args),
        IsolateCommand::Move(args) => moving::run(args),
        IsolateCommand::Undo(args) => undo::run(args, environment),
    }
}

/// Isolation of this boot in force, according to the journal; first undoes changes of killed
/// commands.
fn isolation(journal: &mut LockedJournal) -> Result<EntryRecords> {
    let boot = boot_id()?;
    let abandoned = undo_abandoned(&mut journal.kernel, &mut *journal.store, &boot)?;
    if !abandoned.is_empty() {
        remark(&format!("onbeat: undid entry {} of a killed command", abandoned.join(", ")));
    }
    current(&entries(&*journal.store)?, &boot)
        .cloned()
        .ok_or_else(|| Failure::usage("no CPU is isolated: run `onbeat isolate create CPUS` first"))
}

/// Refuses to place a process in a partition that is not in force.
fn require_in_force(entry: &EntryRecords) -> Result<model::isolation::IsolationDocument> {
    let document = isolation_of(study::audit::MachineSource::Live, Some(entry))?;
    match document.partition {
        model::isolation::PartitionState::Isolated => Ok(document),
        _ => Err(Failure::not_supported(format!(
            "the partition of {} is not in force ({}): run `onbeat isolate undo`, then create it again",
            named_cpus(&document.cpus),
            document.reason
        ))),
    }
}
