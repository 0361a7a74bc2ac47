//! Descendants of this process, by the parents in `/proc`: the processes that a program started
//! here has left behind.
//!
//! Source: proc_pid_stat(5), PR_SET_CHILD_SUBREAPER(2const).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

/// Makes this process a subreaper: a descendant whose parent ends becomes a child of this process
/// instead of init's, so that background processes stay visible.
///
/// # Errors
/// The kernel does not support it.
pub fn keep_in_sight() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Reverts [`keep_in_sight`].
pub fn let_go() {
    let _ = set_child_subreaper(None);
}

/// Children of this process, zombies included.
pub fn own_children() -> BTreeSet<u32> {
    let own = std::process::id();
    parents().into_iter().filter(|(_, parent)| *parent == own).map(|(pid, _)| pid).collect()
}

/// Descendants of this process that have not ended, without `program`. Reaps children that have
/// ended except `program`, which its own owner waits for.
pub fn left_beside(program: u32) -> BTreeSet<u32> {
    for pid in own_children() {
        if pid != program {
            reaped(pid);
        }
    }
    let mut left = descendants(std::process::id(), &parents());
    left.retain(|pid| *pid != program && !has_ended(*pid));
    left
}

/// Descendants of a process.
pub fn below(pid: u32) -> BTreeSet<u32> {
    descendants(pid, &parents())
}

/// True if a child had ended; it is reaped.
pub fn reaped(pid: u32) -> bool {
    number(pid).is_some_and(|pid| matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_)) | Err(_)))
}

/// Process ID as rustix takes it; none if it is 0 or too large.
pub fn number(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Processes that have not ended, by session, for those of the sessions that have any.
pub fn live_in(sessions: &BTreeSet<u32>) -> BTreeMap<u32, BTreeSet<u32>> {
    let mut live: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for pid in processes() {
        if let Some(session) = session(pid).filter(|session| sessions.contains(session))
            && !has_ended(pid)
        {
            live.entry(session).or_default().insert(pid);
        }
    }
    live
}

/// All descendants of a process.
fn descendants(of: u32, parents: &BTreeMap<u32, u32>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut next = vec![of];
    while let Some(parent) = next.pop() {
        let children = parents.iter().filter(|(_, own)| **own == parent).map(|(pid, _)| *pid);
        next.extend(children.filter(|pid| found.insert(*pid)));
    }
    found
}

/// Parent of each process.
fn parents() -> BTreeMap<u32, u32> {
    let parent = |pid: u32| Some((pid, stat(pid, 1)?.parse().ok()?));
    processes().filter_map(parent).collect()
}

/// Processes visible here; none if `/proc` is mounted for another PID namespace, where numbers mean
/// other processes.
pub fn processes() -> impl Iterator<Item = u32> {
    let is_own =
        fs::read_link("/proc/self").is_ok_and(|own| own.as_os_str() == &*std::process::id().to_string());
    let entries = is_own.then(|| fs::read_dir("/proc")).into_iter().flatten().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
}

/// True if a process has ended, zombies included. One whose main thread has ended is still running
/// if it has other threads (field 20).
pub fn has_ended(pid: u32) -> bool {
    let threads = || stat(pid, 17).and_then(|threads| threads.parse::<u64>().ok());
    stat(pid, 0).is_none_or(|state| "ZXx".contains(&state) && threads().is_none_or(|threads| threads < 2))
}

/// Session of a process.
pub fn session(pid: u32) -> Option<u32> {
    stat(pid, 3)?.parse().ok()
}

/// Start time of a process, in kernel ticks since boot.
pub fn start_time(pid: u32) -> Option<u64> {
    stat(pid, 19)?.parse().ok()
}

/// Field of `/proc/PID/stat` after the name, which may contain any character.
fn stat(pid: u32, nth: usize) -> Option<String> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let text = String::from_utf8_lossy(&text);
    text.rsplit_once(") ")?.1.split_ascii_whitespace().nth(nth).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_below_are_found_at_any_depth_once() {
        let parents = [(2, 1), (3, 2), (4, 3), (5, 9), (7, 7)].into();
        assert_eq!(descendants(2, &parents), [3, 4].into());
        assert_eq!(descendants(1, &parents), [2, 3, 4].into());
        // A PID that is reused while the list is read may create a cycle.
        assert_eq!(descendants(7, &parents), [7].into());
        assert_eq!(descendants(6, &parents), BTreeSet::new());
    }

    #[test]
    fn a_process_below_this_one_is_seen_until_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id();
        assert!(own_children().contains(&pid));
        // Children of other tests belong to this process as well.
        assert!(descendants(std::process::id(), &parents()).contains(&pid));
        assert!(!has_ended(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!own_children().contains(&pid));
    }
}
