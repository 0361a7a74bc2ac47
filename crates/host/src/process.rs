//! This process: its peak memory, user, start time and limits, and replacing it by a program.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::Mode;

/// A process; the start time distinguishes it from a later one with the same PID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessId {
    pub pid: u32,
    /// Ticks from boot to its start.
    pub start: u64,
}

/// Peak resident memory of this process in KiB.
///
/// Read from VmHWM of /proc/self/status, because the figure of getrusage survives execve and
/// includes the process that started onbeat.
pub fn peak_memory_kib() -> Option<u64> {
    memory_of_status("VmHWM:")
}

/// Memory of this process that is resident now.
pub fn resident_kib() -> Option<u64> {
    memory_of_status("VmRSS:")
}

fn memory_of_status(key: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(key))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Limit of this process's open files: the soft limit of RLIMIT_NOFILE.
pub fn open_files_limit() -> u64 {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// True for an effective user ID of 0.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// True if this user owns the file at a path; none if there is no such file.
pub fn is_own(path: &Path) -> Option<bool> {
    let owner = path.metadata().ok()?.uid();
    Some(owner == rustix::process::geteuid().as_raw())
}

/// Makes later files of this process private, folders 0700 and files 0600; existing files keep
/// their modes.
pub fn make_new_files_private() {
    let others = Mode::RWXG | Mode::RWXO;
    let before = rustix::process::umask(others);
    rustix::process::umask(before | others);
}

/// Start time of a process or thread, in clock ticks since boot: field 22 of `/proc/PID/stat`.
pub fn process_start(pid: u32) -> Option<u64> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.rsplit_once(") ")?.1.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// Starts a program with these arguments, searched in `$PATH` and without a shell, that goes on
/// when this process ends. Its output is discarded.
pub fn start_apart(program: &str, arguments: &[&str]) -> io::Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.process_group(0).spawn().map(|_| ())
}

/// Replaces this process by a program, searched in `$PATH` as by shells, with these arguments and
/// without a shell. PID, process group, CPUs and policy stay; the signal mask is cleared.
///
/// Returns only on failure.
pub fn replace_by(program: &OsString, arguments: &[OsString]) -> io::Error {
    crate::rt::clear_signal_mask();
    Command::new(program).args(arguments).exec()
}
