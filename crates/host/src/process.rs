//! This process: its peak memory, its user, its start, and another program in its place.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::fs::Mode;

/// Peak resident memory of this process in KiB.
///
/// From VmHWM of /proc/self/status, because getrusage's figure outlives execve: it is that of the
/// process that started onbeat.
pub fn peak_memory_kib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// How many files this process may have open, by the soft limit of RLIMIT_NOFILE.
pub fn open_files_limit() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// Whether this process may read what only root may.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether this user owns what is at a path; none where nothing is.
pub fn is_own(path: &Path) -> Option<bool> {
    let owner = path.metadata().ok()?.uid();
    Some(owner == rustix::process::geteuid().as_raw())
}

/// Has all that this process makes from here on be its user's alone, folders 0700 and files 0600;
/// what is there keeps its modes.
pub fn make_new_files_private() {
    let others = Mode::RWXG | Mode::RWXO;
    let before = rustix::process::umask(others);
    rustix::process::umask(before | others);
}

/// When a process or thread was started, in clock ticks since boot: field 22 of `/proc/PID/stat`.
pub fn process_start(pid: u32) -> Option<u64> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.rsplit_once(") ")?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Puts a program in the place of this process, looked for in `$PATH` as shells do, with these
/// arguments; no shell sees them. It keeps the process's number, group, CPUs and policy, and
/// nothing of its signal mask.
///
/// Returns only if it could not be.
pub fn replace_by(program: &OsString, arguments: &[OsString]) -> io::Error {
    crate::rt::clear_signal_mask();
    Command::new(program).args(arguments).exec()
}
