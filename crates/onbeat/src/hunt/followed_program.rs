//! Program started by a hunt: its start, the signals passed on to it, its end.

use std::io::ErrorKind;

use host::rt::StopSignal;
use host::{HeldProgram, MachineFiles, ProgramEnd, TerminalState, clock};
use model::error::{Exit, Failure, Result, reason};
use model::run::ProgramRun;
use model::text::quoted;
use model::units::Nanos;

use super::family::Family;

/// Time that a program may take to end when asked, with its last cycles recorded.
const GRACE: Nanos = Nanos(5_000_000_000);

/// Interval of the checks for its end, once recording has stopped.
const LOOK: Nanos = Nanos(10_000_000);

/// A program that waits to run, runs, or has ended.
pub struct FollowedProgram {
    program: HeldProgram,
    document: ProgramRun,
    terminal: TerminalState,
    began: Option<Nanos>,
    /// Time when it was asked to end.
    asked: Option<Nanos>,
}

impl FollowedProgram {
    /// A program that waits for its start; the terminal's settings are saved.
    pub fn new(program: HeldProgram, name: String, user: String) -> FollowedProgram {
        let document = ProgramRun { pid: program.pid(), name, user, ..ProgramRun::default() };
        FollowedProgram { program, document, terminal: TerminalState::save(), began: None, asked: None }
    }

    pub fn pid(&self) -> i32 {
        self.document.pid
    }

    /// Lets it run.
    pub fn start(&mut self) -> Result<()> {
        self.began = Some(clock::monotonic());
        let name = quoted(&self.document.name);
        let went = match self.program.go() {
            // It was killed before its start: that is reported like any other end.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            went => went,
        };
        went.map_err(|error| {
            let remedy = match error.raw_os_error() {
                Some(libc::ENOEXEC) => "give a program, or a script that begins with #! and its interpreter",
                Some(libc::EPERM | libc::EACCES) => {
                    "make it executable for its user, or run the hunt as root"
                }
                Some(libc::ENOENT) => "its interpreter or loader is missing: see `file` and `ldd` of it",
                _ => "give a program that also runs from this shell",
            };
            let exit = match error.raw_os_error() {
                Some(libc::EPERM | libc::EACCES) => Exit::NotPermitted,
                _ => Exit::Usage,
            };
            Failure { exit, message: format!("cannot run {name} ({}): {remedy}", reason(&error)) }
        })
    }

    /// True if it has ended.
    pub fn has_ended(&mut self) -> bool {
        if self.is_over() {
            return true;
        }
        let Some(end) = self.program.ended() else { return false };
        self.document.elapsed_ns = self.began.map(|began| clock::monotonic() - began);
        match end {
            ProgramEnd::Code(code) => self.document.exit_code = Some(code),
            ProgramEnd::Signal(number) => self.document.signal = Some(number),
        }
        true
    }

    fn is_over(&self) -> bool {
        self.document.exit_code.is_some() || self.document.signal.is_some()
    }

    /// Passes on a signal that is to end the hunt, unless the terminal has sent it to both. True if
    /// the hunt is to wait for the program's end; false at the second signal.
    pub fn stop(&mut self, signal: StopSignal) -> bool {
        if self.is_over() || self.asked.is_some() {
            return false;
        }
        if !signal.from_terminal {
            self.program.send(signal.number);
        }
        self.asked = Some(clock::monotonic());
        true
    }

    /// True if it was asked to end and has exceeded its time.
    pub fn is_overdue(&self) -> bool {
        self.asked.is_some_and(|asked| clock::monotonic() - asked > GRACE)
    }

    pub fn was_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Ends the program with the hunt: sends SIGTERM, waits for its end, and restores the terminal.
    pub fn end(&mut self) {
        if self.began.is_some() && self.asked.is_none() && !self.has_ended() {
            self.program.send(libc::SIGTERM);
            // A stopped process takes no signal before it continues (signal(7)).
            self.program.send(libc::SIGCONT);
            self.asked = Some(clock::monotonic());
        }
        while !self.has_ended() && !self.is_overdue() && self.asked.is_some() {
            // A further signal ends the wait.
            if host::rt::wait_for_stop(clock::monotonic() + LOOK).is_some() {
                break;
            }
        }
        self.terminal.restore();
    }

    /// Its exit status, and the processes that outlive it.
    pub fn finished(&mut self, family: &Family, host: &MachineFiles) -> ProgramRun {
        self.document.left_running = self.began.is_some() && !self.is_over();
        // The processes that it has started are known when all events are read.
        self.document.unseen_threads = family.unseen();
        self.document.outlived_by = family.processes_beside(host, self.document.pid);
        self.document.clone()
    }

    /// Its state up to now.
    pub fn document(&self) -> ProgramRun {
        self.document.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_was_killed_while_it_was_held_back_has_ended_by_that_signal() {
        let file = host::find_program("sleep".as_ref()).expect("a program");
        let held = HeldProgram::hold(&file, &["sleep".into(), "1000".into()], None).expect("a process");
        held.send(libc::SIGKILL);
        let mut program = FollowedProgram::new(held, "sleep".to_owned(), String::new());
        program.start().expect("nothing is refused");
        while !program.has_ended() {
            std::thread::yield_now();
        }
        assert_eq!(program.document().signal, Some(libc::SIGKILL));
    }

    #[test]
    fn one_that_is_stopped_goes_on_and_ends() {
        let file = host::find_program("sleep".as_ref()).expect("a program");
        let held = HeldProgram::hold(&file, &["sleep".into(), "1000".into()], None).expect("a process");
        let mut program = FollowedProgram::new(held, "sleep".to_owned(), String::new());
        program.start().expect("nothing is refused");
        program.program.send(libc::SIGSTOP);
        program.end();
        assert_eq!(program.document().signal, Some(libc::SIGTERM));
    }
}
