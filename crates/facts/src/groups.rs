//! Control groups that decide on which CPUs tasks run, and for how much of the time.
//!
//! Source: "Cpuset" and "CPU Interface Files" in Documentation/admin-guide/cgroup-v2.rst, and
//! Documentation/admin-guide/cgroup-v1/cpusets.rst; version 1's quotas in
//! Documentation/scheduler/sched-bwc.rst. The hierarchies are looked for at systemd's mount points;
//! the mount table would also name the user's disks and servers. A separate cpuset file system
//! (`/dev/cpuset`) is not read.

use super::line::{excerpt, parse_cpus, parse_i64, parse_u64, parse_words};
use super::whole;
use host::MachineFiles;
use model::fact::Fact;
use model::units::CpuSet;

/// Limit of names that are read; further ones are counted as missed.
const NAMES_LIMIT: usize = 4096;

/// Depth below the root down to which groups are read: slices, and the groups in them.
const DEPTH: usize = 2;

/// Versions of control groups that a machine has mounted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Version 2 alone.
    V2,
    /// Version 2 next to hierarchies of version 1.
    Hybrid,
    /// Version 1 alone.
    V1,
}

/// The control groups of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    pub version: Version,
    /// Mount point of version 2, or the directory of version 1's hierarchies.
    pub root: String,
    /// Controllers of version 2; `cpuset` is missing if version 1 has it.
    pub controllers: Vec<String>,
    /// CPUs of all isolated partitions (`cpuset.cpus.isolated` of the root, 6.8 on), which
    /// `/sys/devices/system/cpu/isolated` does not list.
    pub isolated: Fact<CpuSet>,
    /// Version 2's groups that have a file for a partition or a quota, down to two levels, each
    /// before its children.
    pub groups: Vec<Group>,
    /// Version 1's cpusets, if they are mounted.
    pub cpusets: Option<Cpusets>,
    /// Version 1's groups of the controller `cpu` that have a file for a quota, down to two levels:
    /// path, and quota as in [`Group::quota`].
    pub old_quotas: Vec<(String, GroupQuota)>,
    /// Names over the limit, groups that could not be listed, and one more if a container hides the
    /// groups above it.
    pub missed: u64,
}

/// Runtime and period in us, or none for no limit.
pub type GroupQuota = Fact<Option<(u64, u64)>>;

/// A group of version 2. A fact is absent where its controller is not enabled for the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Path below the root, such as `/system.slice`, with the IDs of containers shortened.
    pub path: String,
    /// Requested CPUs; empty for no request.
    pub cpus: Fact<CpuSet>,
    /// CPUs reserved for partitions in it (6.7 on).
    pub exclusive: Fact<CpuSet>,
    /// CPUs in effect.
    pub effective: Fact<CpuSet>,
    /// Type and state of its partition.
    pub partition: Fact<Partition>,
    /// Microseconds of CPU time in each period of this number of microseconds; `None` without a
    /// quota.
    pub quota: GroupQuota,
    /// Requested memory nodes; empty for no request.
    pub mems: Fact<Vec<u32>>,
}

/// Partition type of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Partition {
    /// Not a partition.
    Member,
    /// Exclusive CPUs, among which load is balanced.
    Root,
    /// Exclusive CPUs without load balancing.
    Isolated,
    /// Requested, but not in effect.
    Invalid {
        /// `root` or `isolated`
        wanted: String,
        /// The kernel's reason; empty if it gives none.
        reason: String,
    },
}

/// The cpusets of version 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpusets {
    /// True if load is balanced over all CPUs, regardless of the sets below.
    pub balanced: Fact<bool>,
    /// Sets below the root, by name; their children are not read.
    pub sets: Vec<OldSet>,
}

/// A cpuset of version 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldSet {
    /// Path below the root, as [`Group::path`].
    pub path: String,
    pub cpus: Fact<CpuSet>,
    /// True if no sibling set may have any of its CPUs.
    pub exclusive: Fact<bool>,
    /// True if load is balanced among its CPUs.
    pub balanced: Fact<bool>,
}

impl Groups {
    /// True if a group below another can be a partition (6.7 on): the kernel then shows CPUs that
    /// are reserved for one.
    pub fn has_nested_partitions(&self) -> bool {
        self.isolated.known().is_some() || self.groups.iter().any(|group| group.exclusive.known().is_some())
    }
}

/// Reads the control groups of a machine; absent if none are mounted.
pub fn read_groups(host: &MachineFiles) -> Fact<Groups> {
    for (root, version) in [("/sys/fs/cgroup", Version::V2), ("/sys/fs/cgroup/unified", Version::Hybrid)] {
        match whole::text(host, &format!("{root}/cgroup.controllers")).parse(|text| parse_words(&text)) {
            Fact::Absent => {}
            controllers => return controllers.map(|controllers| gather(host, version, root, controllers)),
        }
    }
    host.list("/sys/fs/cgroup").then(|names| {
        if names.iter().any(|name| name.starts_with("cpu")) {
            Fact::Known(gather(host, Version::V1, "/sys/fs/cgroup", Vec::new()))
        } else {
            Fact::Absent
        }
    })
}

fn gather(host: &MachineFiles, version: Version, root: &str, controllers: Vec<String>) -> Groups {
    let mut reader = Reader { host, root, room: NAMES_LIMIT, groups: Vec::new(), missed: 0 };
    let isolated = match version {
        Version::V1 => Fact::Absent,
        _ => {
            reader.below("", 1);
            // The root of the whole tree is the only group without a type.
            reader.missed += u64::from(reader.read("", "cgroup.type", |_| Ok(())).known().is_some());
            reader.read("", "cpuset.cpus.isolated", parse_cpus)
        }
    };
    let cpusets = if version == Version::V2 { None } else { reader.cpusets() };
    let mut old_quotas = Vec::new();
    if version != Version::V2 {
        reader.root = "/sys/fs/cgroup/cpu";
        reader.old_quotas("", 1, &mut old_quotas);
    }
    let Reader { groups, missed, .. } = reader;
    Groups { version, root: root.to_owned(), controllers, isolated, groups, cpusets, old_quotas, missed }
}

struct Reader<'a> {
    host: &'a MachineFiles,
    root: &'a str,
    room: usize,
    groups: Vec<Group>,
    missed: u64,
}

impl Reader<'_> {
    fn read<T>(&self, path: &str, file: &str, parse: fn(&str) -> Result<T, String>) -> Fact<T> {
        whole::text(self.host, &format!("{}{path}/{file}", self.root)).parse(|text| parse(&text))
    }

    /// Paths of the possible groups below a group, within the limit.
    fn names(&mut self, path: &str) -> Vec<String> {
        let names = match self.host.list(&format!("{}{path}", self.root)) {
            Fact::Known(names) => names,
            // A file, or a group that no longer exists.
            Fact::Absent => return Vec::new(),
            _ => {
                self.missed += 1;
                return Vec::new();
            }
        };
        let mut paths: Vec<String> =
            names.iter().filter(|name| !is_file(name)).map(|name| format!("{path}/{name}")).collect();
        self.missed += paths.len().saturating_sub(self.room) as u64;
        paths.truncate(self.room);
        self.room -= paths.len();
        paths
    }

    fn below(&mut self, path: &str, depth: usize) {
        for path in self.names(path) {
            let partition = self.read(&path, "cpuset.cpus.partition", parse_partition);
            let quota = self.read(&path, "cpu.max", parse_quota);
            if partition == Fact::Absent && quota == Fact::Absent {
                // Controllers are inherited: if a group has none, neither have its children.
                continue;
            }
            self.groups.push(Group {
                path: short_path(&path),
                cpus: self.read(&path, "cpuset.cpus", parse_cpus),
                exclusive: self.read(&path, "cpuset.cpus.exclusive", parse_cpus),
                effective: self.read(&path, "cpuset.cpus.effective", parse_cpus),
                partition,
                quota,
                mems: self.read(&path, "cpuset.mems", parse_nodes),
            });
            if depth < DEPTH {
                self.below(&path, depth + 1);
            }
        }
    }

    fn old_quotas(&mut self, path: &str, depth: usize, found: &mut Vec<(String, GroupQuota)>) {
        for path in self.names(path) {
            let quota = self.read(&path, "cpu.cfs_quota_us", parse_i64);
            if quota == Fact::Absent {
                continue;
            }
            let quota = match quota.map(|us| u64::try_from(us).ok()) {
                // -1 stands for no quota.
                Fact::Known(Some(us)) => {
                    self.read(&path, "cpu.cfs_period_us", parse_u64).map(|period| Some((us, period)))
                }
                quota => quota.map(|_| None),
            };
            found.push((short_path(&path), quota));
            if depth < DEPTH {
                self.old_quotas(&path, depth + 1, found);
            }
        }
    }

    fn cpusets(&mut self) -> Option<Cpusets> {
        self.root = "/sys/fs/cgroup/cpuset";
        let balanced = self.read("", "cpuset.sched_load_balance", parse_switch);
        if balanced == Fact::Absent {
            return None;
        }
        let mut sets = Vec::new();
        for path in self.names("") {
            let cpus = self.read(&path, "cpuset.cpus", parse_cpus);
            if cpus != Fact::Absent {
                let exclusive = self.read(&path, "cpuset.cpu_exclusive", parse_switch);
                let balanced = self.read(&path, "cpuset.sched_load_balance", parse_switch);
                sets.push(OldSet { path: short_path(&path), cpus, exclusive, balanced });
            }
        }
        Some(Cpusets { balanced, sets })
    }
}

/// True for a controller's file, whose name begins with that of the controller; anything else is a
/// group or a file that cannot be recognized from inside.
fn is_file(name: &str) -> bool {
    const CONTROLLERS: &str =
        "cgroup cpu cpuacct cpuset dmem hugetlb io irq memory misc perf_event pids rdma";
    let controller = name.split_once('.').map(|(controller, _)| controller);
    controller.is_some_and(|controller| CONTROLLERS.split(' ').any(|known| known == controller))
        || ["tasks", "notify_on_release", "release_agent"].contains(&name)
}

/// A path without control characters, and with only the first 12 of the 64 digits of a container's
/// ID, as its manager displays it.
fn short_path(path: &str) -> String {
    let mut short = String::new();
    let mut rest = path;
    while let Some(first) = rest.chars().next() {
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if digits > 0 {
            short.push_str(&rest[..if digits >= 64 { 12 } else { digits }]);
            rest = &rest[digits..];
        } else {
            short.push(if first.is_control() { '?' } else { first });
            rest = &rest[first.len_utf8()..];
        }
    }
    short
}

/// Parses `cpuset.cpus.partition`, such as `isolated invalid (Parent is not a partition root)`.
pub fn parse_partition(text: &str) -> Result<Partition, String> {
    let text = text.trim();
    match text {
        "member" => return Ok(Partition::Member),
        "root" => return Ok(Partition::Root),
        "isolated" => return Ok(Partition::Isolated),
        _ => {}
    }
    let expected = || format!("expected member, root or isolated, found '{}'", excerpt(text));
    let (wanted, rest) = text.split_once(" invalid").ok_or_else(expected)?;
    let reason = rest.trim().trim_start_matches('(').trim_end_matches(')');
    if ["root", "isolated"].contains(&wanted) && (rest.is_empty() || rest.starts_with(" (")) {
        Ok(Partition::Invalid { wanted: wanted.to_owned(), reason: excerpt(reason) })
    } else {
        Err(expected())
    }
}

/// Parses `cpu.max`: the quota, which can be `max`, and the period.
pub fn parse_quota(text: &str) -> Result<Option<(u64, u64)>, String> {
    let words = parse_words(text)?;
    let [quota, period] = words.as_slice() else {
        return Err(format!("expected a quota and a period, found '{}'", excerpt(text.trim())));
    };
    let period = parse_u64(period)?;
    if quota == "max" { Ok(None) } else { Ok(Some((parse_u64(quota)?, period))) }
}

/// Parses a list of memory nodes.
pub fn parse_nodes(text: &str) -> Result<Vec<u32>, String> {
    let nodes = CpuSet::parse(text);
    let nodes =
        nodes.map_err(|_| format!("expected a list of memory nodes, found '{}'", excerpt(text.trim())))?;
    Ok(nodes.iter().map(|node| node.0).collect())
}

/// Parses a file that holds 0 or 1.
fn parse_switch(text: &str) -> Result<bool, String> {
    match text.trim() {
        "0" => Ok(false),
        "1" => Ok(true),
        other => Err(format!("expected 0 or 1, found '{}'", excerpt(other))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::tree;
    use super::*;
    use host::access::Access;
    use proptest::prelude::*;

    /// Facts of a machine; its capture has to give the same.
    fn read_tree(text: &str) -> Fact<Groups> {
        let (host, _dir) = tree(text);
        let host = host.recording();
        let live = read_groups(&host);
        assert_eq!(read_groups(&MachineFiles::in_memory(host.recorded().unwrap().accesses())), live);
        live
    }

    #[test]
    fn slices_and_what_is_in_them() {
        let id = "0123456789abcdef".repeat(4);
        let groups = read_tree(&format!(
            "/sys/fs/cgroup/cgroup.controllers: cpuset cpu io
             /sys/fs/cgroup/cpuset.cpus.isolated: 2-3
             /sys/fs/cgroup/cpu.stat: usage_usec 1
             /sys/fs/cgroup/other.file: 1
             /sys/fs/cgroup/rt.slice/cpuset.cpus: 2-3
             /sys/fs/cgroup/rt.slice/cpuset.cpus.effective: 2-3
             /sys/fs/cgroup/rt.slice/cpuset.cpus.partition: isolated
             /sys/fs/cgroup/rt.slice/cpuset.mems: 0
             /sys/fs/cgroup/rt.slice/cpu.max: max 100000
             /sys/fs/cgroup/system.slice/cpu.max: max 100000
             /sys/fs/cgroup/system.slice/docker-{id}.scope/cpu.max: 50000 100000
             /sys/fs/cgroup/system.slice/docker-{id}.scope/deep/cpu.max: 1 100000
             /sys/fs/cgroup/user.slice/memory.max: max
             /sys/fs/cgroup/user.slice/a/memory.max: max"
        ));
        let groups = groups.known().unwrap();
        let paths: Vec<&str> = groups.groups.iter().map(|group| group.path.as_str()).collect();
        assert_eq!(paths, ["/rt.slice", "/system.slice", "/system.slice/docker-0123456789ab.scope"]);
        assert_eq!((groups.version, &groups.cpusets, groups.missed), (Version::V2, &None, 0));
        assert_eq!(groups.isolated.known().map(CpuSet::to_string).as_deref(), Some("2-3"));
        let (rt, docker) = (&groups.groups[0], &groups.groups[2]);
        assert_eq!((&rt.partition, &rt.quota), (&Fact::Known(Partition::Isolated), &Fact::Known(None)));
        assert_eq!(rt.mems, Fact::Known(vec![0]));
        assert_eq!((&docker.quota, &docker.cpus), (&Fact::Known(Some((50_000, 100_000))), &Fact::Absent));
    }

    #[test]
    fn version_one_next_to_two_and_alone() {
        let old = "/sys/fs/cgroup/cpuset/cpuset.sched_load_balance: 0
             /sys/fs/cgroup/cpuset/cpuset.cpus: 0-3
             /sys/fs/cgroup/cpuset/tasks: 1
             /sys/fs/cgroup/cpuset/rt/cpuset.cpus: 3
             /sys/fs/cgroup/cpuset/rt/cpuset.cpu_exclusive: 1
             /sys/fs/cgroup/cpuset/rt/cpuset.sched_load_balance: x";
        for (more, version, root) in [
            ("/sys/fs/cgroup/unified/cgroup.controllers:", Version::Hybrid, "/sys/fs/cgroup/unified"),
            ("", Version::V1, "/sys/fs/cgroup"),
        ] {
            let groups = read_tree(&format!("{old}\n{more}"));
            let groups = groups.known().unwrap();
            assert_eq!((groups.version, groups.root.as_str()), (version, root));
            let sets = groups.cpusets.as_ref().unwrap();
            assert_eq!((&sets.balanced, sets.sets.len()), (&Fact::Known(false), 1));
            assert_eq!((sets.sets[0].path.as_str(), &sets.sets[0].exclusive), ("/rt", &Fact::Known(true)));
            assert!(matches!(sets.sets[0].balanced, Fact::Malformed(_)));
        }
    }

    #[test]
    fn nothing_mounted_and_nothing_to_be_read() {
        assert_eq!(read_tree("/sys/fs/cgroup/memory/tasks: 1"), Fact::Absent);
        assert_eq!(read_tree("/proc/x: 1"), Fact::Absent);
        let refused = read_tree("/sys/fs/cgroup/cgroup.controllers -> cgroup.controllers");
        assert_eq!(refused, Fact::Refused(libc::ELOOP));
        let groups = read_tree(
            "/sys/fs/cgroup/cgroup.controllers: cpu
             /sys/fs/cgroup/cgroup.type: domain threaded
             /sys/fs/cgroup/a/cpu.max -> cpu.max
             /sys/fs/cgroup/a/b -> b",
        );
        let groups = groups.known().unwrap();
        assert_eq!((groups.groups.len(), groups.missed), (2, 1));
        assert_eq!(groups.groups[0].quota, Fact::Refused(libc::ELOOP));
    }

    #[test]
    fn groups_over_the_bound_are_counted() {
        let quota = || Access::File(b"max 100000\n".to_vec());
        let paths = (0..NAMES_LIMIT + 9).map(|n| (format!("/sys/fs/cgroup/{n}/cpu.max"), quota()));
        let controllers = ("/sys/fs/cgroup/cgroup.controllers".to_owned(), Access::File(b"cpu\n".to_vec()));
        let groups = read_groups(&MachineFiles::in_memory(paths.chain([controllers]).collect()));
        assert_eq!(groups.known().map(|found| (found.groups.len(), found.missed)), Some((NAMES_LIMIT, 9)));
    }

    #[test]
    fn partitions_and_quotas() {
        let invalid =
            |wanted: &str, reason: &str| Partition::Invalid { wanted: wanted.into(), reason: reason.into() };
        for (text, expected) in [
            ("member\n", Partition::Member),
            ("root\n", Partition::Root),
            ("root invalid\n", invalid("root", "")),
            (
                "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n",
                invalid("isolated", "Cpu list in cpuset.cpus not exclusive"),
            ),
        ] {
            assert_eq!(parse_partition(text), Ok(expected), "{text}");
        }
        for bad in ["", "isolated valid", "member invalid", "root invalidated", "isolated isolated"] {
            assert!(parse_partition(bad).is_err(), "{bad}");
        }
        for bad in ["", "max", "1 2 3", "-1 100000", "max x"] {
            assert!(parse_quota(bad).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn parsers_are_total(text in "((root|isolated|max)?( invalid)?( \\()?[0-9-]{0,6}\\PC{0,9}\n?){0,3}") {
            let _ = (parse_partition(&text), parse_quota(&text), parse_nodes(&text), parse_switch(&text));
        }

        #[test]
        fn paths_are_fit_to_be_shown(path in "[\\PC\n/]{0,9}[0-9a-f]{0,70}[\\PC\n/]{0,9}") {
            let short = short_path(&path);
            prop_assert!(!short.contains(char::is_control));
            prop_assert!(!short.as_bytes().windows(64).any(|part| part.iter().all(u8::is_ascii_hexdigit)));
        }
    }
}
