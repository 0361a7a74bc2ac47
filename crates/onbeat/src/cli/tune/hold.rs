//! `onbeat tune hold`: background processes of `tune apply`: one undoes an entry at its time, one
//! holds a device open.
//!
//! `--for` and `--confirm-within` start the first before the first change, and it continues when
//! they and their terminal have ended.

use std::path::Path;

use crate::cli::journal::{FOLDER, boot_time};
use host::keeper::keep_alive;
use host::settings::{Folder, LiveKernel, LockOutcome, hold, take_lock};
use host::{clock, process_start, rt};
use model::error::{Exit, Failure, Result};
use model::units::{CpuSet, Nanos};
use study::tuning::boot_id;
use tune::expiry::{Expired, Waiting, expire, waiting};

/// Undo an entry when its time is over, or hold a device (started by `tune apply`)
#[derive(clap::Args)]
pub struct Args {
    /// Entry
    #[arg(value_name = "ID", required_unless_present = "device")]
    id: Option<String>,
    /// Hold this device open instead
    #[arg(long, value_name = "NAME", requires = "value", conflicts_with = "id")]
    device: Option<String>,
    /// Value to write to the device
    #[arg(long, value_name = "VALUE", requires = "device")]
    value: Option<String>,
}

/// Interval of the checks of the journal for a confirmation.
const PERIOD: Nanos = Nanos(500_000_000);

/// Interval of the attempts to take the lock at the due time.
const RETRY: Nanos = Nanos(50_000_000);

pub fn run(args: &Args) -> Result<Exit> {
    match (&args.device, &args.value, &args.id) {
        (Some(device), Some(value), _) => hold(device, value).map(|()| Exit::Ok).map_err(|error| {
            Failure::of_call("cannot hold the device", &error, Exit::NotSupported, "run as root")
        }),
        (_, _, Some(id)) => undo_when_due(id),
        _ => Err(Failure::usage("give an entry, or a device and its value")),
    }
}

fn undo_when_due(id: &str) -> Result<Exit> {
    let failed = |error: std::io::Error| {
        Failure::of_call("cannot use the journal of changes", &error, Exit::Internal, "run as root")
    };
    let mut folder = Folder::open(Path::new(FOLDER)).map_err(failed)?;
    let boot = boot_id()?;
    if let Waiting::Until { cpus, .. } | Waiting::Process { cpus, .. } = waiting(&folder, id, &boot)? {
        leave_alone(&cpus);
    }
    keep_alive().map_err(failed)?;
    loop {
        match waiting(&folder, id, &boot)? {
            Waiting::Over => return Ok(Exit::Ok),
            Waiting::Until { boot_ns, .. } if boot_ns > boot_time().0 => {
                clock::sleep_for(Nanos(PERIOD.0.min((boot_ns - boot_time().0).max(1))));
            }
            Waiting::Process { pid, start, .. } if process_start(pid) == Some(start) => {
                clock::sleep_for(PERIOD);
            }
            // The owner of the lock may be about to confirm or undo: the journal shows the result.
            Waiting::Until { .. } | Waiting::Process { .. } => match take_lock(&folder).map_err(failed)? {
                LockOutcome::Held(_) => clock::sleep_for(RETRY),
                LockOutcome::Locked(lock) => {
                    match expire(&mut LiveKernel::default(), &mut folder, id, &boot)? {
                        Expired::Done => return Ok(Exit::Ok),
                        Expired::Waits => {
                            drop(lock);
                            clock::sleep_for(PERIOD);
                        }
                    }
                }
            },
        }
    }
}

/// Moves to a CPU that is not audited, at a real-time priority: a change that keeps the machine
/// busy has to be undone as well.
fn leave_alone(cpus: &CpuSet) {
    let Ok(all) = rt::affinity() else { return };
    let others = all.without(cpus);
    // If neither is permitted, the entry is undone late, but it is undone.
    if !others.is_empty() {
        let _ = rt::pin(&others);
    }
    let _ = rt::set_policy(model::vocabulary::Policy::Fifo, 1);
}
