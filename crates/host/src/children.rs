//! The processes below this one, by what `/proc` says of parents: what a program that was started
//! here has left behind.
//!
//! Source: proc_pid_stat(5), PR_SET_CHILD_SUBREAPER(2const).

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;

use rustix::process::{Pid, WaitOptions, getpid, set_child_subreaper, waitpid};

/// From now on a process below this one whose parent ends is this one's child, and no longer that
/// of the first process: what goes to the background stays in sight.
///
/// # Errors
/// The kernel does not do that.
pub fn keep_in_sight() -> io::Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// The end of [`keep_in_sight`].
pub fn let_go() {
    let _ = set_child_subreaper(None);
}

/// The processes whose parent this one is, ended ones that nobody has waited for among them.
pub fn own_children() -> BTreeSet<u32> {
    let own = std::process::id();
    parents().into_iter().filter(|(_, parent)| *parent == own).map(|(pid, _)| pid).collect()
}

/// The processes below this one that have not ended, but for `program` itself. Children that have
/// ended are collected, unless they are `program`, whose end another waits for.
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

/// The processes below another.
pub fn below(pid: u32) -> BTreeSet<u32> {
    descendants(pid, &parents())
}

/// Whether a child had ended, and is collected now.
pub fn reaped(pid: u32) -> bool {
    number(pid).is_some_and(|pid| matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_)) | Err(_)))
}

/// A process as system calls want it.
pub fn number(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

/// Those of these sessions that have a process which has not ended, each with its processes.
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

/// All below a process.
fn descendants(of: u32, parents: &BTreeMap<u32, u32>) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut next = vec![of];
    while let Some(parent) = next.pop() {
        let children = parents.iter().filter(|(_, own)| **own == parent).map(|(pid, _)| *pid);
        next.extend(children.filter(|pid| found.insert(*pid)));
    }
    found
}

/// The parent of each process.
fn parents() -> BTreeMap<u32, u32> {
    let parent = |pid: u32| Some((pid, stat(pid, 1)?.parse().ok()?));
    processes().filter_map(parent).collect()
}

/// The processes that this one sees; none where `/proc` is of another PID namespace, whose numbers
/// mean other processes here.
pub fn processes() -> impl Iterator<Item = u32> {
    let is_own =
        fs::read_link("/proc/self").is_ok_and(|own| own.as_os_str() == &*std::process::id().to_string());
    let entries = is_own.then(|| fs::read_dir("/proc")).into_iter().flatten().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
}

/// Whether it is gone, or nobody has waited for it yet. One whose first thread alone has ended goes
/// on: it has further threads (field 20).
pub fn has_ended(pid: u32) -> bool {
    let threads = || stat(pid, 17).and_then(|threads| threads.parse::<u64>().ok());
    stat(pid, 0).is_none_or(|state| "ZXx".contains(&state) && threads().is_none_or(|threads| threads < 2))
}

/// The session of a process.
pub fn session(pid: u32) -> Option<u32> {
    stat(pid, 3)?.parse().ok()
}

/// The time at which a process began, in the kernel's ticks since boot.
pub fn start_time(pid: u32) -> Option<u64> {
    stat(pid, 19)?.parse().ok()
}

/// A word of `/proc/PID/stat` after the name, which may hold anything.
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
        // A number that was used again while the list was read may make a circle.
        assert_eq!(descendants(7, &parents), [7].into());
        assert_eq!(descendants(6, &parents), BTreeSet::new());
    }

    #[test]
    fn a_process_below_this_one_is_seen_until_it_ends() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = child.id();
        assert!(own_children().contains(&pid));
        // Other tests' children are this process's as well.
        assert!(descendants(std::process::id(), &parents()).contains(&pid));
        assert!(!has_ended(pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!own_children().contains(&pid));
    }
}
