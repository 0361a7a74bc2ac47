//! Program of `onbeat check -- PROGRAM`: it is started, given time to become real-time, and ended.

use crate::hunt::family::Family;
use crate::hunt::followed_program::FollowedProgram;
use crate::hunt::victims::FollowedKind;
use facts::process::ProcessReader;
use host::rt::{self, Woken};
use host::{MachineFiles, children, clock};
use model::error::{Exit, Failure, Result};
use model::followed::ProgramRun;
use model::units::Nanos;
use report::check::left::{ended_early, in_background, still_running};

/// Maximum wait for a real-time thread of the program.
const PATIENCE: Nanos = Nanos(10_000_000_000);
/// Time for the program to start up, which is not part of its loop.
const SETTLING: Nanos = Nanos(1_000_000_000);
const LOOK: Nanos = Nanos(50_000_000);
/// Maximum wait for processes that end with the program, and the interval of the checks.
const GRACE: Nanos = Nanos(300_000_000);
const AGAIN: Nanos = Nanos(20_000_000);

/// Program that is ended when this is dropped.
pub struct StartedProgram {
    program: FollowedProgram,
    host: MachineFiles,
    is_ended: bool,
}

impl StartedProgram {
    pub fn new(program: FollowedProgram) -> StartedProgram {
        StartedProgram { program, host: MachineFiles::live(), is_ended: false }
    }

    pub fn pid(&self) -> u32 {
        self.program.pid().unsigned_abs()
    }

    /// Lets it run, and waits until it has a real-time thread and has settled; a program without
    /// one in that time is checked as well.
    pub fn start(&mut self, host: &MachineFiles) -> Result<()> {
        // Before it runs, so that its background processes become children of onbeat. If this
        // fails, only its descendants are seen.
        let _ = children::keep_in_sight();
        self.program.start()?;
        let from = clock::monotonic();
        let (mut end, mut settles) = (from + PATIENCE, false);
        while clock::monotonic() < end {
            let now = clock::monotonic();
            if self.program.has_ended() {
                let exit = Exit::Inconclusive;
                return Err(self.told(Failure { exit, message: "the program ended".to_owned() }));
            }
            children::left_beside(self.pid());
            let real_time =
                || ProcessReader::begin(host, self.pid(), now).is_some_and(|own| !own.real_time().is_empty());
            if !settles && real_time() {
                (end, settles) = (now + SETTLING, true);
            }
            if rt::wait_until(now + LOOK) == Woken::Stop {
                return Err(Failure {
                    exit: Exit::Interrupted,
                    message: "interrupted before the program was checked".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Ends it; returns a sentence about processes that continue.
    pub fn finish(&mut self) -> Option<String> {
        let (document, beside) = self.end();
        still_running(&document, &beside)
    }

    /// Ends the program, and adds its end and its remaining processes to a failure.
    pub fn told(&mut self, failure: Failure) -> Failure {
        let by_itself = failure.exit == Exit::Inconclusive && self.program.has_ended();
        let (document, beside) = self.end();
        let early = by_itself.then(|| ended_early(&document));
        let message = match still_running(&document, &beside) {
            Some(left) if document.left_running => {
                format!("{}; {}", failure.message, left.trim_end_matches('.'))
            }
            _ => in_background(&document, &beside).or(early).unwrap_or(failure.message),
        };
        Failure { message, ..failure }
    }

    fn end(&mut self) -> (ProgramRun, Vec<u32>) {
        self.is_ended = true;
        self.program.end();
        let beside = self.left_beside();
        let members = beside.iter().filter_map(|pid| i32::try_from(*pid).ok());
        let family = Family::new(FollowedKind::Program, Vec::new(), members);
        (self.program.finished(&family, &self.host), beside)
    }

    /// Remaining background processes, after a wait for those that end with the program.
    fn left_beside(&self) -> Vec<u32> {
        let until = clock::monotonic() + GRACE;
        loop {
            let left = children::left_beside(self.pid());
            if left.is_empty() || clock::monotonic() >= until {
                return left.into_iter().collect();
            }
            clock::sleep_for(AGAIN);
        }
    }
}

impl Drop for StartedProgram {
    fn drop(&mut self) {
        if !self.is_ended {
            self.program.end();
        }
    }
}
