//! Run of this program in a separate process that is waited for: a phase of a suite, a segment of
//! an experiment.

use std::io;
use std::path::Path;

use host::OwnRun;
use model::error::{Exit, Failure, Result};

/// End of the run.
pub enum ChildEnd {
    /// Ended with this exit code, after this last message on standard error.
    Ended { code: i32, words: String },
    /// Stopped by a signal, which was passed on to it.
    Stopped,
}

/// Starts the run, in a control group if one is given, and calls `wait` repeatedly until it has
/// ended; `wait` blocks for a moment and returns true if a stop signal came.
pub fn run_child(
    arguments: &[String],
    group: Option<&Path>,
    wait: &mut dyn FnMut() -> bool,
) -> Result<ChildEnd> {
    let failed =
        |error: io::Error| Failure::of_call("the run cannot be started", &error, Exit::Internal, "try again");
    let mut run = OwnRun::start_in(arguments, group).map_err(failed)?;
    let mut stopped = false;
    let code = loop {
        if let Some(code) = run.ended().map_err(failed)? {
            break code;
        }
        if wait() && !stopped {
            stopped = true;
            run.stop();
        }
    };
    Ok(if stopped { ChildEnd::Stopped } else { ChildEnd::Ended { code, words: run.last_words() } })
}
