//! Control groups of version 2: where a process is, moving it, and removing a group.

use std::fs;
use std::io;

use model::setting::CGROUP_MOUNT;

/// How often a group is emptied before its removal is given up: processes may fork meanwhile.
const ATTEMPTS: u32 = 20;

/// The path of a process's group, from the root of the mount: `/`, `/system.slice/cron.service`.
pub fn of_task(pid: u32) -> io::Result<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("0::"));
    line.map(str::to_owned).ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}

/// Moves a process with all its threads.
pub fn move_task(pid: u32, group: &str) -> io::Result<()> {
    if !group.starts_with('/') || group.split('/').any(|part| part == "..") {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    fs::write(format!("{CGROUP_MOUNT}{}/cgroup.procs", group.trim_end_matches('/')), pid.to_string())
}

/// Removes a group; the processes in it go to the root group, for where each came from is known to
/// those who moved it.
pub fn remove(path: &str) -> io::Result<()> {
    let mut last = Ok(());
    for _ in 0..ATTEMPTS {
        last = fs::remove_dir(path);
        match &last {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(()),
            _ => return last,
        }
        let inside = fs::read_to_string(format!("{path}/cgroup.procs"))?;
        for pid in inside.lines().filter_map(|line| line.parse().ok()) {
            // One that ended in between has left the group as well.
            let _ = move_task(pid, "/");
        }
    }
    last
}
