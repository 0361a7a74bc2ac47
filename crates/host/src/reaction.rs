//! Reactions to a late wake-up that the user requested: starting a program, sending a signal,
//! stopping the machine's trace. None of them uses a shell.

#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};

pub use rustix::process::Signal;
use rustix::process::{
    Pid, PidfdFlags, kill_process, pidfd_open, pidfd_send_signal, set_parent_process_death_signal, setsid,
    test_kill_process,
};

use crate::children::{has_ended, live_in, number, processes, session, start_time};
use crate::clock;
use model::units::Nanos;

/// Time for programs to end after their starter, enough to write or send a message.
const PATIENCE: Nanos = Nanos(2_000_000_000);
/// Time for programs to end after SIGTERM.
const LAST: Nanos = Nanos(500_000_000);
/// Polling interval for their end.
const PERIOD: Nanos = Nanos(20_000_000);

/// Switch of the machine's tracer, not of an instance of onbeat's.
const TRACERS: [&str; 2] = ["/sys/kernel/tracing/tracing_on", "/sys/kernel/debug/tracing/tracing_on"];

/// Environment variable by which processes left by a program are found in any session.
const MARK: &str = "ONBEAT_STARTED_BY";

/// Started programs, each in a new session, and reaped only when the session has no other process:
/// until then its number cannot be reused.
#[derive(Debug, Default)]
pub struct StartedPrograms {
    programs: Vec<(Child, String)>,
    /// Programs that failed since the last query, with their status; none for those that were
    /// killed.
    failed: Vec<(String, Option<ExitStatus>)>,
    /// Value of [`MARK`]; `""` before the first start.
    mark: String,
    /// Start time of the first program, in kernel ticks: older processes are ignored.
    since: u64,
    /// True after signals were sent to the remaining processes.
    ending: bool,
}

impl StartedPrograms {
    /// Starts a program with its arguments; `variables` are added to the environment. It runs
    /// concurrently with no signal blocked, and its output goes to standard error, because standard
    /// output may be a document. It ends when this value is dropped or the calling thread ends, and
    /// so do its descendants, unless they clear their environment and leave the session.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&mut self, words: &[String], variables: &[(&str, String)]) -> io::Result<()> {
        self.reap();
        let Some((program, arguments)) = words.split_first() else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(io::stderr());
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        if self.mark.is_empty() {
            self.mark = format!("{}.{}", std::process::id(), clock::monotonic().0);
        }
        command.env(MARK, &self.mark);
        // SAFETY: between fork and exec it makes four system calls, and allocates nothing.
        unsafe {
            command.pre_exec(|| {
                // Blocked and ignored signals stay so in an executed program (execve(2)).
                crate::rt::clear_signal_mask();
                libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
                setsid()?;
                Ok(set_parent_process_death_signal(Some(Signal::TERM))?)
            });
        }
        let child = command.spawn()?;
        if self.since == 0 {
            self.since = start_time(child.id()).unwrap_or(0);
        }
        self.programs.push((child, program.clone()));
        Ok(())
    }

    /// Programs that failed since the last call, with their status; none for one that was killed.
    pub fn take_failed(&mut self) -> Vec<(String, Option<ExitStatus>)> {
        self.reap();
        std::mem::take(&mut self.failed)
    }

    /// Ends running programs: waits a moment for those nearly done, then sends TERM, then KILL.
    pub fn end(&mut self) {
        let left = self.left_after(PATIENCE);
        self.ending = true;
        self.signal(&left, Signal::TERM);
        // The second pass finds processes forked during the first.
        for _ in 0..2 {
            let left = self.left_after(LAST);
            self.signal(&left, Signal::KILL);
        }
        self.left_after(LAST);
        (self.mark, self.since, self.ending) = (String::new(), 0, false);
    }

    /// Signals remaining processes; each is verified again after its pidfd is open.
    fn signal(&self, left: &BTreeSet<u32>, signal: Signal) {
        let sessions: BTreeSet<u32> = self.programs.iter().map(|(child, _)| child.id()).collect();
        for pid in left {
            let Some(process) = number(*pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok()) else {
                continue;
            };
            if self.has_mark(*pid) || session(*pid).is_some_and(|session| sessions.contains(&session)) {
                let _ = pidfd_send_signal(&process, signal);
            }
        }
    }

    /// Reaps programs that have ended and left no processes; returns the processes of the others.
    fn reap(&mut self) -> BTreeSet<u32> {
        if self.programs.is_empty() {
            return BTreeSet::new();
        }
        let live = live_in(&self.programs.iter().map(|(child, _)| child.id()).collect());
        let (failed, ending) = (&mut self.failed, self.ending);
        self.programs.retain_mut(|(child, program)| {
            if live.contains_key(&child.id()) {
                return true;
            }
            let ended = child.try_wait();
            if let Ok(Some(status)) = ended
                && (ending || !status.success())
            {
                failed.push((program.clone(), (!ending).then_some(status)));
            }
            matches!(ended, Ok(None))
        });
        let programs = self.programs.iter().map(|(child, _)| child.id());
        live.values().flatten().copied().chain(programs).collect()
    }

    /// Processes with our mark, in any session.
    fn marked(&self) -> BTreeSet<u32> {
        if self.mark.is_empty() {
            return BTreeSet::new();
        }
        processes().filter(|pid| self.has_mark(*pid) && !has_ended(*pid)).collect()
    }

    /// True if a process has our mark. The environment of older processes is not read: it would
    /// take their mmap lock, which may be that of the watched program.
    fn has_mark(&self, pid: u32) -> bool {
        if self.mark.is_empty() || start_time(pid).is_none_or(|began| began < self.since) {
            return false;
        }
        let entry = format!("{MARK}={}", self.mark);
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|word| word == entry.as_bytes())
    }

    /// Processes that have not ended after a time.
    fn left_after(&mut self, patience: Nanos) -> BTreeSet<u32> {
        let until = clock::monotonic() + patience;
        loop {
            let mut left = self.reap();
            left.extend(self.marked());
            if left.is_empty() || clock::monotonic() >= until {
                return left;
            }
            clock::sleep_for(PERIOD);
        }
    }
}

impl Drop for StartedPrograms {
    fn drop(&mut self) {
        self.end();
    }
}

/// Signal of a name, with or without `SIG`.
pub fn signal_of(name: &str) -> Option<Signal> {
    let bare = name.strip_prefix("SIG").unwrap_or(name);
    let named = [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("ABRT", Signal::ABORT),
        ("KILL", Signal::KILL),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("ALRM", Signal::ALARM),
        ("TERM", Signal::TERM),
        ("CONT", Signal::CONT),
        ("STOP", Signal::STOP),
    ];
    named.into_iter().find(|(known, _)| *known == bare).map(|(_, signal)| signal)
}

/// Sends a signal.
///
/// # Errors
/// No such process, or not permitted.
pub fn send_signal(signal: Signal, pid: i32) -> io::Result<()> {
    Ok(kill_process(one_process(pid)?, signal)?)
}

/// Checks that a signal may be sent, without sending one.
///
/// # Errors
/// No such process, or not permitted.
pub fn may_signal(pid: i32) -> io::Result<()> {
    Ok(test_kill_process(one_process(pid)?)?)
}

/// Refuses 0 and negative numbers, which are groups of processes (kill(2)).
fn one_process(pid: i32) -> io::Result<Pid> {
    let one = if pid > 0 { Pid::from_raw(pid) } else { None };
    one.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
}

/// Stops the machine's own tracer, so that its buffer keeps the events so far; instances continue.
///
/// # Errors
/// There is no tracefs, or it cannot be written.
pub fn stop_tracer() -> io::Result<()> {
    let open =
        |path| OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC).open(path);
    let mut file = open(TRACERS[0]).or_else(|_| open(TRACERS[1]))?;
    file.write_all(b"0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::children::has_ended;

    #[test]
    fn a_program_has_its_words_and_its_variables_and_is_collected() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let script = format!("printf '%s %s' \"$1\" \"$LATE\" >{}.tmp; mv {0}.tmp {0}", told.display());
        let words = ["sh", "-c", &script, "sh", "a b; c"].map(str::to_owned);
        let mut programs = StartedPrograms::default();
        programs.start(&words, &[("LATE", "7 us".to_owned())]).unwrap();
        while !told.exists() {
            std::thread::yield_now();
        }
        assert_eq!(std::fs::read_to_string(&told).unwrap(), "a b; c 7 us");
        while !programs.reap().is_empty() {
            std::thread::yield_now();
        }
        assert!(programs.start(&["no-such-program".to_owned()], &[]).is_err());
        assert!(programs.start(&[], &[]).is_err());
    }

    #[test]
    fn a_program_has_no_signal_blocked_and_ends_with_its_starter() {
        let folder = tempfile::tempdir().unwrap();
        let [mask, stopped] = ["mask", "stopped"].map(|name| folder.path().join(name));
        let script = format!(
            "trap 'echo > {stopped}; exit' TERM; grep -E 'Sig(Blk|Ign)' /proc/self/status >{mask}.tmp; \
             mv {mask}.tmp {mask}; while :; do sleep 0.01; done",
            mask = mask.display(),
            stopped = stopped.display()
        );
        let words = ["sh", "-c", &script].map(str::to_owned);
        std::thread::spawn(move || {
            crate::rt::block_signals().unwrap();
            crate::rt::ignore_file_size_signal();
            let mut programs = StartedPrograms::default();
            programs.start(&words, &[]).unwrap();
            while !mask.exists() {
                std::thread::yield_now();
            }
            let told = std::fs::read_to_string(&mask).unwrap();
            let none = "0".repeat(16);
            assert!(told.contains(&format!("SigBlk:\t{none}")), "{told}");
            let ignored = told.lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
            let ignored = u64::from_str_radix(ignored, 16).unwrap();
            assert_eq!(ignored >> (libc::SIGXFSZ - 1) & 1, 0, "{told}");
            drop(programs);
            assert!(stopped.exists(), "it was asked to end");
        })
        .join()
        .unwrap();
    }

    #[test]
    fn processes_that_a_program_leaves_behind_end_with_its_starter() {
        let folder = tempfile::tempdir().unwrap();
        let pids = folder.path().join("pids");
        // The second has a separate process group, the third ignores TERM, and the fourth has a
        // separate session.
        let script = format!(
            "sleep 1000 & a=$!; set -m; sleep 1000 & b=$!; (trap '' TERM; sleep 1000) & c=$!; \
             setsid sh -c 'echo $$ >{0}.own; exec sleep 1000' & \
             while [ ! -s {0}.own ]; do sleep 0.01; done; \
             echo $a $b $c $(cat {0}.own) >{0}.tmp; mv {0}.tmp {0}; exit 3",
            pids.display()
        );
        let mut programs = StartedPrograms::default();
        programs.start(&["sh", "-c", &script].map(str::to_owned), &[]).unwrap();
        while !pids.exists() {
            std::thread::yield_now();
        }
        let left = std::fs::read_to_string(&pids).unwrap();
        let left: Vec<i32> = left.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
        assert!(left.len() == 4 && left.iter().all(|pid| may_signal(*pid).is_ok()), "{left:?}");
        programs.end();
        assert!(left.iter().all(|pid| has_ended(*pid as u32)), "{left:?}");
        let [(program, status)] = programs.take_failed().try_into().unwrap();
        assert_eq!((program.as_str(), status), ("sh", None), "it was ended with what it had left");
    }

    #[test]
    fn signals_have_names_and_processes_numbers() {
        assert_eq!((signal_of("SIGUSR1"), signal_of("USR1")), (Some(Signal::USR1), Some(Signal::USR1)));
        assert_eq!((signal_of("usr1"), signal_of("NONE")), (None, None));
        for group_or_all in [0, -1, i32::MIN] {
            assert!(send_signal(Signal::CONT, group_or_all).is_err(), "{group_or_all}");
        }
        assert!(send_signal(Signal::CONT, std::process::id() as i32).is_ok());
    }
}
