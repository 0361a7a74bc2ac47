//! More processes for a load: copies of its worker.

#![allow(unsafe_code)]

use std::convert::Infallible;
use std::io;

use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, waitpid};

/// Starts a process that does this until it is killed, which happens when its parent ends.
///
/// # Errors
/// In a process of several threads: in the copy the others do not go on, and one of them may hold
/// a lock.
pub fn fork_task(task: impl FnOnce() -> io::Result<Infallible>) -> io::Result<()> {
    let parent = rustix::process::getpid();
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    // SAFETY: this process has one thread, so the copy is as complete as the original.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let followed = set_parent_process_death_signal(Some(Signal::KILL));
            // The parent may have ended before it was asked for.
            let code = match followed.is_ok() && rustix::process::getppid() == Some(parent) {
                true => i32::from(task().is_err()),
                false => 1,
            };
            // SAFETY: it ends the process at once, without what the parent had registered for its
            // own end.
            unsafe { libc::_exit(code) }
        }
        _ => Ok(()),
    }
}

/// Starts a process that ends at once, and waits for it.
pub fn fork_and_wait() -> io::Result<()> {
    // SAFETY: as above; the copy calls nothing but _exit.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: as above.
        0 => unsafe { libc::_exit(0) },
        pid => waitpid(Pid::from_raw(pid), WaitOptions::empty()).map(drop).map_err(io::Error::from),
    }
}
