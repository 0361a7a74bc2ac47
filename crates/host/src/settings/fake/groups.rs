//! Control groups of the fake kernel: a group has a controller's files if its parent enables the
//! controller, and a partition is valid under the rules of Documentation/admin-guide/cgroup-v2.rst.

use std::collections::{BTreeMap, BTreeSet};

use model::setting::{Comparison, Key, PRESENT, Setting};
use model::units::CpuSet;

use super::{Choice, Traits, Written, open_setting};

/// Group of a fake machine that exists after its boot.
#[derive(Clone, Copy, Debug)]
pub struct FakeGroup {
    /// `""` for the root.
    pub path: &'static str,
    /// Controllers enabled for its children.
    pub subtree: &'static [&'static str],
    /// Its `cpuset.cpus`.
    pub cpus: &'static str,
}

/// Controllers of this kernel, in the order in which it lists them.
const CONTROLLERS: [&str; 6] = ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"];

const NOT_EXCLUSIVE: &str = "isolated invalid (Cpu list in cpuset.cpus not exclusive)";
const NO_PARENT: &str = "isolated invalid (Parent is not a partition root)";
const ALL_TAKEN: &str = "isolated invalid (Parent unable to distribute cpu downstream)";

#[derive(Clone, Debug)]
struct Group {
    subtree: BTreeSet<&'static str>,
    cpus: CpuSet,
    exclusive: CpuSet,
    /// `member`, `isolated`, or the reason for which it is invalid.
    partition: &'static str,
}

impl Group {
    fn new(subtree: &[&'static str], cpus: &str) -> Group {
        Group {
            subtree: subtree.iter().copied().collect(),
            cpus: CpuSet::parse(cpus).unwrap_or_else(|error| panic!("{error}")),
            exclusive: CpuSet::default(),
            partition: "member",
        }
    }

    /// CPUs that it requests as a partition.
    fn wanted(&self) -> &CpuSet {
        if self.exclusive.is_empty() { &self.cpus } else { &self.exclusive }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Groups {
    all: BTreeMap<String, Group>,
    traits: Traits,
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn overlap(one: &CpuSet, other: &CpuSet) -> bool {
    !one.and(other).is_empty()
}

impl Groups {
    pub fn new(rows: &[FakeGroup], traits: Traits) -> Groups {
        let mut all: BTreeMap<String, Group> =
            rows.iter().map(|row| (row.path.to_owned(), Group::new(row.subtree, row.cpus))).collect();
        all.entry(String::new()).or_insert_with(|| Group::new(&[], ""));
        Groups { all, traits }
    }

    pub fn exists(&self, path: &str) -> bool {
        self.all.contains_key(path.trim_end_matches('/'))
    }

    fn has_cpuset(&self, path: &str) -> bool {
        !path.is_empty() && self.all.get(parent(path)).is_some_and(|group| group.subtree.contains("cpuset"))
    }

    fn children<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a String, &'a Group)> {
        self.all.iter().filter(move |(name, _)| !name.is_empty() && parent(name) == path)
    }

    pub fn below(&self, path: &str) -> Vec<String> {
        self.children(path).map(|(name, _)| name.clone()).collect()
    }

    fn siblings<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Group> {
        self.children(parent(path)).filter(move |(name, _)| *name != path).map(|(_, group)| group)
    }

    /// CPUs of all valid partitions.
    pub fn isolated(&self) -> CpuSet {
        let valid = self.all.values().filter(|group| group.partition == "isolated");
        valid.fold(CpuSet::default(), |all, group| all.or(group.wanted()))
    }

    /// CPUs on which the processes of a group run.
    pub fn effective(&self, path: &str) -> CpuSet {
        let Some(group) = self.all.get(path).filter(|_| !path.is_empty()) else {
            return self.traits.all().without(&self.isolated());
        };
        if group.partition == "isolated" {
            return group.wanted().clone();
        }
        let above = self.effective(parent(path));
        let own = group.cpus.and(&above);
        if own.is_empty() { above } else { own }
    }

    pub fn effective_of_all(&self) -> BTreeMap<String, CpuSet> {
        self.all.keys().map(|path| (path.clone(), self.effective(path))).collect()
    }

    /// State of a new or existing partition.
    fn judge(&self, path: &str, group: &Group) -> &'static str {
        let wanted = group.wanted();
        let nested = !parent(path).is_empty();
        let above = self.all.get(parent(path)).map(|parent| &parent.exclusive);
        let is_remote = self.traits.exclusive
            && nested
            && !group.exclusive.is_empty()
            && above.is_some_and(|above| group.exclusive.without(above).is_empty());
        if nested && !is_remote {
            return NO_PARENT;
        }
        if wanted.is_empty() || (!nested && self.siblings(path).any(|other| overlap(&other.cpus, wanted))) {
            return NOT_EXCLUSIVE;
        }
        let valid = self.all.iter().filter(|(name, group)| *name != path && group.partition == "isolated");
        let others = valid.fold(CpuSet::default(), |all, (_, group)| all.or(group.wanted()));
        if overlap(&others, wanted) {
            return NOT_EXCLUSIVE;
        }
        if self.traits.all().without(&others).without(wanted).is_empty() {
            return ALL_TAKEN;
        }
        "isolated"
    }

    /// Updates partitions that have become invalid; none becomes valid again by itself.
    fn settle(&mut self) {
        let valid = self.all.iter().filter(|(_, group)| group.partition == "isolated");
        let judged: Vec<(String, &'static str)> =
            valid.map(|(path, group)| (path.clone(), self.judge(path, group))).collect();
        for (path, partition) in judged {
            if let Some(group) = self.all.get_mut(&path) {
                group.partition = partition;
            }
        }
    }

    pub fn make(&mut self, path: &str) -> Written {
        let path = path.trim_end_matches('/');
        match (self.all.contains_key(path), self.all.contains_key(parent(path))) {
            (true, _) => return Err(libc::EEXIST),
            (_, false) => return Err(libc::ENOENT),
            _ => {}
        }
        self.all.insert(path.to_owned(), Group::new(&[], ""));
        Ok(())
    }

    pub fn remove(&mut self, path: &str, occupied: impl Fn(&str) -> bool) -> Written {
        let path = path.trim_end_matches('/');
        if !self.all.contains_key(path) {
            return Err(libc::ENOENT);
        }
        if path.is_empty() || occupied(path) || self.children(path).next().is_some() {
            return Err(libc::EBUSY);
        }
        self.all.remove(path);
        self.settle();
        Ok(())
    }

    fn file<'a>(&'a self, file: &'a str) -> Option<(&'a str, &'a str, &'a Group)> {
        let (path, name) = file.rsplit_once('/').unwrap_or(("", file));
        let group = self.all.get(path)?;
        let is_there = match name {
            "cgroup.subtree_control" => true,
            "cpuset.cpus.effective" => path.is_empty() || self.has_cpuset(path),
            "cpuset.cpus.isolated" => path.is_empty() && self.traits.exclusive,
            "cpuset.cpus.exclusive" => self.has_cpuset(path) && self.traits.exclusive,
            "cpuset.cpus" | "cpuset.cpus.partition" => self.has_cpuset(path),
            _ => false,
        };
        is_there.then_some((path, name, group))
    }

    pub fn read(&self, file: &str) -> Option<String> {
        let (path, name, group) = self.file(file)?;
        Some(match name {
            "cgroup.subtree_control" => {
                let listed: Vec<&str> =
                    CONTROLLERS.iter().copied().filter(|one| group.subtree.contains(one)).collect();
                listed.join(" ")
            }
            "cpuset.cpus.isolated" => self.isolated().to_string(),
            "cpuset.cpus.effective" => self.effective(path).to_string(),
            "cpuset.cpus.exclusive" => group.exclusive.to_string(),
            "cpuset.cpus" => group.cpus.to_string(),
            _ => group.partition.to_owned(),
        })
    }

    pub fn write(&mut self, file: &str, value: &str) -> Written {
        let (path, name, group) = self.file(file).ok_or(libc::ENOENT)?;
        let (path, mut group) = (path.to_owned(), group.clone());
        match name {
            "cgroup.subtree_control" => group.subtree = self.controlled(&path, &group, value)?,
            "cpuset.cpus.exclusive" => {
                let cpus = self.cpus(value)?;
                let takes = |other: &Group| {
                    overlap(&other.exclusive, &cpus)
                        || (!other.cpus.is_empty() && other.cpus.without(&cpus).is_empty())
                };
                if self.siblings(&path).any(takes) {
                    return Err(libc::EINVAL);
                }
                group.exclusive = cpus;
            }
            "cpuset.cpus" => group.cpus = self.cpus(value)?,
            "cpuset.cpus.partition" if value == "isolated" => {
                group.partition = "member";
                group.partition = self.judge(&path, &group);
            }
            "cpuset.cpus.partition" if value == "member" => group.partition = "member",
            _ => return Err(libc::EINVAL),
        }
        let lost = !group.subtree.contains("cpuset");
        self.all.insert(path.clone(), group);
        if lost {
            let below: Vec<String> = self.children(&path).map(|(name, _)| name.clone()).collect();
            for name in below {
                let subtree = self.all.remove(&name).map(|group| group.subtree).unwrap_or_default();
                self.all.insert(name, Group { subtree, ..Group::new(&[], "") });
            }
        }
        self.settle();
        Ok(())
    }

    fn cpus(&self, value: &str) -> Result<CpuSet, i32> {
        let cpus = CpuSet::parse(value).map_err(|_| libc::EINVAL)?;
        if cpus.without(&self.traits.all()).is_empty() { Ok(cpus) } else { Err(libc::EINVAL) }
    }

    /// Applies all of the words, or none.
    fn controlled(&self, path: &str, group: &Group, value: &str) -> Result<BTreeSet<&'static str>, i32> {
        let mut subtree = group.subtree.clone();
        for word in value.split_whitespace() {
            let named = |name: &str| CONTROLLERS.iter().copied().find(|known| *known == name);
            match (word.strip_prefix('+'), word.strip_prefix('-')) {
                (Some(name), _) => {
                    let known = named(name).ok_or(libc::EINVAL)?;
                    let above = self.all.get(parent(path)).filter(|_| !path.is_empty());
                    if above.is_some_and(|above| !above.subtree.contains(known)) {
                        return Err(libc::ENOENT);
                    }
                    subtree.insert(known);
                }
                (_, Some(name)) => {
                    let known = named(name).ok_or(libc::EINVAL)?;
                    if self.children(path).any(|(_, child)| child.subtree.contains(known)) {
                        return Err(libc::EBUSY);
                    }
                    subtree.remove(known);
                }
                _ => return Err(libc::EINVAL),
            }
        }
        Ok(subtree)
    }

    pub fn snapshot(&self) -> BTreeMap<String, String> {
        let of = |(path, group): (&String, &Group)| {
            (format!("cgroup:{path}/"), format!("{:?} {} {}", group.subtree, group.cpus, group.exclusive))
        };
        let partition =
            |(path, group): (&String, &Group)| (format!("cgroup:{path}/ is"), group.partition.to_owned());
        self.all.iter().map(of).chain(self.all.iter().map(partition)).collect()
    }

    /// Groups to try, also ones that do not exist yet.
    pub fn choices(&self, traits: Traits) -> Vec<Choice> {
        let own = ["onbeat", "onbeat/rt"];
        let values = |values: &[&str]| values.iter().map(ToString::to_string).collect::<Vec<String>>();
        let mut all = Vec::new();
        for path in own {
            let key = Key::Group(format!("{path}/"));
            all.push(Choice { setting: open_setting(key, Comparison::Exact), values: values(&[PRESENT]) });
        }
        let subtree = ["+cpuset", "+memory", "-memory", "+hugetlb -pids", "+nonsense"];
        for path in ["", "onbeat/"] {
            let key = Key::GroupFile(format!("{path}cgroup.subtree_control"));
            // Disabling a controller removes its values: no plan requests that alone.
            let setting = open_setting(key, Comparison::Listed);
            all.push(Choice { setting, values: values(&subtree) });
        }
        let partitions = own.map(|path| Key::GroupFile(format!("{path}/cpuset.cpus.partition")));
        let there = self.all.keys().map(String::as_str).filter(|path| !path.is_empty());
        for path in there.chain(own).collect::<BTreeSet<&str>>() {
            let setting = |name: &str, readback| {
                let key = Key::GroupFile(format!("{path}/{name}"));
                let partners = partitions.iter().filter(|partition| **partition != key).cloned().collect();
                Setting { partners, moves_threads: true, ..open_setting(key, readback) }
            };
            all.push(Choice {
                setting: setting("cpuset.cpus", Comparison::List),
                values: values(&["0-1", "2-3", "3", "2,3", "", "7"]),
            });
            if own.contains(&path) {
                let setting = setting("cpuset.cpus.partition", Comparison::Exact);
                let partners = traits.workqueues_follow.map(super::files::key);
                let partners = partners.into_iter().chain(setting.partners.clone()).collect();
                all.push(Choice {
                    setting: Setting { partners, ..setting },
                    values: values(&["isolated", "member", "nonsense"]),
                });
                all.push(Choice {
                    setting: setting_of_exclusive(path, &partitions),
                    values: values(&["2-3", "3", "0-3", ""]),
                });
            }
        }
        all
    }
}

fn setting_of_exclusive(path: &str, partitions: &[Key]) -> Setting {
    let key = Key::GroupFile(format!("{path}/cpuset.cpus.exclusive"));
    Setting { partners: partitions.to_vec(), moves_threads: true, ..open_setting(key, Comparison::List) }
}
