//! Where the load of a process on isolated CPUs goes: its own group has these CPUs alone, so the
//! load's group is made above the partition. Source: Documentation/admin-guide/cgroup-v2.rst,
//! "cpuset.cpus.partition" and "cpuset.cpus.effective".

use std::fs;
use std::path::{Path, PathBuf};

use model::isolation::OUTER_GROUP;
use model::units::CpuSet;

/// The group above an isolated partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beside {
    pub group: PathBuf,
    pub cpus: CpuSet,
}

/// The CPUs beside the isolated partition in which this process is; `None` where it is in none.
pub fn cpus_beside_partition() -> Option<CpuSet> {
    beside_own().map(|beside| beside.cpus)
}

/// What is beside the own partition.
fn beside_own() -> Option<Beside> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (mount, own) = mounted_group(&read("/proc/self/mounts"), &read("/proc/self/cgroup"), "cgroup2", "")?;
    beside(&mount, &own)
}

/// The group for a load on these CPUs, where the own one is isolated and has not all of them.
pub(super) fn group_beside(cpus: &CpuSet) -> Option<PathBuf> {
    let beside = beside_own()?;
    cpus.without(&beside.cpus).is_empty().then_some(beside.group)
}

/// The same of any group. The group of an isolation of onbeat's is passed over: it goes with the
/// isolation.
fn beside(mount: &Path, own: &Path) -> Option<Beside> {
    let below_mount = |group: &&Path| group.starts_with(mount) && *group != mount;
    let partition = own.ancestors().take_while(below_mount).find(|group| is_isolated(group))?;
    let outer = mount.join(OUTER_GROUP);
    let group = partition.ancestors().skip(1).find(|above| *above != outer)?;
    let with_cpus = group.ancestors().take_while(|above| above.starts_with(mount));
    let cpus = with_cpus.filter_map(cpus_of).next()?;
    Some(Beside { group: group.to_owned(), cpus })
}

/// Whether it is in force: the kernel says `isolated invalid (...)` of one that is not.
fn is_isolated(group: &Path) -> bool {
    fs::read_to_string(group.join("cpuset.cpus.partition")).is_ok_and(|kind| kind.trim() == "isolated")
}

/// A group without the controller has no such file, and the CPUs of the one above it.
fn cpus_of(group: &Path) -> Option<CpuSet> {
    CpuSet::parse(fs::read_to_string(group.join("cpuset.cpus.effective")).ok()?.trim()).ok()
}

/// The own group of a version or controller, from the texts of /proc/self/mounts and
/// /proc/self/cgroup (cgroups(7)).
pub(super) fn own_group(mounts: &str, groups: &str, kind: &str, controller: &str) -> Option<PathBuf> {
    mounted_group(mounts, groups, kind, controller).map(|(_, own)| own)
}

/// The mount and the own group below it.
fn mounted_group(mounts: &str, groups: &str, kind: &str, controller: &str) -> Option<(PathBuf, PathBuf)> {
    let mounted = |wanted: &str, option: &str| {
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ').skip(1);
            let (place, kind, options) = (fields.next()?, fields.next()?, fields.next()?);
            let has = option.is_empty() || options.split(',').any(|word| word == option);
            (kind == wanted && has).then_some(place)
        })
    };
    let own = |controller: &str| {
        groups.lines().find_map(|line| {
            let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
            let is_this = controllers.split(',').any(|name| name == controller);
            // A path that begins with `/..` is outside of what this process can see.
            (is_this && !path.starts_with("/..")).then(|| path.trim_start_matches('/'))
        })
    };
    let mount = PathBuf::from(mounted(kind, controller)?);
    let own = mount.join(own(controller)?);
    Some((mount, own))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(path: &Path, partition: &str, cpus: &str) {
        fs::create_dir_all(path).unwrap();
        fs::write(path.join("cpuset.cpus.partition"), partition).unwrap();
        fs::write(path.join("cpuset.cpus.effective"), cpus).unwrap();
    }

    #[test]
    fn a_load_of_an_isolated_process_goes_above_its_partition() {
        let place = tempfile::tempdir().unwrap();
        let mount = place.path();
        fs::write(mount.join("cpuset.cpus.effective"), "0-1\n").unwrap();
        group(&mount.join("onbeat"), "member\n", "0-1\n");
        group(&mount.join("onbeat/rt"), "isolated\n", "2-3\n");
        group(&mount.join("onbeat/rt/below"), "member\n", "2-3\n");
        let root = Some(Beside { group: mount.to_owned(), cpus: CpuSet::parse("0-1").unwrap() });
        assert_eq!(beside(mount, &mount.join("onbeat/rt")), root);
        assert_eq!(beside(mount, &mount.join("onbeat/rt/below")), root);
        // Before Linux 6.8 the outer group is the partition.
        group(&mount.join("onbeat"), "isolated\n", "2-3\n");
        group(&mount.join("onbeat/rt"), "member\n", "2-3\n");
        assert_eq!(beside(mount, &mount.join("onbeat/rt")), root);
    }

    #[test]
    fn the_limits_above_another_partition_hold_for_the_load() {
        let place = tempfile::tempdir().unwrap();
        let mount = place.path();
        fs::write(mount.join("cpuset.cpus.effective"), "0-7\n").unwrap();
        group(&mount.join("machine"), "member\n", "0-3\n");
        // This one has no cpuset of its own.
        fs::create_dir_all(mount.join("machine/a")).unwrap();
        group(&mount.join("machine/a/rt"), "isolated\n", "4\n");
        let above = Beside { group: mount.join("machine/a"), cpus: CpuSet::parse("0-3").unwrap() };
        assert_eq!(beside(mount, &mount.join("machine/a/rt")), Some(above));
    }

    #[test]
    fn what_is_in_no_partition_in_force_keeps_its_group() {
        let place = tempfile::tempdir().unwrap();
        let mount = place.path();
        group(mount, "isolated\n", "0-7\n");
        group(&mount.join("a"), "isolated invalid (Cpu list in cpuset.cpus not exclusive)\n", "0-7\n");
        group(&mount.join("b"), "root\n", "0-7\n");
        fs::create_dir_all(mount.join("c")).unwrap();
        for own in ["", "a", "b", "c"] {
            assert_eq!(beside(mount, &mount.join(own)), None, "{own}");
        }
    }
}
