//! Process that cleans up after a load whose starter was killed.

use std::io;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process_group};

use super::Cage;
use crate::keeper::{outlive, start};
use crate::process::{ProcessId, process_start};

/// Starts the keeper of this process's loads: `onbeat load --keep PID/START`, with the cage, or
/// without one with the process groups.
pub fn start_keeper(cage: &Cage, groups: &[u32]) -> io::Result<()> {
    let told = |pid: u32| process_start(pid).map(|start| format!("{pid}/{start}"));
    let own = told(std::process::id()).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    let groups: Vec<String> = groups.iter().copied().filter_map(told).collect();
    match cage.group().map(Path::to_str) {
        Some(Some(group)) => start(&["load", "--keep", &own, "--cage", group]),
        Some(None) => Err(io::Error::from_raw_os_error(libc::EILSEQ)),
        None => start(&["load", "--keep", &own, "--groups", &groups.join(",")]),
    }
}

/// Waits until a process has ended, then kills and removes the remains of its loads; the main
/// function of the keeper.
pub fn keep_watch(owner: ProcessId, cage: Option<&Path>, groups: &[ProcessId]) -> io::Result<()> {
    let cage = cage.map(|group| Cage::of(owner, group)).transpose()?;
    outlive(owner)?;
    for ProcessId { pid: leader, start } in groups {
        // A PID is not reused as long as a process group has it.
        if process_start(*leader).is_none_or(|now| now == *start) {
            process(*leader).map(|group| kill_process_group(group, Signal::KILL));
        }
    }
    cage.map_or(Ok(()), |cage| cage.clear())
}

fn process(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
