//! Control groups of version 2: finding and moving processes, and removing groups.

use std::fs;
use std::io;

use model::setting::CGROUP_MOUNT;

use super::GroupProcess;
use crate::process::process_start;

/// Attempts to empty a group before its removal fails: its processes may fork in between.
const ATTEMPTS: u32 = 20;

/// Depth to which groups below a group are searched.
const DEPTH: u32 = 16;

/// Path of a process's group from the root of the mount: `/`, `/system.slice/cron.service`.
pub fn of_task(pid: u32) -> io::Result<String> {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("0::"));
    line.map(str::to_owned).ok_or_else(|| io::Error::from_raw_os_error(libc::EOPNOTSUPP))
}

/// Moves this process to the root group.
pub fn leave_group() -> io::Result<()> {
    move_task(std::process::id(), "/")
}

/// Moves a process with all its threads.
pub fn move_task(pid: u32, group: &str) -> io::Result<()> {
    if !group.starts_with('/') || group.split('/').any(|part| part == "..") {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    fs::write(format!("{CGROUP_MOUNT}{}/cgroup.procs", group.trim_end_matches('/')), pid.to_string())
}

/// Path of a group in the file system; `""` is the root.
fn path_of(group: &str) -> String {
    format!("{CGROUP_MOUNT}/{}", group.trim_matches('/'))
}

/// Groups directly below a group.
pub(super) fn below(group: &str) -> Vec<String> {
    let Ok(entries) = fs::read_dir(path_of(group)) else { return Vec::new() };
    let folders =
        entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
    let group = group.trim_matches('/');
    names.map(|name| if group.is_empty() { name } else { format!("{group}/{name}") }).collect()
}

fn inside(group: &str, depth: u32) -> Vec<u32> {
    let text = fs::read_to_string(format!("{}/cgroup.procs", path_of(group))).unwrap_or_default();
    let mut pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    if depth > 0 {
        pids.extend(below(group).iter().flat_map(|group| inside(group, depth - 1)));
    }
    pids
}

/// Processes in a group and below it.
pub(super) fn processes(group: &str) -> Vec<GroupProcess> {
    let with_start = |pid| Some((pid, process_start(pid)?));
    let found = inside(group, DEPTH).into_iter().filter_map(with_start);
    let process =
        |(pid, start)| GroupProcess { pid, start, threads: threads(pid), ancestors: ancestors(pid) };
    found.map(process).collect()
}

fn threads(pid: u32) -> Vec<(u32, u64)> {
    let Ok(entries) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let tids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    tids.filter_map(|tid| Some((tid, process_start(tid)?))).collect()
}

/// Ancestors of a process, up to the first process.
fn ancestors(pid: u32) -> Vec<(u32, u64)> {
    let parent = |pid: u32| {
        let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        text.rsplit_once(") ")?.1.split_ascii_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let mut found: Vec<(u32, u64)> = Vec::new();
    let mut of = pid;
    // A PID may be reused during the walk: no process is its own ancestor.
    while let Some(next) = parent(of).filter(|next| *next > 0 && found.iter().all(|(pid, _)| pid != next)) {
        let Some(start) = process_start(next) else { break };
        found.push((next, start));
        of = next;
    }
    found
}

/// Removes a group and those below it; processes in them move to the root group, because only the
/// callers know their earlier groups.
pub fn remove(path: &str) -> io::Result<()> {
    let group = path.strip_prefix(CGROUP_MOUNT).unwrap_or(path).to_owned();
    remove_below(&group, DEPTH)
}

fn remove_below(group: &str, depth: u32) -> io::Result<()> {
    let mut last = Ok(());
    for _ in 0..ATTEMPTS {
        last = fs::remove_dir(path_of(group));
        match &last {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(()),
            _ => return last,
        }
        if depth > 0 {
            // A group below that cannot be removed makes this removal fail, too.
            below(group).iter().for_each(|group| drop(remove_below(group, depth - 1)));
        }
        for pid in inside(group, 0) {
            // A process that has ended in between has left the group as well.
            let _ = move_task(pid, "/");
        }
    }
    last
}
