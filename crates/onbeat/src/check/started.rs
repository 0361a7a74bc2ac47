//! The program of `onbeat check -- PROGRAM`: it is started, given the time to become real-time, and
//! ended.

use crate::hunt::family::Family;
use crate::hunt::followed_program::FollowedProgram;
use crate::hunt::victims::FollowedKind;
use facts::process::ProcessReader;
use host::rt::{self, Woken};
use host::{MachineFiles, clock};
use model::error::{Exit, Failure, Result};
use model::units::Nanos;

/// How long a program may take until it has a real-time thread.
const PATIENCE: Nanos = Nanos(10_000_000_000);
/// What it does while it starts is not of its loop.
const SETTLING: Nanos = Nanos(1_000_000_000);
const LOOK: Nanos = Nanos(50_000_000);

/// A program that is ended when this is dropped.
pub struct StartedProgram {
    program: FollowedProgram,
    host: MachineFiles,
}

impl StartedProgram {
    pub fn new(program: FollowedProgram) -> StartedProgram {
        StartedProgram { program, host: MachineFiles::live() }
    }

    pub fn pid(&self) -> u32 {
        self.program.pid().unsigned_abs()
    }

    /// Lets it run, and waits until it has a real-time thread and has settled; a program that gets
    /// none in its time is looked at all the same.
    pub fn start(&mut self, host: &MachineFiles) -> Result<()> {
        self.program.start()?;
        let from = clock::monotonic();
        let (mut end, mut settles) = (from + PATIENCE, false);
        while clock::monotonic() < end {
            let now = clock::monotonic();
            if self.program.has_ended() {
                return Err(ended(now - from));
            }
            let real_time =
                || ProcessReader::begin(host, self.pid(), now).is_some_and(|own| !own.real_time().is_empty());
            if !settles && real_time() {
                (end, settles) = (now + SETTLING, true);
            }
            if rt::wait_until(now + LOOK) == Woken::Stop {
                return Err(Failure {
                    exit: Exit::Interrupted,
                    message: "interrupted before the program was looked at".to_owned(),
                });
            }
        }
        Ok(())
    }
}

impl Drop for StartedProgram {
    fn drop(&mut self) {
        self.program.finish(&nobody(), &self.host);
    }
}

fn nobody() -> Family {
    Family::new(FollowedKind::Program, Vec::new(), [])
}

fn ended(after: Nanos) -> Failure {
    Failure {
        exit: Exit::Inconclusive,
        message: format!(
            "the program ended after {}, before it could be judged: \
             keep it running for the time of the check (-D)",
            after.spoken()
        ),
    }
}
