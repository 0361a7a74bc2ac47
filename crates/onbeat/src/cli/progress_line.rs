//! Line on the terminal that shows the present activity, while this process waits for other runs of
//! onbeat.

use std::io::{self, IsTerminal, Write};

use super::Environment;
use host::clock;
use host::rt::{self, Woken};
use model::units::Nanos;

/// Progress line; inactive if it is not shown.
#[derive(Clone, Copy)]
pub struct ProgressLine {
    shows: bool,
}

impl ProgressLine {
    pub fn new(quiet: bool, environment: &Environment) -> ProgressLine {
        ProgressLine { shows: !quiet && !environment.dumb && io::stderr().is_terminal() }
    }

    /// Waits, and shows the present activity; true if a stop signal came.
    pub fn wait(self, until: Nanos, doing: &str) -> bool {
        loop {
            if self.shows && host::in_foreground() {
                let _ = io::stderr().write_all(format!("\r\x1b[K{doing}").as_bytes());
            }
            let now = clock::monotonic();
            if now >= until {
                return false;
            }
            if rt::wait_until(until.min(now + Nanos::SECOND)) == Woken::Stop {
                self.clear();
                return true;
            }
        }
    }

    pub fn clear(self) {
        if self.shows && host::in_foreground() {
            let _ = io::stderr().write_all(b"\r\x1b[K");
        }
    }
}
