//! The result of a system call as a Rust result.

use std::io;

/// Negative results are failures, whose reason the C library has in `errno`.
pub(super) fn check(result: libc::c_long) -> io::Result<libc::c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
