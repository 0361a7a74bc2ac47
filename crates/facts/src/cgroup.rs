//! Control groups of this process, and limits on its CPU time.
//!
//! Source: Documentation/admin-guide/cgroup-v2.rst ("/proc/$PID/cgroup", "cpu.stat") and
//! Documentation/scheduler/sched-rt-group.rst for version 1's `cpu.rt_runtime_us`.

/// Groups of this process, as paths in their hierarchies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cgroups {
    /// Version 1: the controllers that share the hierarchy of `cpu`, such as `cpu,cpuacct`, and the
    /// path.
    pub cpu: Option<(String, String)>,
    /// Path in the hierarchy of version 2.
    pub unified: Option<String>,
}

impl Cgroups {
    /// Possible paths of a file of version 1's `cpu` controller, by the usual mount points.
    ///
    /// The mount table would be exact, but it also names the user's disks and servers, and what is
    /// read is recorded in bundles.
    pub fn v1_paths(&self, file: &str) -> Vec<String> {
        let Some((controllers, path)) = &self.cpu else { return Vec::new() };
        let mut mounts = vec![controllers.as_str(), "cpu"];
        mounts.dedup();
        mounts.into_iter().map(|mount| format!("/sys/fs/cgroup/{mount}{path}/{file}")).collect()
    }

    /// Possible paths of a file of version 2, mounted alone or next to version 1.
    pub fn v2_paths(&self, file: &str) -> Vec<String> {
        let Some(path) = &self.unified else { return Vec::new() };
        ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]
            .iter()
            .map(|mount| format!("{mount}{path}/{file}"))
            .collect()
    }
}

/// Parses `/proc/self/cgroup`, lines of `ID:CONTROLLERS:PATH`.
pub fn parse_cgroups(text: &str) -> Result<Cgroups, String> {
    let mut groups = Cgroups::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("expected lines of ID:CONTROLLERS:PATH".to_owned());
        };
        // A group outside of this namespace's root shows as `/../..`: its files cannot be reached
        // from here.
        if !path.starts_with('/') || path.split('/').any(|part| part == "..") {
            continue;
        }
        let path = path.trim_end_matches('/').to_owned();
        if controllers.is_empty() {
            groups.unified = Some(path);
        } else if controllers.split(',').any(|name| name == "cpu") && !controllers.contains('/') {
            groups.cpu = Some((controllers.to_owned(), path));
        }
    }
    Ok(groups)
}

/// Quota statistics of a group in `cpu.stat`; the file has these lines only if the group can have a
/// quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuStat {
    /// Path of the file, so that it can be read again at the end of a run.
    pub path: String,
    /// Periods in which the group ran out of its quota.
    pub throttled_periods: Option<u64>,
    /// Time that its tasks were throttled, summed over CPUs.
    pub throttled_ns: Option<u64>,
}

/// Parses `cpu.stat` of version 2 (microseconds) or 1 (nanoseconds).
pub fn parse_cpu_stat(text: &str) -> Result<CpuStat, String> {
    let mut stat = CpuStat::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else { continue };
        let number = || value.trim().parse::<u64>().map_err(|_| format!("expected a number after {name}"));
        match name {
            "nr_throttled" => stat.throttled_periods = Some(number()?),
            "throttled_usec" => stat.throttled_ns = Some(number()?.saturating_mul(1000)),
            "throttled_time" => stat.throttled_ns = Some(number()?),
            _ => {}
        }
    }
    Ok(stat)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_versions_side_by_side() {
        let groups =
            parse_cgroups("5:cpuset:/\n4:cpu,cpuacct:/user.slice\n1:name=systemd:/a:b\n0::/\n").unwrap();
        assert_eq!(
            groups.v1_paths("cpu.rt_runtime_us"),
            [
                "/sys/fs/cgroup/cpu,cpuacct/user.slice/cpu.rt_runtime_us",
                "/sys/fs/cgroup/cpu/user.slice/cpu.rt_runtime_us"
            ]
        );
        assert_eq!(
            groups.v2_paths("cpu.stat"),
            ["/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/unified/cpu.stat"]
        );
        assert_eq!(parse_cgroups("1:cpu:/\n").unwrap().v1_paths("x"), ["/sys/fs/cgroup/cpu/x"]);
    }

    #[test]
    fn groups_out_of_reach_are_left_alone() {
        assert_eq!(parse_cgroups("0::/../../etc\n4:cpu:relative\n"), Ok(Cgroups::default()));
        assert!(parse_cgroups("nonsense\n").is_err());
    }

    #[test]
    fn quotas() {
        let stat =
            parse_cpu_stat("usage_usec 5\nnr_periods 3\nnr_throttled 2\nthrottled_usec 1500\n").unwrap();
        assert_eq!((stat.throttled_periods, stat.throttled_ns), (Some(2), Some(1_500_000)));
        assert_eq!(parse_cpu_stat("throttled_time 7\n").unwrap().throttled_ns, Some(7));
        assert_eq!(parse_cpu_stat("usage_usec 5\n"), Ok(CpuStat::default()));
        assert!(parse_cpu_stat("nr_throttled x\n").is_err());
    }

    proptest! {
        #[test]
        fn parsers_are_total(text in "([0-9]?:?(cpu)?:?\\PC{0,12}|throttled_usec [0-9]{0,25}|\n){0,8}") {
            let _ = parse_cpu_stat(&text);
            if let Ok(groups) = parse_cgroups(&text) {
                let paths = [groups.v1_paths("x"), groups.v2_paths("x")].concat();
                prop_assert!(paths.iter().all(|path| !path.contains("/../")));
            }
        }
    }
}
