//! Further processes of a load: copies of its worker, which watches them.

#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, set_parent_process_death_signal, waitpid};

use super::{Counter, say_refused};

/// Starts a process that runs `task` once the loads may work, until it is killed, at the latest
/// when its parent ends.
///
/// # Errors
/// EBUSY in a process with several threads: the copy lacks the others, which may hold a lock.
pub fn fork_task(counter: Counter, task: impl FnOnce() -> io::Result<Infallible>) -> io::Result<()> {
    let parent = rustix::process::getpid();
    if std::fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    // SAFETY: this process has one thread, so the copy is as complete as the original.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            let followed = set_parent_process_death_signal(Some(Signal::KILL));
            // The parent may have ended before the request.
            if followed.is_ok() && rustix::process::getppid() == Some(parent) {
                counter.wait_until_open();
                let Err(error) = task();
                say_refused(&error);
            }
            // SAFETY: it ends the process at once, without the parent's exit handlers.
            unsafe { libc::_exit(1) }
        }
        _ => Ok(()),
    }
}

/// Watches the `count` child processes of this one, and publishes the number of stopped ones;
/// returns when one of them has ended. It sleeps until the kernel reports a change (WUNTRACED and
/// WCONTINUED, waitpid(2)).
pub fn watch_tasks(count: usize, counter: Counter) -> io::Result<Infallible> {
    let mut stopped = BTreeSet::new();
    loop {
        counter.tell_tasks(count as u32, stopped.len() as u32);
        let Some((pid, status)) = wait(None)? else { continue };
        match () {
            () if status.stopped() => stopped.insert(pid.as_raw_pid()),
            () if status.continued() => stopped.remove(&pid.as_raw_pid()),
            () => return Err(io::Error::other("one of its processes has ended")),
        };
    }
}

/// Starts a process that ends at once, and waits for it; publishes when it is stopped.
pub fn fork_and_wait(counter: Counter) -> io::Result<()> {
    // SAFETY: as above; the copy calls nothing but _exit.
    let pid = match unsafe { libc::fork() } {
        -1 => return Err(io::Error::last_os_error()),
        // SAFETY: as above.
        0 => unsafe { libc::_exit(0) },
        pid => Pid::from_raw(pid),
    };
    loop {
        let status = wait(pid)?.map(|(_, status)| status);
        let stopped = status.is_some_and(WaitStatus::stopped);
        counter.tell_tasks(1, u32::from(stopped));
        if status.is_some_and(|status| status.exited() || status.signaled()) {
            return Ok(());
        }
    }
}

/// Next state change of a child, or of any child.
fn wait(pid: Option<Pid>) -> io::Result<Option<(Pid, WaitStatus)>> {
    match waitpid(pid, WaitOptions::UNTRACED | WaitOptions::CONTINUED) {
        Err(rustix::io::Errno::INTR) => Ok(None),
        waited => Ok(waited?),
    }
}
