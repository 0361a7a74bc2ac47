//! The bpf(2) system call, with the attributes of each command as a structure.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Commands in use, of `enum bpf_cmd`.
#[derive(Clone, Copy)]
pub(super) enum Command {
    MapCreate = 0,
    ProgramLoad = 5,
    ObjectInfo = 15,
    RawTracepointOpen = 17,
}

/// Structure passed to bpf(2): plain data, laid out as in `union bpf_attr`.
///
/// # Safety
/// Each pointer in it is valid for the length given with it while the call lasts.
pub(super) unsafe trait Attributes {}

/// Calls bpf(2); returns a descriptor or 0.
pub(super) fn bpf<A: Attributes>(command: Command, attributes: &mut A) -> io::Result<i32> {
    // SAFETY: the structure is the command's, its length is given, its pointers are valid by the
    // contract of the trait.
    let result = unsafe {
        libc::syscall(libc::SYS_bpf, command as libc::c_long, std::ptr::from_mut(attributes), size_of::<A>())
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as i32) }
}

/// Like [`bpf`], for commands that return a descriptor.
pub(super) fn bpf_open<A: Attributes>(command: Command, attributes: &mut A) -> io::Result<OwnedFd> {
    let descriptor = bpf(command, attributes)?;
    // SAFETY: the kernel has just created it, with O_CLOEXEC, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// Name as the kernel stores it: 15 bytes and a terminating 0.
pub(super) fn name_of(name: &str) -> [u8; 16] {
    let mut out = [0; 16];
    for (to, from) in out.iter_mut().take(15).zip(name.bytes()) {
        *to = from;
    }
    out
}
