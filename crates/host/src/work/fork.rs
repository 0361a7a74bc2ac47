//! More processes for a load: copies of its worker, which watches them.

#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, set_parent_process_death_signal, waitpid};

use super::{Counter, say_refused};

/// Starts a process that does this, from when on the loads are to work until it is killed, which
/// happens when its parent ends.
///
/// # Errors
/// In a process of several threads: in the copy the others do not go on, and one of them may hold
/// a lock.
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
            // The parent may have ended before it was asked for.
            if followed.is_ok() && rustix::process::getppid() == Some(parent) {
                counter.wait_until_open();
                let Err(error) = task();
                say_refused(&error);
            }
            // SAFETY: it ends the process at once, without what the parent had registered for its
            // own end.
            unsafe { libc::_exit(1) }
        }
        _ => Ok(()),
    }
}

/// Watches the processes that this one has started, so many, and tells how many of them are
/// stopped; returns when one of them has ended. It sleeps until the kernel has something to say of
/// them (WUNTRACED and WCONTINUED, waitpid(2)).
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

/// Starts a process that ends at once, and waits for it; tells of it while it is stopped.
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

/// What the kernel says next of a child, or of any.
fn wait(pid: Option<Pid>) -> io::Result<Option<(Pid, WaitStatus)>> {
    match waitpid(pid, WaitOptions::UNTRACED | WaitOptions::CONTINUED) {
        Err(rustix::io::Errno::INTR) => Ok(None),
        waited => Ok(waited?),
    }
}
