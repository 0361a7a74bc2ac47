//! The process that clears up after a load whose starter was killed.

use std::io;
use std::path::Path;

use model::units::Nanos;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

use super::{Cage, ProcessId};
use crate::clock;
use crate::keeper::{keep_alive, start};
use crate::process::process_start;

/// How often a process is looked for where the kernel has no pidfd_open (before Linux 5.3).
const PERIOD: Nanos = Nanos(100_000_000);

/// Starts the keeper of what this process has started: `onbeat load --keep PID/START`, with the
/// cage, or with the process groups where there is none.
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

/// Waits until a process has ended, and kills and removes what is left of its loads: what the
/// keeper does.
pub fn keep_watch(owner: ProcessId, cage: Option<&Path>, groups: &[ProcessId]) -> io::Result<()> {
    let cage = cage.map(|group| Cage::of(owner, group)).transpose()?;
    let watched = process(owner.0).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
    keep_alive()?;
    // What was opened may be a later process of that number.
    match watched.filter(|_| process_start(owner.0) == Some(owner.1)) {
        Some(pidfd) => while poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None) != Ok(1) {},
        None => {
            while process_start(owner.0) == Some(owner.1) {
                clock::sleep_for(PERIOD);
            }
        }
    }
    for (leader, start) in groups {
        // A number is not given to another process as long as a group has it.
        if process_start(*leader).is_none_or(|now| now == *start) {
            process(*leader).map(|group| kill_process_group(group, Signal::KILL));
        }
    }
    cage.map_or(Ok(()), |cage| cage.clear())
}

fn process(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}
