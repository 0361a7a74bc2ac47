//! Runs of this program in a separate process, which ends with its starter.

#![allow(unsafe_code)]

use std::fs::OpenOptions;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};

use rustix::io::write;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};

/// Limit of its messages that are read, in bytes.
const LIMIT: u64 = 64 << 10;

/// Started process, whose output is not shown.
pub struct OwnRun {
    child: Child,
    remarks: Option<ChildStderr>,
}

impl OwnRun {
    /// Starts this program's executable with these arguments. The kernel sends it SIGTERM when the
    /// calling thread ends, so that it ends in order and its results are written.
    pub fn start(arguments: &[String]) -> io::Result<OwnRun> {
        OwnRun::start_in(arguments, None)
    }

    /// Like [`OwnRun::start`], in the control group (version 2) of a folder from the start.
    pub fn start_in(arguments: &[String], group: Option<&Path>) -> io::Result<OwnRun> {
        let open = |group: &Path| OpenOptions::new().write(true).open(group.join("cgroup.procs"));
        let joined = group.map(open).transpose()?;
        let mut command = Command::new("/proc/self/exe");
        // The kernel clears the death signal if this program's file has capabilities: the run
        // requests it again, see `end_with`.
        command.arg(format!("--starter={}", std::process::id()));
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command.process_group(0);
        // SAFETY: between fork and exec it makes two system calls, and allocates nothing.
        unsafe {
            command.pre_exec(move || {
                if let Some(processes) = &joined {
                    // 0 stands for the writing process (cgroup-v2.rst).
                    write(processes, b"0")?;
                }
                Ok(set_parent_process_death_signal(Some(Signal::TERM))?)
            });
        }
        let mut child = command.spawn()?;
        let remarks = child.stderr.take();
        Ok(OwnRun { child, remarks })
    }

    /// Exit code, if it has ended; -1 if a signal ended it.
    pub fn ended(&mut self) -> io::Result<Option<i32>> {
        Ok(self.child.try_wait()?.map(|status| status.code().unwrap_or(-1)))
    }

    /// Sends it SIGTERM.
    pub fn stop(&self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Last line of its messages without the prefix; to be called after it has ended.
    pub fn last_words(&mut self) -> String {
        let mut said = Vec::new();
        if let Some(remarks) = self.remarks.take() {
            let _ = remarks.take(LIMIT).read_to_end(&mut said);
        }
        let said = String::from_utf8_lossy(&said).into_owned();
        said.lines().rev().find_map(|line| line.strip_prefix("onbeat: ")).unwrap_or_default().to_owned()
    }
}

/// Requests SIGTERM from the kernel when the starter ends: an exec of a file with capabilities
/// clears an earlier request (PR_SET_PDEATHSIG(2const)).
///
/// # Errors
/// ESRCH if the starter has ended already.
pub fn end_with(starter: u32) -> io::Result<()> {
    set_parent_process_death_signal(Some(Signal::TERM))?;
    if rustix::process::getppid().map(|pid| pid.as_raw_pid() as u32) == Some(starter) {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(libc::ESRCH))
    }
}
