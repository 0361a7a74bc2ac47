//! Another program whose output is read here, for as long as it goes on. No shell sees its
//! arguments.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::Builder;
use std::time::Duration;

use model::units::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::clock;

/// A pipe takes as much without a reader (pipe(7)), so that writing it first cannot wait for ever.
const MOST_INPUT: usize = 32 << 10;
/// How much of what it says on standard error is kept.
const MOST_SAID: u64 = 16 << 10;
/// Between two looks whether it has ended, once it says nothing more.
const PERIOD: Nanos = Nanos(5_000_000);

/// The program; it is killed where it is dropped before its end.
pub struct PipedProgram {
    child: Child,
    output: PipedOutput,
    said: Receiver<String>,
}

/// What it prints.
struct PipedOutput {
    from: ChildStdout,
    /// How long it may print nothing.
    silence: Nanos,
    is_silent: bool,
}

impl Read for PipedOutput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let ns = self.silence.0;
        let wait = Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 };
        match poll(&mut [PollFd::new(&self.from, PollFlags::IN)], Some(&wait)) {
            Ok(0) => {
                self.is_silent = true;
                Err(io::ErrorKind::TimedOut.into())
            }
            Ok(_) => self.from.read(into),
            // Who reads tries again.
            Err(Errno::INTR) => Err(io::ErrorKind::Interrupted.into()),
            Err(error) => Err(error.into()),
        }
    }
}

impl PipedProgram {
    /// Starts a program, which is looked for in `$PATH`, and writes its input. A read of its output
    /// fails with [`io::ErrorKind::TimedOut`] where nothing comes for so long.
    ///
    /// # Errors
    /// There is none, it may not be executed, or the input is larger than a pipe.
    pub fn start(
        program: &str,
        arguments: &[&str],
        input: &[u8],
        silence: Nanos,
    ) -> io::Result<PipedProgram> {
        if input.len() > MOST_INPUT {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let (Some(from), Some(errors), Some(mut to)) =
            (child.stdout.take(), child.stderr.take(), child.stdin.take())
        else {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        };
        // Read meanwhile: a program that cannot say what is wrong would wait.
        let (says, said) = channel();
        Builder::new().name("said".to_owned()).spawn(move || {
            let (mut errors, mut text) = (errors, Vec::new());
            let _ = errors.by_ref().take(MOST_SAID).read_to_end(&mut text);
            let _ = io::copy(&mut errors, &mut io::sink());
            let _ = says.send(String::from_utf8_lossy(&text).into_owned());
        })?;
        // One that ended says why by its exit code.
        let _ = to.write_all(input);
        let output = PipedOutput { from, silence, is_silent: false };
        Ok(PipedProgram { child, output, said })
    }

    /// What it prints.
    pub fn output(&mut self) -> &mut impl Read {
        &mut self.output
    }

    /// Whether nothing came of it for too long.
    pub fn is_silent(&self) -> bool {
        self.output.is_silent
    }

    /// Waits for its end: its exit code, none where a signal ended it, and what it said on standard
    /// error. To be asked when its output was read to the end.
    ///
    /// # Errors
    /// It cannot be waited for, or it goes on for so long as it may print nothing
    /// ([`io::ErrorKind::TimedOut`]).
    pub fn end(mut self) -> io::Result<(Option<i32>, String)> {
        let status = self.wait()?;
        // What it started may go on, and hold its standard error.
        let patience = Duration::from_nanos(self.output.silence.0.max(0).unsigned_abs());
        let said = self.said.recv_timeout(patience).unwrap_or_default();
        Ok((status.code(), said))
    }

    fn wait(&mut self) -> io::Result<ExitStatus> {
        let end = clock::monotonic() + self.output.silence;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            if clock::monotonic() >= end {
                return Err(io::ErrorKind::TimedOut.into());
            }
            clock::sleep_for(PERIOD);
        }
    }
}

impl Drop for PipedProgram {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Nanos = Nanos(600 * Nanos::SECOND.0);
    const SHORT: Nanos = Nanos(50_000_000);

    #[test]
    fn a_program_has_its_input_and_tells_its_end() {
        let shell = ["-c", "cat; echo \"$0\" >&2; exit 7", "a b; c"];
        let mut program = PipedProgram::start("sh", &shell, b"input", LONG).unwrap();
        let mut text = String::new();
        program.output().read_to_string(&mut text).unwrap();
        assert!(text == "input" && !program.is_silent());
        assert_eq!(program.end().unwrap(), (Some(7), "a b; c\n".to_owned()));
    }

    #[test]
    fn one_that_is_left_is_ended_and_none_is_an_error() {
        let program = PipedProgram::start("sleep", &["1000"], b"", LONG).unwrap();
        let pid = program.child.id();
        drop(program);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        assert!(PipedProgram::start("no-such-program", &[], b"", LONG).is_err());
        assert!(PipedProgram::start("cat", &[], &vec![0; MOST_INPUT + 1], LONG).is_err());
    }

    #[test]
    fn one_that_is_silent_is_not_waited_for() {
        let mut program = PipedProgram::start("sh", &["-c", "echo on; exec sleep 1000"], b"", SHORT).unwrap();
        let pid = program.child.id();
        // A shell takes its time to start on a busy machine.
        program.output.silence = LONG;
        let mut word = [0; 3];
        program.output().read_exact(&mut word).unwrap();
        program.output.silence = SHORT;
        let failure = program.output().read(&mut word).unwrap_err();
        assert!(failure.kind() == io::ErrorKind::TimedOut && program.is_silent() && &word == b"on\n");
        drop(program);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn one_that_prints_no_more_and_goes_on_is_not_waited_for_either() {
        let mut program = PipedProgram::start("sh", &["-c", "exec sleep 1000 >&-"], b"", LONG).unwrap();
        assert_eq!(program.output().read(&mut [0; 9]).unwrap(), 0);
        program.output.silence = SHORT;
        assert_eq!(program.end().unwrap_err().kind(), io::ErrorKind::TimedOut);
        // What it leaves behind holds its standard error.
        let shell = ["-c", "sleep 1000 >&- & echo $!; exit 3"];
        let mut program = PipedProgram::start("sh", &shell, b"", LONG).unwrap();
        let mut left = String::new();
        program.output().read_to_string(&mut left).unwrap();
        program.output.silence = Nanos(2 * Nanos::SECOND.0);
        assert_eq!(program.end().unwrap(), (Some(3), String::new()));
        let left = left.trim().parse().ok().and_then(rustix::process::Pid::from_raw).unwrap();
        rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
    }
}
