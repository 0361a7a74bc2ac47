//! Results of system calls as Rust results.

use std::io;

/// Converts a negative result to the error in the C library's `errno`.
pub(super) fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
