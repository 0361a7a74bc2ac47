//! Keys of a machine's settings, as text and as paths.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Identifies a setting. As text `sysctl:vm.stat_interval`, `sysfs:devices/system/cpu/cpu1/online`,
/// `irq:24`, `irq:24/effective`, `irq:default`, `task:PID/START`, `task:PID/START/policy`,
/// `task:PID/START/group`, `cgroup:onbeat/rt/` for a group, `cgroup:onbeat/rt/cpuset.cpus` for a
/// file of one, `hold:NAME`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Name with dots; a dot within a component is written as a slash, as in sysctl(8).
    Sysctl(String),
    /// A file below `/sys`, without that prefix.
    Sysfs(String),
    /// The CPUs to which an interrupt may go.
    Irq(u32),
    /// The CPU to which an interrupt goes at present. The kernel keeps it where a new list of CPUs
    /// has it, so it is restored before the list.
    IrqEffective(u32),
    /// The CPUs to which new interrupts go.
    IrqDefault,
    /// The CPUs on which a thread may run, its policy, or its group.
    Task {
        /// The thread's id.
        tid: u32,
        /// Field 22 of `/proc/TID/stat`; a later thread with the same id has another.
        start: u64,
        what: TaskSetting,
    },
    /// A control group of version 2 below its mount: its path with a slash at its end. Its value is
    /// [`PRESENT`] where it exists.
    Group(String),
    /// A file of a control group.
    GroupFile(String),
    /// A setting that lasts as long as a descriptor is held open: `cpu_dma_latency`. Its value is
    /// the text written to it; it is absent if no holder runs.
    Hold(String),
}

/// Settings of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskSetting {
    /// CPUs on which it may run, as a list.
    Affinity,
    /// Policy and priority: `fifo 50`, `rr 1`, `other 0` with the nice value.
    Policy,
    /// Control group of its process.
    Group,
}

/// The value of a control group that exists.
pub const PRESENT: &str = "present";

/// Mount point of control groups of version 2.
pub const CGROUP_MOUNT: &str = "/sys/fs/cgroup";

impl Key {
    /// Key of the file with this path; `None` if the file is not a setting.
    pub fn of_path(path: &str) -> Option<Key> {
        if let Some(name) = path.strip_prefix("/proc/sys/") {
            let swapped = name.chars().map(|c| match c {
                '/' => '.',
                '.' => '/',
                other => other,
            });
            return Some(Key::Sysctl(swapped.collect()));
        }
        if path == "/proc/irq/default_smp_affinity" {
            return Some(Key::IrqDefault);
        }
        if let Some(rest) = path.strip_prefix("/proc/irq/") {
            let (number, file) = rest.split_once('/')?;
            return match file {
                "smp_affinity_list" => number.parse().ok().map(Key::Irq),
                "effective_affinity_list" => number.parse().ok().map(Key::IrqEffective),
                _ => None,
            };
        }
        if let Some(file) = path.strip_prefix(CGROUP_MOUNT).and_then(|rest| rest.strip_prefix('/')) {
            return Some(if file.ends_with('/') {
                Key::Group(file.to_owned())
            } else {
                Key::GroupFile(file.to_owned())
            });
        }
        path.strip_prefix("/sys/").map(|file| Key::Sysfs(file.to_owned()))
    }

    /// Path of the file or folder; for a thread its folder, for a hold the device.
    pub fn path(&self) -> String {
        match self {
            Key::Sysctl(name) => {
                let swapped = name.chars().map(|c| match c {
                    '/' => '.',
                    '.' => '/',
                    other => other,
                });
                format!("/proc/sys/{}", swapped.collect::<String>())
            }
            Key::Sysfs(file) => format!("/sys/{file}"),
            Key::Irq(number) => format!("/proc/irq/{number}/smp_affinity_list"),
            Key::IrqEffective(number) => format!("/proc/irq/{number}/effective_affinity_list"),
            Key::IrqDefault => "/proc/irq/default_smp_affinity".to_owned(),
            Key::Task { tid, .. } => format!("/proc/{tid}"),
            Key::Group(group) => format!("{CGROUP_MOUNT}/{}", group.trim_end_matches('/')),
            Key::GroupFile(file) => format!("{CGROUP_MOUNT}/{file}"),
            Key::Hold(name) => format!("/dev/{name}"),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Sysctl(name) => write!(f, "sysctl:{name}"),
            Key::Sysfs(file) => write!(f, "sysfs:{file}"),
            Key::Irq(number) => write!(f, "irq:{number}"),
            Key::IrqEffective(number) => write!(f, "irq:{number}/effective"),
            Key::IrqDefault => f.write_str("irq:default"),
            Key::Task { tid, start, what } => {
                let what = match what {
                    TaskSetting::Affinity => "",
                    TaskSetting::Policy => "/policy",
                    TaskSetting::Group => "/group",
                };
                write!(f, "task:{tid}/{start}{what}")
            }
            Key::Group(path) | Key::GroupFile(path) => write!(f, "cgroup:{path}"),
            Key::Hold(name) => write!(f, "hold:{name}"),
        }
    }
}

/// True if the path stays where it starts: no empty, `.` or `..` component, no NUL.
fn is_plain(path: &str) -> bool {
    !path.contains(['\0', '\n'])
        && path.split('/').all(|part| !part.is_empty() && part != "." && part != "..")
}

impl FromStr for Key {
    type Err = String;

    /// Parses a key of a document of any origin: no path in it leads out of its tree.
    fn from_str(text: &str) -> Result<Key, String> {
        let wrong = || format!("invalid setting key {}", crate::text::quoted(text));
        let (kind, rest) = text.split_once(':').ok_or_else(wrong)?;
        let key = match kind {
            "sysctl" => Some(Key::Sysctl(rest.to_owned())),
            "sysfs" => Some(Key::Sysfs(rest.to_owned())),
            "irq" if rest == "default" => Some(Key::IrqDefault),
            "irq" => match rest.strip_suffix("/effective") {
                Some(number) => number.parse().ok().map(Key::IrqEffective),
                None => rest.parse().ok().map(Key::Irq),
            },
            "task" => task(rest),
            "cgroup" if rest.ends_with('/') => Some(Key::Group(rest.to_owned())),
            "cgroup" => Some(Key::GroupFile(rest.to_owned())),
            "hold" if !rest.contains('/') => Some(Key::Hold(rest.to_owned())),
            _ => None,
        };
        key.filter(|key| key.to_string() == text && is_plain(key.path().trim_start_matches('/')))
            .ok_or_else(wrong)
    }
}

fn task(text: &str) -> Option<Key> {
    let mut parts = text.split('/');
    let (tid, start) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    let what = match (parts.next(), parts.next()) {
        (None, _) => TaskSetting::Affinity,
        (Some("policy"), None) => TaskSetting::Policy,
        (Some("group"), None) => TaskSetting::Group,
        _ => return None,
    };
    Some(Key::Task { tid, start, what })
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_are_read_as_they_are_written() {
        for text in [
            "sysctl:vm.stat_interval",
            "sysctl:net.ipv4.conf.eth0/100.rp_filter",
            "sysfs:devices/system/cpu/cpu1/online",
            "irq:24",
            "irq:24/effective",
            "irq:default",
            "task:12/3456",
            "task:12/3456/policy",
            "task:12/3456/group",
            "cgroup:onbeat/rt/",
            "cgroup:onbeat/rt/cpuset.cpus",
            "hold:cpu_dma_latency",
        ] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "sysctl:",
            "sysctl:..vm",
            "sysfs:../etc/passwd",
            "sysfs:a//b",
            "irq:-1",
            "irq:+1",
            "irq:01",
            "task:1",
            "task:1/2/3",
            "task:1/2/policy/x",
            "cgroup:",
            "cgroup:/",
            "cgroup:a/../b",
            "hold:a/b",
            "hold:..",
            "file:/etc/passwd",
        ] {
            assert!(text.parse::<Key>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_path_is_its_keys() {
        for path in [
            "/proc/sys/vm/stat_interval",
            "/proc/sys/net/ipv4/conf/eth0.100/rp_filter",
            "/proc/irq/24/smp_affinity_list",
            "/proc/irq/24/effective_affinity_list",
            "/proc/irq/default_smp_affinity",
            "/sys/devices/system/cpu/cpu1/online",
            "/sys/fs/cgroup/onbeat/cpuset.cpus",
        ] {
            assert_eq!(Key::of_path(path).unwrap().path(), path);
        }
        assert_eq!(Key::of_path("/etc/passwd"), None);
        assert_eq!(Key::of_path("/proc/irq/24/smp_affinity"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_a_key_of_its_own_or_none(text in ".{0,40}") {
            if let Ok(key) = text.parse::<Key>() {
                prop_assert_eq!(key.to_string(), text);
            }
        }
    }
}
