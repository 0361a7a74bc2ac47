//! `onbeat isolate move`: moves a running process to the isolated CPUs, or back.

use super::run::{is_inside, leave, make};
use super::{isolation, require_in_force};
use crate::cli::journal;
use ::tune::isolate::placing::{inner_group, place};
use host::settings::Kernel;
use model::error::{Exit, Failure, Result};
use model::setting::{Key, TaskSetting};
use study::isolating::{MovableProcess, movable_process};

/// Move a running process to the isolated CPUs, or back
///
/// All its threads are moved. Their CPUs and group are first recorded in the journal; `move PID
/// out` or `onbeat isolate undo` restores them.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  sudo onbeat isolate move 1234 in\n  sudo onbeat isolate move 1234 out")]
pub struct Args {
    /// Process to move
    #[arg(value_name = "PID")]
    pid: u32,
    /// To the isolated CPUs (in), or back (out)
    #[arg(value_name = "in|out", value_enum)]
    direction: Direction,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Direction {
    In,
    Out,
}

pub fn run(args: &Args) -> Result<Exit> {
    let mut journal = journal::lock_if_there("moving a process")?;
    let entry = isolation(&mut journal)?;
    let MovableProcess { pid, start, threads } = movable_process(args.pid)?;
    let key = Key::Task { tid: pid, start, what: TaskSetting::Group };
    let inside = is_inside(&journal.kernel.read(&key));
    match (args.direction, inside) {
        (Direction::In, true) => {
            let group = inner_group();
            return Err(Failure::usage(format!("process {pid} is already in the group {group}")));
        }
        (Direction::Out, false) => {
            let group = inner_group();
            let message = format!("process {pid} is not in the group {group}: nothing to move out");
            return Err(Failure::usage(message));
        }
        (Direction::In, false) => {
            require_in_force(&entry)?;
            let change = place(&journal.kernel, pid, start, &threads);
            make(&mut journal, &entry, &change, "cannot move it to the isolated CPUs")?;
        }
        (Direction::Out, true) => {
            let all = journal.kernel.processes_in(&inner_group());
            let process = all.into_iter().find(|process| (process.pid, process.start) == (pid, start));
            let process = process.ok_or_else(|| Failure::usage(format!("process {pid} has ended")))?;
            leave(&mut journal, &entry, &process)?;
        }
    }
    Ok(Exit::Ok)
}
