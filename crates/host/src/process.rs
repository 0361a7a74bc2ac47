//! This process: its peak memory, its user.

use std::fs;

/// Peak resident memory of this process in KiB.
///
/// From VmHWM of /proc/self/status, because getrusage's figure outlives execve: it is that of the
/// process that started onbeat.
pub fn peak_memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Whether this process may read what only root may.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
