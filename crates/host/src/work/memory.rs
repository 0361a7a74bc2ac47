//! Available memory: of the machine, and of the control groups that limit this process.

use std::fs;
use std::path::Path;

use super::beside::own_group;
use super::figures::after;

/// Memory in bytes available without swapping (`MemAvailable` of /proc/meminfo) and within the
/// limits of this process's control groups; `None` if neither can be read.
pub fn available_memory() -> Option<u64> {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let machine = after(&text("/proc/meminfo"), "\nMemAvailable:").and_then(|kib| kib.checked_mul(1024));
    let (mounts, groups) = (text("/proc/self/mounts"), text("/proc/self/cgroup"));
    let group = |kind, controller| own_group(&mounts, &groups, kind, controller);
    let limited = [
        group("cgroup2", "").and_then(|group| below_limits(&group, &VERSION_2)),
        group("cgroup", "memory").and_then(|group| below_limits(&group, &VERSION_1)),
    ];
    machine.into_iter().chain(limited.into_iter().flatten()).min()
}

/// Files of a group with its limit and usage, and fields of the droppable page cache in it.
struct Names {
    limit: &'static str,
    used: &'static str,
    files: [&'static str; 2],
}

/// Documentation/admin-guide/cgroup-v2.rst.
const VERSION_2: Names =
    Names { limit: "memory.max", used: "memory.current", files: ["\ninactive_file ", "\nactive_file "] };

/// Documentation/admin-guide/cgroup-v1/memory.rst.
const VERSION_1: Names = Names {
    limit: "memory.limit_in_bytes",
    used: "memory.usage_in_bytes",
    files: ["\ntotal_inactive_file ", "\ntotal_active_file "],
};

/// Rest below the tightest limit of a group and those above it; `None` without a limit.
fn below_limits(group: &Path, names: &Names) -> Option<u64> {
    let left = |group: &Path| {
        let text = |name: &str| fs::read_to_string(group.join(name)).ok();
        let number = |name| text(name)?.trim().parse::<u64>().ok();
        let (limit, used) = (number(names.limit)?, number(names.used)?);
        let stat = text("memory.stat").unwrap_or_default();
        let files = names.files.iter().filter_map(|name| after(&stat, name)).fold(0, u64::saturating_add);
        Some(limit.saturating_sub(used.saturating_sub(files)))
    };
    group.ancestors().filter_map(left).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_counts() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("a/b");
        fs::create_dir_all(&inner).unwrap();
        let write = |group: &Path, limit: &str, used: &str| {
            fs::write(group.join("memory.max"), limit).unwrap();
            fs::write(group.join("memory.current"), used).unwrap();
        };
        write(&inner, "max\n", "10\n");
        assert_eq!(below_limits(&inner, &VERSION_2), None);
        write(&place.path().join("a"), "1000\n", "900\n");
        assert_eq!(below_limits(&inner, &VERSION_2), Some(100));
        fs::write(place.path().join("a/memory.stat"), "anon 1\ninactive_file 300\nactive_file 50\n").unwrap();
        assert_eq!(below_limits(&inner, &VERSION_2), Some(450));
        write(&inner, "20\n", "30\n");
        assert_eq!(below_limits(&inner, &VERSION_2), Some(0));
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(available_memory().is_some_and(|bytes| bytes > 0));
    }
}
