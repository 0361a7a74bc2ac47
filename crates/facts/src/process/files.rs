//! The files of a process, each with its outcome.

use super::status::{ProcessStatus, parse_status};
use crate::tasks::{TaskStat, parse_task_stat, task_number};
use crate::whole;
use host::MachineFiles;
use model::fact::Fact;

pub fn text(host: &MachineFiles, path: &str) -> Fact<String> {
    whole::bytes(host, path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

pub fn status_of(host: &MachineFiles, pid: u32) -> Fact<ProcessStatus> {
    text(host, &format!("/proc/{pid}/status")).parse(|text| parse_status(&text))
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
