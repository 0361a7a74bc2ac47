//! Properties of the terminal behind standard error or another stream, if there is one.

use std::io;
use std::os::fd::AsFd;

use rustix::process::{Pid, test_kill_process_group};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// True if a descriptor is that of a terminal or another character device.
pub fn is_character_device(file: impl AsFd) -> bool {
    let kind = rustix::fs::fstat(file).map(|found| rustix::fs::FileType::from_raw_mode(found.st_mode));
    kind.is_ok_and(|kind| kind.is_char_device())
}

/// Columns and rows of the terminal on standard error; `None` if it is not a terminal.
pub fn terminal_size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    Some((usize::from(size.ws_col), usize::from(size.ws_row))).filter(|size| size.0 > 0 && size.1 > 0)
}

/// Columns of a terminal; `None` if the stream is not a terminal.
pub fn columns_of(stream: impl AsFd) -> Option<usize> {
    rustix::termios::tcgetwinsize(stream)
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|&columns| columns > 0)
}

/// True if this process is in the terminal's foreground job, and may write to its screen.
pub fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stderr()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// Settings of the terminal on standard input, to be restored after a program that may have changed
/// them.
pub struct TerminalState(Option<Termios>);

impl TerminalState {
    /// Saves the settings; none if it is not a terminal, or belongs to another job.
    pub fn save() -> TerminalState {
        let own = tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp());
        TerminalState(own.then(|| tcgetattr(io::stdin()).ok()).flatten())
    }

    /// Restores the settings, unless another job has the terminal by now. A job whose processes
    /// have all ended does not count.
    pub fn restore(&self) {
        let Some(before) = &self.0 else { return };
        let (own, now) = (rustix::process::getpgrp(), tcgetpgrp(io::stdin()));
        let is_gone = |group: Pid| test_kill_process_group(group) == Err(rustix::io::Errno::SRCH);
        // SIGTTOU stops a background caller of tcsetpgrp(3) unless it is blocked.
        let _held = crate::rt::BackgroundWrites::allow();
        if now.is_ok_and(|group| group != own && is_gone(group)) {
            let _ = tcsetpgrp(io::stdin(), own);
        }
        if tcgetpgrp(io::stdin()).is_ok_and(|group| group == own) {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Disables echo on standard input's terminal while it lives.
pub struct HiddenInput(Option<Termios>);

impl HiddenInput {
    pub fn begin() -> HiddenInput {
        let Ok(before) = tcgetattr(io::stdin()) else { return HiddenInput(None) };
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // Discards input typed ahead: it was echoed, and is not the password.
        let done = tcsetattr(io::stdin(), OptionalActions::Flush, &hidden);
        HiddenInput(done.is_ok().then_some(before))
    }
}

impl Drop for HiddenInput {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
