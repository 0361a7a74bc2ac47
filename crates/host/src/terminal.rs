//! Properties of the terminal behind standard error or another stream, if there is one.

use std::io;
use std::os::fd::AsFd;

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
