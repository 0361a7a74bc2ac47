//! User's script that switches something on or off: called with one word, without a shell, in a
//! separate process group, for a limited time; no process that it starts outlives it.

#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use model::units::Nanos;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, set_parent_process_death_signal};

use crate::children::{keep_in_sight, let_go, number, own_children, processes, reaped};
use crate::clock;
use crate::script_output::ScriptOutput;

/// Polling interval while it runs.
const PERIOD: Nanos = Nanos(10_000_000);

/// Attempts to read an empty environment of a running process, and the interval between them.
const TRIES: usize = 8;
const SOON: Nanos = Nanos(1_000_000);

/// Time for remaining processes to end on their own.
const GRACE: Nanos = Nanos(200_000_000);

/// Time for killed processes to disappear.
const PATIENCE: Nanos = Nanos(2_000_000_000);

/// Environment variable that marks the processes of a script.
const MARK: &str = "ONBEAT_SCRIPT";

/// Absolute path of the script.
#[derive(Clone, Debug)]
pub struct SwitchScript(PathBuf);

/// End of a call. The processes that it started have ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptEnd {
    Done,
    /// It failed with this exit code, none after a signal, and this last line of output.
    Failed {
        code: Option<i32>,
        said: String,
    },
    /// It was killed at its time limit.
    TimedOut,
    /// It was killed because a stop was requested.
    Stopped,
    /// It ended and left this many processes, which were killed.
    Left(usize),
}

impl SwitchScript {
    /// Opens a script.
    /// Fails if there is no such file, or it is not executable.
    pub fn open(path: &Path) -> io::Result<SwitchScript> {
        let whole = fs::canonicalize(path)?;
        let found = fs::metadata(&whole)?;
        if found.is_file() && found.permissions().mode() & 0o111 != 0 {
            Ok(SwitchScript(whole))
        } else {
            Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not an executable file"))
        }
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Calls it with a word, and waits until the time limit or until `is_stopped`, which is called
    /// repeatedly, returns true. New children of this process count as the script's, so no other
    /// thread may start any. Its environment has `mark`, by which [`end_marked`] finds its
    /// processes if this one is killed.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn call(
        &self,
        word: &str,
        at_most: Nanos,
        mark: &Path,
        is_stopped: &dyn Fn() -> bool,
    ) -> io::Result<ScriptEnd> {
        keep_in_sight()?;
        let ended = self.call_and_clear(word, at_most, mark, is_stopped);
        let_go();
        ended
    }

    fn call_and_clear(
        &self,
        word: &str,
        at_most: Nanos,
        mark: &Path,
        is_stopped: &dyn Fn() -> bool,
    ) -> io::Result<ScriptEnd> {
        let before = own_children();
        let (mut said, [out, errors]) = ScriptOutput::open()?;
        let mut command = Command::new(&self.0);
        command.arg(word).stdin(Stdio::null()).stdout(out).stderr(errors);
        command.process_group(0).env(MARK, mark);
        // SAFETY: between fork and exec it makes two system calls, and allocates nothing.
        unsafe {
            command.pre_exec(|| {
                crate::rt::clear_signal_mask();
                Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
            });
        }
        let mut child = command.spawn()?;
        let until = Nanos(clock::monotonic().0.saturating_add(at_most.0));
        let status = loop {
            said.drain();
            if let Some(status) = child.try_wait()? {
                break Ok(status);
            }
            let is_over = clock::monotonic() >= until;
            if is_over || is_stopped() {
                kill_group(&child);
                child.wait()?;
                break Err(if is_over { ScriptEnd::TimedOut } else { ScriptEnd::Stopped });
            }
            clock::sleep_for(PERIOD);
        };
        let left = left_by(&child, &before, &mut said);
        Ok(match status {
            Err(killed) => killed,
            Ok(status) if !status.success() => {
                ScriptEnd::Failed { code: status.code(), said: said.last_line() }
            }
            Ok(_) if left > 0 => ScriptEnd::Left(left),
            Ok(_) => ScriptEnd::Done,
        })
    }
}

/// Kills the processes of interrupted calls with this mark, and waits until they have ended. A
/// process group would not do: its number may be reused, and processes may leave it.
pub fn end_marked(mark: &Path) {
    let entry = [MARK.as_bytes(), b"=", mark.as_os_str().as_bytes()].concat();
    let has_mark = |pid: &u32| environment(*pid).split(|byte| *byte == 0).any(|word| word == entry);
    let until = Nanos(clock::monotonic().0.saturating_add(PATIENCE.0));
    loop {
        let left: Vec<Pid> = processes().filter(has_mark).filter_map(number).collect();
        for pid in &left {
            let _ = kill_process(*pid, Signal::KILL);
        }
        // A process that forks is found in the next pass.
        if left.is_empty() || clock::monotonic() > until {
            return;
        }
        clock::sleep_for(PERIOD);
    }
}

/// Environment of a process; empty for a kernel thread or a process that has ended.
///
/// During execve(2) it reads as empty, and so do the arguments (`environ_read` and `get_mm_cmdline`
/// in fs/proc/base.c): this waits for its end. With arguments it is read a few times, because
/// execve(2) may have begun between the two reads.
fn environment(pid: u32) -> Vec<u8> {
    let of = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let until = Nanos(clock::monotonic().0.saturating_add(PATIENCE.0));
    let mut tries = 0;
    while tries < TRIES && clock::monotonic() < until {
        let text = of("environ");
        let has_program = fs::read_link(format!("/proc/{pid}/exe")).is_ok();
        if !text.is_empty() || !has_program {
            return text;
        }
        tries += usize::from(!of("cmdline").is_empty());
        clock::sleep_for(SOON);
    }
    Vec::new()
}

/// Kills the remaining processes of a script that has ended, and returns their number, without
/// those that end within [`GRACE`].
fn left_by(child: &Child, before: &BTreeSet<u32>, said: &mut ScriptOutput) -> usize {
    let begun = clock::monotonic();
    let mut left: BTreeSet<u32> = BTreeSet::new();
    loop {
        said.drain();
        let now = clock::monotonic();
        let alive: Vec<u32> =
            own_children().difference(before).copied().filter(|pid| !reaped(*pid)).collect();
        if alive.is_empty() || now > begun + PATIENCE {
            return left.len();
        }
        if now > begun + GRACE {
            left.extend(&alive);
            kill_group(child);
            for pid in alive.iter().filter_map(|pid| number(*pid)) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        clock::sleep_for(PERIOD);
    }
}

fn kill_group(child: &Child) {
    if let Some(group) = number(child.id()) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}
