//! CPU time of a process's control group and of the groups above it: each of them may have a quota,
//! and throttles everything below it.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst, "CPU Interface Files";
//! Documentation/scheduler/sched-bwc.rst for version 1.

use super::files::text;
use crate::cgroup::Cgroups;
use crate::line::parse_u64;
use host::MachineFiles;
use model::fact::Fact;

/// The control group of a process and those above it, as folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDirs {
    /// Folders from the process's group upwards.
    dirs: Vec<String>,
    version: Version,
    /// True if the last one is the machine's root group: a container does not show those above.
    complete: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Finds the group that schedules a process; absent on kernels without control groups.
pub fn find(host: &MachineFiles, groups: &Fact<Cgroups>) -> Fact<GroupDirs> {
    groups.clone().then(|groups| {
        // A controller belongs to one version at a time, and version 1 lists it.
        let (mounts, path, version) = match (&groups.cpu, &groups.unified) {
            (Some((controllers, path)), _) => {
                let mounts = vec![format!("/sys/fs/cgroup/{controllers}"), "/sys/fs/cgroup/cpu".to_owned()];
                (mounts, path, Version::One)
            }
            (None, Some(path)) => {
                let mounts = vec!["/sys/fs/cgroup".to_owned(), "/sys/fs/cgroup/unified".to_owned()];
                (mounts, path, Version::Two)
            }
            (None, None) => {
                return Fact::Malformed("its control group is not accessible from here".to_owned());
            }
        };
        for mount in mounts {
            match host.list(&format!("{mount}{path}")) {
                Fact::Known(names) if names.iter().any(|name| name == "cgroup.procs") => {
                    return Fact::Known(GroupDirs::of(host, &mount, path, version));
                }
                Fact::Known(_) | Fact::Absent => {}
                other => return other.then(|_| Fact::Absent),
            }
        }
        Fact::Malformed("its control group is not mounted below /sys/fs/cgroup".to_owned())
    })
}

impl GroupDirs {
    fn of(host: &MachineFiles, mount: &str, path: &str, version: Version) -> GroupDirs {
        let mut dirs = vec![format!("{mount}{path}")];
        let mut rest = path;
        while let Some((above, _)) = rest.rsplit_once('/') {
            dirs.push(format!("{mount}{above}"));
            rest = above;
        }
        // `cgroup.type` is not on the root (CFTYPE_NOT_ON_ROOT), `release_agent` on it alone
        // (kernel/cgroup/cgroup.c, cgroup-v1.c).
        let has =
            |name: &str| host.list(mount).known().is_some_and(|names| names.iter().any(|own| own == name));
        let complete = match version {
            Version::One => has("release_agent"),
            Version::Two => !has("cgroup.type"),
        };
        GroupDirs { dirs, version, complete }
    }
}

/// Number of times that the group or one above it was throttled so far; absent if none counts it.
pub fn throttled(host: &MachineFiles, groups: &Fact<GroupDirs>) -> Fact<u64> {
    groups.clone().then(|groups| {
        let mut sum = None;
        for dir in &groups.dirs {
            match text(host, &format!("{dir}/cpu.stat")).parse(|text| parse_throttled(&text)) {
                Fact::Known(Some(times)) => *sum.get_or_insert(0) += times,
                Fact::Known(None) | Fact::Absent => {}
                other => return other.map(Option::unwrap_or_default),
            }
        }
        sum.map_or(Fact::Absent, Fact::Known)
    })
}

fn parse_throttled(text: &str) -> Result<Option<u64>, String> {
    let line = text.lines().find_map(|line| line.strip_prefix("nr_throttled "));
    line.map(parse_u64).transpose()
}

/// Tightest CPU quota of the group and those above it: microseconds in each period; `None` without
/// one.
pub fn quota(host: &MachineFiles, groups: &Fact<GroupDirs>) -> Fact<Option<(u64, u64)>> {
    groups.clone().then(|groups| {
        let mut tightest: Option<(u64, u64)> = None;
        for dir in &groups.dirs {
            let found = match groups.version {
                Version::One => old_quota(host, dir),
                Version::Two => text(host, &format!("{dir}/cpu.max")).parse(|text| parse_quota(&text)),
            };
            match found {
                Fact::Known(found) => tightest = tighter(tightest, found),
                // The root has none, and groups for which the controller is not switched on.
                Fact::Absent => {}
                other => return other,
            }
        }
        match tightest {
            None if !groups.complete => {
                Fact::Malformed("it has none, and the groups above this container are not visible".to_owned())
            }
            tightest => Fact::Known(tightest),
        }
    })
}

fn tighter(one: Option<(u64, u64)>, other: Option<(u64, u64)>) -> Option<(u64, u64)> {
    let share = |(quota, period): &(u64, u64)| *quota as f64 / (*period).max(1) as f64;
    one.into_iter().chain(other).min_by(|one, other| share(one).total_cmp(&share(other)))
}

/// Reads version 1's two files; -1 means no quota.
fn old_quota(host: &MachineFiles, dir: &str) -> Fact<Option<(u64, u64)>> {
    let number = |text: String| text.trim().parse::<i64>().map_err(|_| "expected a number".to_owned());
    let quota = text(host, &format!("{dir}/cpu.cfs_quota_us")).parse(number);
    quota.then(|quota| match u64::try_from(quota) {
        Err(_) => Fact::Known(None),
        Ok(quota) => {
            let period = text(host, &format!("{dir}/cpu.cfs_period_us")).parse(|text| parse_u64(&text));
            period.map(|period| Some((quota, period)))
        }
    })
}

/// Parses `cpu.max`: microseconds, or `max`, and the period.
fn parse_quota(text: &str) -> Result<Option<(u64, u64)>, String> {
    let expected = || "expected a quota and a period".to_owned();
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        ["max", _] => Ok(None),
        [quota, period] => {
            let number = |word: &str| word.parse::<u64>().map_err(|_| expected());
            Ok(Some((number(quota)?, number(period)?)))
        }
        _ => Err(expected()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::parse_cgroups;
    use host::access::Access;
    use std::collections::BTreeMap;

    /// Quota and throttling count of the groups of a fake machine.
    fn read(cgroup: &str, files: &[(&str, &str)]) -> (Fact<Option<(u64, u64)>>, Fact<u64>) {
        let file = |(path, text): &(&str, &str)| {
            (format!("/sys/fs/cgroup/{path}"), Access::File(text.as_bytes().to_vec()))
        };
        let host = MachineFiles::in_memory(files.iter().map(file).collect::<BTreeMap<_, _>>());
        let groups = find(&host, &Fact::Known(parse_cgroups(cgroup).unwrap()));
        (quota(&host, &groups), throttled(&host, &groups))
    }

    #[test]
    fn a_quota_above_holds_for_the_groups_below() {
        let files = [
            ("cgroup.procs", ""),
            ("a/cpu.max", "20000 100000\n"),
            ("a/cpu.stat", "usage_usec 5\nnr_throttled 7\n"),
            ("a/b/cgroup.procs", ""),
            ("a/b/cpu.max", "50000 100000\n"),
            ("a/b/cpu.stat", "usage_usec 5\nnr_throttled 2\n"),
            ("a/b/c/cgroup.procs", ""),
            ("a/b/c/cpu.max", "max 100000\n"),
            ("d/cgroup.procs", ""),
        ];
        assert_eq!(read("0::/a/b/c\n", &files), (Fact::Known(Some((20_000, 100_000))), Fact::Known(9)));
        assert_eq!(read("0::/d\n", &files), (Fact::Known(None), Fact::Absent));
        assert_eq!(read("0::/\n", &files), (Fact::Known(None), Fact::Absent));
    }

    #[test]
    fn version_one_has_two_files() {
        let files = [
            ("cpu,cpuacct/cgroup.procs", ""),
            ("cpu,cpuacct/release_agent", "\n"),
            ("cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("cpu,cpuacct/a/cpu.cfs_quota_us", "20000\n"),
            ("cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"),
            ("cpu,cpuacct/a/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 3\n"),
            ("cpu,cpuacct/a/b/cgroup.procs", ""),
            ("cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n"),
            ("unified/cgroup.procs", ""),
        ];
        let found = read("4:cpu,cpuacct:/a/b\n0::/x\n", &files);
        assert_eq!(found, (Fact::Known(Some((20_000, 100_000))), Fact::Known(4)));
        assert_eq!(read("4:cpu,cpuacct:/\n0::/\n", &files), (Fact::Known(None), Fact::Absent));
    }

    /// In a container the topmost visible group is not the machine's root.
    #[test]
    fn groups_out_of_reach_are_no_pass() {
        let inside = [("cgroup.procs", ""), ("cgroup.type", "domain\n"), ("cpu.max", "max 100000\n")];
        assert!(matches!(read("0::/\n", &inside).0, Fact::Malformed(_)));
        let limited = [("cgroup.procs", ""), ("cgroup.type", "domain\n"), ("cpu.max", "9000 100000\n")];
        assert_eq!(read("0::/\n", &limited).0, Fact::Known(Some((9000, 100_000))));
        assert!(matches!(read("0::/../other\n", &inside).0, Fact::Malformed(_)));
        assert!(matches!(read("0::/a\n", &[]).0, Fact::Malformed(_)));
    }
}
