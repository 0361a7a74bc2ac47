//! Process that removes the instance of one that was killed or has dropped its privileges: until
//! then its events would slow down every wake-up.

use std::io;

use super::{NotHere, Tracing};
use crate::capabilities;
use crate::clock;
use crate::keeper;
use crate::process::{ProcessId, process_start};
use model::units::Nanos;

/// Attempts at removing an instance, and the interval: its files are closed by then, except those
/// of a reader that is leaving the kernel.
const TRIES: usize = 50;
const BETWEEN: Nanos = Nanos(20_000_000);

/// Starts the keeper of this process's instance: `onbeat watch --keep PID/START`.
pub fn start_keeper() -> io::Result<()> {
    let pid = std::process::id();
    let start = process_start(pid).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    keeper::start(&["watch", "--keep", &format!("{pid}/{start}")])
}

/// Waits until a process has ended, and removes its instance; the main function of the keeper.
pub fn remove_after(owner: ProcessId) -> io::Result<()> {
    let tracing = Tracing::open().map_err(|why| match why {
        NotHere::NotPermitted(errno) | NotHere::Failed(errno) => io::Error::from_raw_os_error(errno),
        NotHere::NoTracefs | NotHere::NotMounted => io::Error::from(io::ErrorKind::NotFound),
    })?;
    // The directory may belong to another user's process.
    let _ = capabilities::keep_only(&[capabilities::DAC_OVERRIDE]);
    keeper::outlive(owner)?;
    for _ in 0..TRIES {
        tracing.remove_dead();
        if !tracing.has_instance_of(owner) {
            return Ok(());
        }
        clock::sleep_for(BETWEEN);
    }
    Err(io::Error::from_raw_os_error(libc::EBUSY))
}
