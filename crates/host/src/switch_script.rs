//! A program of the user's that switches something on or off: called with one word, never through a
//! shell, in a process group of its own, for a limited time; nothing that it starts outlives it.

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

/// How often it is looked at.
const PERIOD: Nanos = Nanos(10_000_000);

/// How often, and how soon again, a process is asked that shows no environment.
const TRIES: usize = 8;
const SOON: Nanos = Nanos(1_000_000);

/// What ends with it may take so long to be gone.
const GRACE: Nanos = Nanos(200_000_000);

/// What was killed may take so long to be gone.
const PATIENCE: Nanos = Nanos(2_000_000_000);

/// The variable of a script's environment by which what it started is known.
const MARK: &str = "ONBEAT_SCRIPT";

/// The program's file.
#[derive(Clone, Debug)]
pub struct SwitchScript(PathBuf);

/// How a call ended. Whatever it started is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptEnd {
    Done,
    /// With an exit code other than 0, none where a signal ended it; and its last line.
    Failed {
        code: Option<i32>,
        said: String,
    },
    /// It was killed when its time was over.
    TimedOut,
    /// It was killed because a stop was wanted.
    Stopped,
    /// It ended and left so many processes, which were killed.
    Left(usize),
}

impl SwitchScript {
    /// # Errors
    /// There is no such file, or it may not be executed.
    pub fn open(path: &Path) -> io::Result<SwitchScript> {
        let whole = fs::canonicalize(path)?;
        let found = fs::metadata(&whole)?;
        match found.is_file() && found.permissions().mode() & 0o111 != 0 {
            true => Ok(SwitchScript(whole)),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no executable file")),
        }
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Calls it with this word, and waits at most this long, or until `is_stopped` says so, which
    /// is asked over and over. Children that appear meanwhile are taken for the script's: no other
    /// thread may start any. Its environment has `mark`, by which [`end_marked`] knows what is left
    /// of it if this process is killed.
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

/// Kills what is left of the calls with this mark, whose caller was killed, and waits until it is
/// gone. A process group would not do: its number may be another's by now, and one may leave it.
pub fn end_marked(mark: &Path) {
    let entry = [MARK.as_bytes(), b"=", mark.as_os_str().as_bytes()].concat();
    let has_mark = |pid: &u32| environment(*pid).split(|byte| *byte == 0).any(|word| word == entry);
    let until = Nanos(clock::monotonic().0.saturating_add(PATIENCE.0));
    loop {
        let left: Vec<Pid> = processes().filter(has_mark).filter_map(number).collect();
        for pid in &left {
            let _ = kill_process(*pid, Signal::KILL);
        }
        // One that forks is found the next time.
        if left.is_empty() || clock::monotonic() > until {
            return;
        }
        clock::sleep_for(PERIOD);
    }
}

/// The environment of a process; none of a thread of the kernel, and of one that ended.
///
/// During execve(2) a process shows none either, nor arguments (`environ_read` and
/// `get_mm_cmdline` in fs/proc/base.c): it is waited for. With arguments it is asked a few times,
/// because it may have begun another program between two questions.
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

/// Kills what a script that has ended left, and what that had started; how many there were. What
/// was ending by itself does not count.
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
