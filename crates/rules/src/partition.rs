//! An isolated partition of control groups as settings, in the order in which they are made.
//!
//! From 6.7 on the partition is created in a group below another: there it is valid next to groups
//! with the same CPUs, and no service manager removes it. Before that it has to be directly below
//! the root, where groups that name its CPUs have to give them up first; a child with cpuset
//! enabled keeps the controller from being disabled. Source: "Cpuset" in
//! Documentation/admin-guide/cgroup-v2.rst (local and remote partitions).

use std::fmt;

use facts::groups::{Group, Groups, Partition, Version};
use facts::survey::Survey;
use model::fact::{Fact, errno_name};
use model::isolation::{INNER_GROUP, OUTER_GROUP};
use model::setting::{CGROUP_MOUNT, Comparison, Key, PRESENT, Risk, Setting};
use model::units::{CpuSet, named_cpus};

/// Reason why no partition can be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The control groups of this machine do not support it.
    NotSupported(String),
    /// Another group or partition has these CPUs.
    InTheWay(String),
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Obstacle::NotSupported(why) | Obstacle::InTheWay(why)) = self;
        f.write_str(why)
    }
}

/// Settings that isolate these CPUs by a partition.
///
/// # Errors
/// Lack of support by the control groups of this machine, or the obstacle.
pub fn settings(survey: &Survey, cpus: &CpuSet) -> Result<Vec<Setting>, Obstacle> {
    let at_boot = survey.facts.isolated.known().cloned().unwrap_or_default();
    match &survey.groups {
        Fact::Known(groups) => of_groups(groups, cpus, &at_boot),
        other => Err(Obstacle::NotSupported(format!(
            "cgroup v2 cannot be read ({}): {}",
            unread(other),
            instead(cpus)
        ))),
    }
}

fn unread(groups: &Fact<Groups>) -> String {
    match groups {
        Fact::Refused(errno) => errno_name(*errno).to_string(),
        Fact::Malformed(what) => what.clone(),
        _ => "no partitions".to_owned(),
    }
}

/// Advice for a machine without partitions.
fn instead(cpus: &CpuSet) -> String {
    format!("boot with isolcpus=managed_irq,domain,{cpus} instead")
}

/// Settings for these groups; CPUs of `isolcpus=` (`at_boot`) may already be in a partition.
///
/// # Errors
/// As for [`settings`].
pub fn of_groups(groups: &Groups, cpus: &CpuSet, at_boot: &CpuSet) -> Result<Vec<Setting>, Obstacle> {
    require_version_two(groups, cpus).map_err(Obstacle::NotSupported)?;
    if let Some((group, shared)) = other_partition(groups, cpus, at_boot) {
        let own = if group.is_own { "run `onbeat isolate undo` first" } else { "omit it" };
        return Err(Obstacle::InTheWay(format!(
            "in the partition {} already: {}; {own}",
            group.path,
            named_cpus(&shared)
        )));
    }
    // A group has one list of CPUs: isolating other CPUs in it would release the present ones.
    if let Some(own) = groups.groups.iter().find(|group| is_own(group) && is_partition(group)) {
        let held = [&own.effective, &own.exclusive, &own.cpus].map(Fact::known);
        let held = held.into_iter().flatten().find(|held| !held.is_empty());
        let held = held.map_or_else(|| "others".to_owned(), named_cpus);
        return Err(Obstacle::InTheWay(format!(
            "onbeat has isolated {held} already: run `onbeat isolate undo` first, then isolate all of them \
             at once"
        )));
    }
    let top = groups.groups.iter().filter(|group| is_top(group) && !is_own(group));
    let having: Vec<(&Group, &CpuSet)> = top
        .filter_map(|group| Some((group, group.cpus.known()?)))
        .filter(|(_, has)| !has.and(cpus).is_empty())
        .collect();
    // For a nested partition, the kernel refuses CPUs whose loss leaves such a group none (EINVAL).
    if let Some((group, has)) = having.iter().find(|(_, has)| has.without(cpus).is_empty()) {
        return Err(Obstacle::InTheWay(format!(
            "the group {} would have no CPU left: add another CPU to its cpuset.cpus ({has}) first",
            group.path
        )));
    }
    Ok(if groups.has_nested_partitions() { nested(cpus) } else { direct(cpus, &having) })
}

/// Groups next to a new one whose CPUs are all among these; the kernel then refuses the list of the
/// new one (EINVAL, `cpus_excl_conflict()` of kernel/cgroup/cpuset.c).
pub fn groups_within<'a>(groups: &'a Groups, cpus: &CpuSet) -> Vec<&'a Group> {
    let is_within = |group: &&Group| {
        let has = group.cpus.known().filter(|has| !has.is_empty());
        is_top(group) && !is_own(group) && has.is_some_and(|has| has.without(cpus).is_empty())
    };
    groups.groups.iter().filter(is_within).collect()
}

fn require_version_two(groups: &Groups, cpus: &CpuSet) -> Result<(), String> {
    let instead = instead(cpus);
    if groups.version == Version::V1 {
        return Err(format!("only cgroup v1 is mounted, which has no partitions: {instead}"));
    }
    if !groups.controllers.iter().any(|name| name == "cpuset") {
        return Err(format!("cgroup v2 does not have the cpuset controller here: {instead}"));
    }
    if groups.root == CGROUP_MOUNT {
        Ok(())
    } else {
        Err(format!("cgroup v2 is not mounted at {CGROUP_MOUNT}: {instead}"))
    }
}

fn is_top(group: &Group) -> bool {
    group.path.matches('/').count() == 1
}

fn is_own(group: &Group) -> bool {
    let path = group.path.trim_start_matches('/');
    path == OUTER_GROUP || path.strip_prefix(OUTER_GROUP).is_some_and(|rest| rest.starts_with('/'))
}

/// True if it was made a partition, valid or not.
fn is_partition(group: &Group) -> bool {
    group.partition.known().is_some_and(|kind| *kind != Partition::Member)
}

struct Holder {
    path: String,
    is_own: bool,
}

/// A partition that has some of the CPUs, and these CPUs.
fn other_partition(groups: &Groups, cpus: &CpuSet, at_boot: &CpuSet) -> Option<(Holder, CpuSet)> {
    let shared = |set: &Fact<CpuSet>| set.known().map(|set| set.and(cpus)).filter(|set| !set.is_empty());
    let of = |group: &Group| {
        let found = shared(&group.effective).or_else(|| shared(&group.exclusive));
        let holder = Holder { path: group.path.clone(), is_own: is_own(group) };
        Some((holder, found.or_else(|| shared(&group.cpus))?))
    };
    let found = groups.groups.iter().filter(|group| is_partition(group)).find_map(of);
    // CPUs of isolcpus= may be in a partition as well.
    let hidden = groups.isolated.known().map(|all| all.without(at_boot).and(cpus));
    let hidden = hidden.filter(|shared| !shared.is_empty());
    let path = "that cpuset.cpus.isolated of the root shows".to_owned();
    found.or_else(|| Some((Holder { path, is_own: false }, hidden?)))
}

fn file(group: &str, name: &str) -> Key {
    match group {
        "" => Key::GroupFile(name.to_owned()),
        group => Key::GroupFile(format!("{group}/{name}")),
    }
}

/// Sets the CPUs of a group.
fn list(group: &str, name: &str, cpus: &CpuSet) -> Setting {
    Setting { readback: Comparison::List, ..Setting::new(file(group, name), cpus.to_string()) }
}

fn present(group: &str) -> Setting {
    Setting::new(Key::Group(format!("{group}/")), PRESENT)
}

/// Enables the controller for the groups below. Each process there receives the CPUs of its group
/// again and loses the mask that it had (before 6.2).
fn with_cpuset(group: &str) -> Setting {
    let key = file(group, "cgroup.subtree_control");
    Setting { readback: Comparison::Listed, moves_threads: group.is_empty(), ..Setting::new(key, "+cpuset") }
}

/// Takes the CPUs out of load balancing, and all threads off them. With nested groups, the kernel
/// also removes them from the mask of unbound workqueues, and forgets its former value if it is
/// written in between (`workqueue_unbound_exclude_cpumask()`).
fn isolated(group: &str) -> Setting {
    let key = file(group, "cpuset.cpus.partition");
    let partners = vec![Key::Sysfs("devices/virtual/workqueue/cpumask".to_owned())];
    Setting { risk: Risk::Medium, moves_threads: true, partners, ..Setting::new(key, "isolated") }
}

fn nested(cpus: &CpuSet) -> Vec<Setting> {
    vec![
        with_cpuset(""),
        present(OUTER_GROUP),
        list(OUTER_GROUP, "cpuset.cpus.exclusive", cpus),
        with_cpuset(OUTER_GROUP),
        present(INNER_GROUP),
        list(INNER_GROUP, "cpuset.cpus.exclusive", cpus),
        isolated(INNER_GROUP),
    ]
}

fn direct(cpus: &CpuSet, having: &[(&Group, &CpuSet)]) -> Vec<Setting> {
    let confined = having.iter().map(|(group, has)| {
        let confined = list(group.path.trim_start_matches('/'), "cpuset.cpus", &has.without(cpus));
        Setting { risk: Risk::Medium, moves_threads: true, ..confined }
    });
    let own = [
        with_cpuset(""),
        present(OUTER_GROUP),
        list(OUTER_GROUP, "cpuset.cpus", cpus),
        isolated(OUTER_GROUP),
        with_cpuset(OUTER_GROUP),
        present(INNER_GROUP),
    ];
    confined.chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::of_groups;
    use facts::groups::{Groups, read_groups};
    use host::MachineFiles;
    use host::access::Access;
    use model::units::CpuSet;

    /// Groups of a machine with these files, below the mount.
    fn groups(files: &str) -> Groups {
        let files = files.lines().filter_map(|line| line.trim().split_once(':'));
        let files = files.map(|(file, text)| {
            (format!("/sys/fs/cgroup/{file}"), Access::File(format!("{}\n", text.trim()).into_bytes()))
        });
        read_groups(&MachineFiles::in_memory(files.collect())).known().unwrap().clone()
    }

    fn settings(files: &str, cpus: &str) -> Result<Vec<String>, String> {
        let all = of_groups(&groups(files), &CpuSet::parse(cpus).unwrap(), &CpuSet::parse("3").unwrap());
        let all = all.map_err(|obstacle| obstacle.to_string())?;
        Ok(all.iter().map(|setting| format!("{} {}", setting.key, setting.wanted)).collect())
    }

    const NESTED: &str = "cgroup.controllers: cpuset cpu
        cpuset.cpus.isolated: ";

    #[test]
    fn a_group_in_a_group_where_the_kernel_can() {
        let expected = [
            "cgroup:cgroup.subtree_control +cpuset",
            "cgroup:onbeat/ present",
            "cgroup:onbeat/cpuset.cpus.exclusive 2-3",
            "cgroup:onbeat/cgroup.subtree_control +cpuset",
            "cgroup:onbeat/rt/ present",
            "cgroup:onbeat/rt/cpuset.cpus.exclusive 2-3",
            "cgroup:onbeat/rt/cpuset.cpus.partition isolated",
        ];
        let neighbour = format!("{NESTED}\na/cpuset.cpus: 0-3\na/cpuset.cpus.partition: member");
        assert_eq!(settings(NESTED, "2-3").unwrap(), expected);
        // No group of another program is changed.
        assert_eq!(settings(&neighbour, "2-3").unwrap(), expected);
        let by_group = "cgroup.controllers: cpuset
            a/cpuset.cpus.partition: member
            a/cpuset.cpus.exclusive: ";
        assert_eq!(settings(by_group, "2-3").unwrap(), expected);
    }

    #[test]
    fn directly_below_the_root_before_that() {
        let files = "cgroup.controllers: cpuset cpu
            a/cpuset.cpus.partition: member
            a/cpuset.cpus: 0-3
            a/b/cpuset.cpus.partition: member
            a/b/cpuset.cpus: 2-3
            c/cpuset.cpus.partition: member
            c/cpuset.cpus: 
            d/cpuset.cpus.partition: member
            d/cpuset.cpus: 0-1";
        let expected = [
            "cgroup:a/cpuset.cpus 0-1",
            "cgroup:cgroup.subtree_control +cpuset",
            "cgroup:onbeat/ present",
            "cgroup:onbeat/cpuset.cpus 2-3",
            "cgroup:onbeat/cpuset.cpus.partition isolated",
            "cgroup:onbeat/cgroup.subtree_control +cpuset",
            "cgroup:onbeat/rt/ present",
        ];
        assert_eq!(settings(files, "2-3").unwrap(), expected);
    }

    #[test]
    fn what_is_in_the_way_is_named() {
        let refused = |files: &str, words: &str| {
            let why = settings(files, "2-3").unwrap_err();
            assert!(why.contains(words), "{why}");
        };
        refused("cgroup.controllers: cpu memory", "isolcpus=managed_irq,domain,2-3");
        refused("unified/cgroup.controllers: cpuset", "not mounted at /sys/fs/cgroup");
        refused("cpuset/cpuset.cpus: 0-3", "cgroup v1");
        let partition = "b/cpuset.cpus.partition: isolated\nb/cpuset.cpus.effective: 3";
        refused(&format!("{NESTED}\n{partition}"), "in the partition /b already: CPU 3; omit it");
        refused("cgroup.controllers: cpuset\ncpuset.cpus.isolated: 2-3", "in the partition");
        let own = "onbeat/rt/cpuset.cpus.partition: isolated\nonbeat/rt/cpuset.cpus.effective: 2-3";
        let own = format!("onbeat/cpuset.cpus.partition: member\n{own}");
        refused(&format!("{NESTED}\n{own}"), "`onbeat isolate undo`");
        // Its CPUs need not be among the requested ones.
        let other = "onbeat/rt/cpuset.cpus.partition: isolated\nonbeat/rt/cpuset.cpus.effective: 1";
        let other = format!("onbeat/cpuset.cpus.partition: member\n{other}");
        refused(
            &format!("{NESTED}\n{other}"),
            "onbeat has isolated CPU 1 already: run `onbeat isolate undo`",
        );
        let broken = "onbeat/cpuset.cpus.partition: isolated invalid (Cpu list in cpuset.cpus not exclusive)";
        refused(&format!("{NESTED}\n{broken}"), "onbeat has isolated others already");
        let alone = "a/cpuset.cpus.partition: member\na/cpuset.cpus: 2";
        refused(&format!("{NESTED}\n{alone}"), "the group /a would have no CPU left");
    }
}
