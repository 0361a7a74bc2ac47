//! Process of a load, from the side of its starter and its own.
//!
//! It executes this program again, so that it inherits no memory, threads and locks of the starter;
//! its standard input is the page of counters, and on standard output it prints one line: that it
//! has begun, or the reason for a failure.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use model::units::{CpuSet, Nanos};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    DumpableBehavior, Pid, Signal, kill_process_group, set_dumpable_behavior, set_parent_process_death_signal,
};

use super::{Counters, LoadGroup};
use crate::clock;
use crate::rt;

const READY: &str = "ready";

/// Limit of a worker's output that is read, in bytes.
const LIMIT: usize = 4096;

/// Started process.
pub struct LoadProcess {
    child: Child,
    says: OwnedFd,
    said: String,
}

impl LoadProcess {
    /// Starts this program's executable with these arguments. It leads a process group, so that a
    /// terminal's Ctrl-C does not reach it.
    pub fn start<S: AsRef<OsStr>>(arguments: &[S], counters: &Counters) -> io::Result<LoadProcess> {
        let mut child = Command::new("/proc/self/exe")
            .args(arguments)
            .stdin(Stdio::from(counters.file()?))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        match child.stdout.take() {
            Some(says) => Ok(LoadProcess { child, says: says.into(), said: String::new() }),
            None => Err(io::Error::other("no pipe")),
        }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it has begun; fails with the reason that it prints, or if it ends silently. A
    /// program that replaced the worker is `silent`: it has closed its output.
    pub fn wait_until_ready(&mut self, until: Nanos, silent: bool) -> io::Result<()> {
        loop {
            let left = until.0 - clock::monotonic().0;
            if left <= 0 {
                return Err(io::Error::from_raw_os_error(libc::ETIMEDOUT));
            }
            let closed = self.listen(Nanos(left))?;
            match self.said.lines().next() {
                Some(READY) => return Ok(()),
                Some(line) if self.said.contains('\n') => return Err(error_of(line)),
                _ if closed && silent => return Ok(()),
                _ if closed => {
                    let status = self.child.wait()?;
                    return Err(io::Error::other(format!("it ended at once: {status}")));
                }
                _ => {}
            }
        }
    }

    /// Reason for its end, if it has ended.
    pub fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        let _ = self.listen(Nanos(0));
        // The first line: later ones may only report the end.
        let why = self.said.lines().find(|line| *line != READY);
        Some(why.map_or_else(|| status.to_string(), |line| error_of(line).to_string()))
    }

    /// Reads its output for a limited time; true if it has closed it.
    fn listen(&mut self, within: Nanos) -> io::Result<bool> {
        let wait = Timespec { tv_sec: within.0 / 1_000_000_000, tv_nsec: within.0 % 1_000_000_000 };
        if poll(&mut [PollFd::new(&self.says, PollFlags::IN)], Some(&wait))? == 0 {
            return Ok(false);
        }
        let mut buffer = [0; 512];
        let read = File::from(self.says.try_clone()?).read(&mut buffer)?;
        if self.said.len() < LIMIT {
            self.said.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        Ok(read == 0)
    }

    /// Kills it and its process group.
    pub fn kill(&mut self) {
        if let Some(group) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Settings of a worker before it works.
pub struct Joined<'a> {
    /// PID of the process that started it.
    pub starter: u32,
    pub room: &'a LoadGroup,
    pub cpus: &'a CpuSet,
    /// Name of the load, such as `mem`.
    pub name: &'a str,
}

/// Makes this process end with its starter, and moves it to its group and CPUs, without any
/// real-time priority, and as the first process to be killed when memory runs out (`oom_score_adj`,
/// Documentation/filesystems/proc.rst).
pub fn join(joined: &Joined) -> io::Result<()> {
    rt::clear_signal_mask();
    // File capabilities of this program make it unreadable to its own user: then not even the
    // starter may read /proc/PID/io (proc_pid_io(5), PR_SET_DUMPABLE(2const)).
    let _ = set_dumpable_behavior(DumpableBehavior::Dumpable);
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The starter may have ended before the request.
    if rustix::process::getppid().map(|pid| pid.as_raw_pid() as u32) != Some(joined.starter) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    if let Ok(name) = std::ffi::CString::new(format!("onbeat-{}", joined.name)) {
        let _ = rustix::thread::set_name(&name);
    }
    joined.room.enter()?;
    rt::leave_real_time()?;
    rt::pin(joined.cpus)?;
    // The kernel silently drops CPUs that are offline or not permitted.
    if rt::affinity()? != *joined.cpus {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // Without /proc it is selected by its size, like others.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    Ok(())
}

/// Notifies the starter that the work begins.
pub fn said_ready() -> io::Result<()> {
    say(READY)
}

/// Sends the starter the reason for a failure.
pub fn say_refused(why: &io::Error) {
    let _ = say(&words_of(why));
}

/// Error number and text; 0 for an error without a number.
fn words_of(why: &io::Error) -> String {
    format!("{} {why}", why.raw_os_error().unwrap_or(0)).replace('\n', " ")
}

fn error_of(line: &str) -> io::Error {
    match line.split_once(' ').map(|(number, words)| (number.parse::<i32>(), words)) {
        Some((Ok(number), _)) if number > 0 => io::Error::from_raw_os_error(number),
        Some((Ok(_), words)) => io::Error::other(words.to_owned()),
        _ => io::Error::other(line.to_owned()),
    }
}

/// Replaces this worker by a program with its standard streams on /dev/null; returns only on
/// failure.
pub fn become_program(program: &OsString, arguments: &[OsString]) -> io::Error {
    let alone = || -> io::Result<OwnedFd> {
        let says = rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?;
        let null = File::options().read(true).write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdin(&null)?;
        rustix::stdio::dup2_stdout(&null)?;
        Ok(says)
    };
    match alone() {
        Err(error) => error,
        Ok(says) => {
            let mut error = crate::replace_by(program, arguments);
            // Like shells: a folder of $PATH that may not be searched hides the missing program.
            if error.kind() == io::ErrorKind::PermissionDenied && is_nowhere(program) {
                error = io::Error::from_raw_os_error(libc::ENOENT);
            }
            // Standard output of the worker is closed by now.
            let _ = File::from(says).write_all(format!("{}\n", words_of(&error)).as_bytes());
            error
        }
    }
}

/// True if no folder of $PATH shows a file with that name.
fn is_nowhere(program: &OsStr) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    !Path::new(program).is_absolute()
        && Path::new(program).components().count() == 1
        && !std::env::split_paths(&folders).any(|folder| folder.join(program).symlink_metadata().is_ok())
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(format!("{line}\n").as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reaches_the_starter_as_it_was() {
        let full = error_of(&words_of(&io::Error::from_raw_os_error(libc::ENOSPC)));
        assert_eq!(full.raw_os_error(), Some(libc::ENOSPC));
        assert_eq!(error_of(&words_of(&io::Error::other("two\nlines"))).to_string(), "two lines");
        assert_eq!(error_of("nonsense").to_string(), "nonsense");
    }
}
