//! Files of a process, each with its outcome.

use super::status::{ProcessStatus, parse_status};
use crate::tasks::{TaskStat, has_ended, parse_task_stat, task_number};
use crate::whole;
use host::MachineFiles;
use model::fact::Fact;

pub fn text(host: &MachineFiles, path: &str) -> Fact<String> {
    whole::bytes(host, path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Folder of a process's files: that of another thread if its first one has ended, because an ended
/// thread has no memory and no open files any more (`do_exit()` of kernel/exit.c).
pub fn dir_of(host: &MachineFiles, pid: u32) -> String {
    let first = format!("/proc/{pid}");
    if lives(host, &first) {
        return first;
    }
    let tids = threads_of(host, pid).into_iter().filter(|tid| *tid != pid);
    let mut others = tids.map(|tid| format!("{first}/task/{tid}"));
    others.find(|dir| lives(host, dir)).unwrap_or(first)
}

/// True if a thread exists and has not ended.
pub fn lives(host: &MachineFiles, dir: &str) -> bool {
    let stat = whole::bytes(host, &format!("{dir}/stat"));
    stat.known().is_some_and(|line| !has_ended(line))
}

/// Status of a process, as long as one of its threads is alive.
pub fn status_of(host: &MachineFiles, pid: u32) -> Fact<ProcessStatus> {
    text(host, &format!("{}/status", dir_of(host, pid))).parse(|text| parse_status(&text))
}

pub fn stat_of(host: &MachineFiles, dir: &str) -> Fact<TaskStat> {
    whole::bytes(host, &format!("{dir}/stat")).parse(|bytes| parse_task_stat(&bytes))
}

pub fn threads_of(host: &MachineFiles, pid: u32) -> Vec<u32> {
    let names = host.list(&format!("/proc/{pid}/task")).known().cloned().unwrap_or_default();
    let mut tids: Vec<u32> = names.iter().filter_map(|name| task_number(name)).collect();
    tids.sort_unstable();
    tids
}
