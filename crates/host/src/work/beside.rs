//! Group for the load of a process on isolated CPUs: the process's group has only these CPUs, so
//! the load's group is created above the partition. Source:
//! Documentation/admin-guide/cgroup-v2.rst, "cpuset.cpus.partition" and "cpuset.cpus.effective".

use std::fs;
use std::path::{Path, PathBuf};

use model::isolation::OUTER_GROUP;
use model::units::CpuSet;

/// Group above an isolated partition, with its CPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beside {
    pub group: PathBuf,
    pub cpus: CpuSet,
}

/// CPUs outside of the isolated partition of this process; `None` if it is in no partition.
pub fn cpus_beside_partition() -> Option<CpuSet> {
    beside_own().map(|beside| beside.cpus)
}

/// Group above the partition of this process.
fn beside_own() -> Option<Beside> {
    let read = |path| fs::read_to_string(path).unwrap_or_default();
    let (mount, own) = mounted_group(&read("/proc/self/mounts"), &read("/proc/self/cgroup"), "cgroup2", "")?;
    beside(&mount, &own)
}

/// Group for a load on these CPUs, if this process is in a partition and the group above has them.
pub(super) fn group_beside(cpus: &CpuSet) -> Option<PathBuf> {
    let beside = beside_own()?;
    cpus.without(&beside.cpus).is_empty().then_some(beside.group)
}

/// Group above the partition of any group. The outer group of an isolation by onbeat is skipped,
/// because it is removed with the isolation.
fn beside(mount: &Path, own: &Path) -> Option<Beside> {
    let below_mount = |group: &&Path| group.starts_with(mount) && *group != mount;
    let partition = own.ancestors().take_while(below_mount).find(|group| is_isolated(group))?;
    let outer = mount.join(OUTER_GROUP);
    let group = partition.ancestors().skip(1).find(|above| *above != outer)?;
    let with_cpus = group.ancestors().take_while(|above| above.starts_with(mount));
    let cpus = with_cpus.filter_map(cpus_of).next()?;
    Some(Beside { group: group.to_owned(), cpus })
}

/// True for a valid partition: an invalid one reads `isolated invalid (...)`.
fn is_isolated(group: &Path) -> bool {
    fs::read_to_string(group.join("cpuset.cpus.partition")).is_ok_and(|kind| kind.trim() == "isolated")
}

/// Effective CPUs; none for a group without the controller, which has those of its parent.
fn cpus_of(group: &Path) -> Option<CpuSet> {
    CpuSet::parse(fs::read_to_string(group.join("cpuset.cpus.effective")).ok()?.trim()).ok()
}

/// Group of this process for a version or controller, from the texts of /proc/self/mounts and
/// /proc/self/cgroup (cgroups(7)).
pub(super) fn own_group(mounts: &str, groups: &str, kind: &str, controller: &str) -> Option<PathBuf> {
    mounted_group(mounts, groups, kind, controller).map(|(_, own)| own)
}

/// Mount and the group of this process below it.
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
            // A path that starts with `/..` is not visible to this process.
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
        // This group has no cpuset.
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
