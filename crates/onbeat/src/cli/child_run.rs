//! A run of this program in a process of its own, waited for: a phase of a suite, a segment of an
//! experiment.

use std::io;
use std::path::Path;

use host::OwnRun;
use model::error::{Exit, Failure, Result};

/// How it ended.
pub enum ChildEnd {
    /// With this exit code, and the last line that it said of itself.
    Ended { code: i32, words: String },
    /// A stop signal came, which was handed on.
    Stopped,
}

/// Starts it, in a control group where one is named, and calls `wait` over and over until it has
/// ended: that waits for a moment, and says whether a stop signal came.
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
    Ok(match stopped {
        true => ChildEnd::Stopped,
        false => ChildEnd::Ended { code, words: run.last_words() },
    })
}
