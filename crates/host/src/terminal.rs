//! Properties of the terminal behind standard error or another stream, if there is one.

use std::io;
use std::os::fd::AsFd;

use rustix::process::{Pid, test_kill_process_group};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr, tcsetpgrp};

/// Whether a descriptor is that of a terminal or another character device, closed or not.
pub fn is_character_device(file: impl AsFd) -> bool {
    let kind = rustix::fs::fstat(file).map(|found| rustix::fs::FileType::from_raw_mode(found.st_mode));
    kind.is_ok_and(|kind| kind.is_char_device())
}

/// Columns and rows of the terminal on standard error; `None` if it is no terminal.
pub fn terminal_size() -> Option<(usize, usize)> {
    let size = rustix::termios::tcgetwinsize(io::stderr()).ok()?;
    Some((usize::from(size.ws_col), usize::from(size.ws_row))).filter(|size| size.0 > 0 && size.1 > 0)
}

/// Columns of a terminal; `None` if the stream is no terminal.
pub fn columns_of(stream: impl AsFd) -> Option<usize> {
    rustix::termios::tcgetwinsize(stream)
        .ok()
        .map(|size| usize::from(size.ws_col))
        .filter(|&columns| columns > 0)
}

/// Whether this process is the terminal's present job: another's screen is not to be written on.
pub fn in_foreground() -> bool {
    rustix::termios::tcgetpgrp(io::stderr()).is_ok_and(|group| group == rustix::process::getpgrp())
}

/// The settings of the terminal on standard input, to be given back after a program that may have
/// changed them.
pub struct TerminalState(Option<Termios>);

impl TerminalState {
    /// As they are now; nothing where it is no terminal, or another job's.
    pub fn save() -> TerminalState {
        let own = tcgetpgrp(io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp());
        TerminalState(own.then(|| tcgetattr(io::stdin()).ok()).flatten())
    }

    /// As they were, unless another job has the terminal by now. A job whose processes have all
    /// ended has it no longer.
    pub fn restore(&self) {
        let Some(before) = &self.0 else { return };
        let (own, now) = (rustix::process::getpgrp(), tcgetpgrp(io::stdin()));
        let is_gone = |group: Pid| test_kill_process_group(group) == Err(rustix::io::Errno::SRCH);
        // The caller of tcsetpgrp(3) that is in the background is stopped by SIGTTOU unless that is
        // blocked.
        let _held = crate::rt::BackgroundWrites::allow();
        if now.is_ok_and(|group| group != own && is_gone(group)) {
            let _ = tcsetpgrp(io::stdin(), own);
        }
        if tcgetpgrp(io::stdin()).is_ok_and(|group| group == own) {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// While it lives the terminal on standard input does not show what is typed.
pub struct HiddenInput(Option<Termios>);

impl HiddenInput {
    pub fn begin() -> HiddenInput {
        let Ok(before) = tcgetattr(io::stdin()) else { return HiddenInput(None) };
        let mut hidden = before.clone();
        hidden.local_modes.remove(LocalModes::ECHO);
        // What was typed ahead was shown, and is no password.
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
