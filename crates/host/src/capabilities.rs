//! Capabilities of this process, and dropping them.
//!
//! Source: capabilities(7), capget(2); the numbers are those of include/uapi/linux/capability.h.

#![allow(unsafe_code)]

use std::io;

/// The only version since Linux 2.6.26: two words for each set.
const VERSION_3: u32 = 0x2008_0522;

/// Reads, writes and searches files without permission checks.
pub const DAC_OVERRIDE: u32 = 1;
/// Sends signals to processes of other users.
pub const KILL: u32 = 5;
/// Sets real-time policies.
pub const SYS_NICE: u32 = 23;
/// Reads kernel addresses.
pub const SYSLOG: u32 = 34;
/// Opens performance events and loads tracing programs, since Linux 5.8.
pub const PERFMON: u32 = 38;
/// Uses bpf(2), since Linux 5.8.
pub const BPF: u32 = 39;
/// Required in place of the two above before Linux 5.8.
pub const SYS_ADMIN: u32 = 21;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// True if the capability is in the effective set.
pub fn has(capability: u32) -> bool {
    current().is_ok_and(|sets| is_in(&sets, capability))
}

/// Drops all other capabilities permanently; descriptors that are already open stay usable.
///
/// # Errors
/// As capset(2).
pub fn keep_only(kept: &[u32]) -> io::Result<()> {
    let mut sets = current()?;
    for (word, sets) in sets.iter_mut().enumerate() {
        let mask = kept
            .iter()
            .filter(|&&kept| kept / 32 == word as u32)
            .fold(0, |mask, kept| mask | 1 << (kept % 32));
        *sets = Sets { effective: sets.effective & mask, permitted: sets.permitted & mask, inheritable: 0 };
    }
    let header = Header { version: VERSION_3, pid: 0 };
    // SAFETY: the kernel reads a header and, with this version, two elements of the array.
    let done = unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn is_in(sets: &[Sets; 2], capability: u32) -> bool {
    sets.get((capability / 32) as usize).is_some_and(|sets| sets.effective & 1 << (capability % 32) != 0)
}

fn current() -> io::Result<[Sets; 2]> {
    let mut header = Header { version: VERSION_3, pid: 0 };
    let mut sets = [Sets::default(); 2];
    // SAFETY: the kernel writes the header's version and, with this one, two elements of the array.
    let done = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, sets.as_mut_ptr()) };
    if done == 0 { Ok(sets) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a separate thread: capabilities are per thread.
    #[test]
    fn what_was_given_up_is_gone_and_the_rest_stays() {
        let before = has(KILL);
        let after = std::thread::spawn(|| {
            keep_only(&[KILL]).unwrap();
            (has(KILL), has(SYS_ADMIN), has(BPF), keep_only(&[KILL, BPF]).is_ok(), has(BPF))
        });
        assert_eq!(after.join().unwrap(), (before, false, false, true, false));
        assert_eq!(has(KILL), before, "other threads keep theirs");
    }
}
