//! The running machine as a whole: its memory, architecture and name.

use std::fs;

/// Total memory of the machine, from /proc/meminfo; 0 if it cannot be read.
///
/// Not from sysinfo(2): the library function would end the process under a filter that denies it.
pub fn memory_kib() -> u64 {
    let about = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let total = about.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    total.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Architecture of the running kernel, as `uname -m`.
pub fn machine() -> String {
    rustix::system::uname().machine().to_string_lossy().into_owned()
}

/// Release of the running kernel, as `uname -r`.
pub fn release() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

/// Host name, for the formats that require it; no bundle contains it.
pub fn node_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
