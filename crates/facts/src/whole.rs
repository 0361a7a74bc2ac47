//! Completeness of a kernel text: a truncated one has less than the kernel wrote, and may mean the
//! opposite.
//!
//! The kernel ends each text of /proc and /sys with a newline, those of the device tree with NUL
//! (Documentation/filesystems/sysfs.rst, seq_file.rst; `proc_dointvec()` in kernel/sysctl.c). An
//! empty list of CPUs is a newline, too.

use host::MachineFiles;
use model::fact::Fact;

/// Reads a text of the kernel.
pub fn text(host: &MachineFiles, path: &str) -> Fact<String> {
    bytes(host, path).parse(|bytes| String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8 text")))
}

/// Reads a text of the kernel that need not be UTF-8.
pub fn bytes(host: &MachineFiles, path: &str) -> Fact<Vec<u8>> {
    host.read(path).parse(|bytes| check(path, &bytes).map(|()| bytes))
}

/// Refuses a text without its end; files that users and programs write need no newline there.
pub fn check(path: &str, bytes: &[u8]) -> Result<(), String> {
    if !path.starts_with("/proc/") && !path.starts_with("/sys/") {
        return Ok(());
    }
    let end = if path.starts_with("/proc/device-tree/") { 0 } else { b'\n' };
    match bytes.last() {
        Some(last) if *last == end => Ok(()),
        None if may_be_empty(path) => Ok(()),
        // Up to 5.8 without a newline; the selected policy is in brackets.
        Some(_) if path == "/sys/module/pcie_aspm/parameters/policy" => Ok(()),
        None => Err("expected a text of the kernel, found an empty file: was it truncated?".to_owned()),
        Some(_) => {
            Err("expected a whole text of the kernel, found one without its end: was it truncated?"
                .to_owned())
        }
    }
}

/// True for a file in which the kernel writes nothing if there is nothing to list.
fn may_be_empty(path: &str) -> bool {
    const NAMES: [&str; 6] =
        ["actions", "chip_name", "consoles", "set_event", "cgroup.procs", "cgroup.threads"];
    path.rsplit('/').next().is_some_and(|name| NAMES.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_has_its_end() {
        for (path, text) in [
            ("/proc/sys/kernel/watchdog", "0\n"),
            ("/sys/devices/system/cpu/isolated", "\n"),
            ("/proc/device-tree/model", "Board\0"),
            ("/sys/kernel/tracing/set_event", ""),
            ("/etc/security/limits.conf", "* - rtprio 99"),
            ("/etc/tuned/active_profile", ""),
        ] {
            assert_eq!(check(path, text.as_bytes()), Ok(()), "{path}");
        }
        for (path, text) in [
            ("/proc/sys/kernel/sched_rt_runtime_us", "95"),
            ("/sys/devices/system/cpu/isolated", ""),
            ("/proc/device-tree/model", "Boa"),
            ("/sys/kernel/tracing/set_event", "sched:sched_sw"),
            ("/proc/cmdline", "isolcpus=2-"),
        ] {
            assert!(check(path, text.as_bytes()).is_err(), "{path}");
        }
    }
}
