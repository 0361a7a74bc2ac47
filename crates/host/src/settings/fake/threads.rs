//! Threads of the fake kernel, each with its affinity, policy and group.

use std::collections::BTreeMap;

use model::setting::{Comparison, Key, Setting, TaskSetting};
use model::units::CpuSet;

use super::super::GroupProcess;
use super::{Choice, Traits, Written, open_setting};

/// Kind of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// A user process with one thread.
    User,
    /// A kernel thread that may be moved.
    Kernel,
    /// A kernel thread bound to its CPUs (PF_NO_SETAFFINITY).
    Bound,
    /// The thread of an interrupt, which moves with it.
    Interrupt(u32),
}

/// Thread of a fake machine.
#[derive(Clone, Copy, Debug)]
pub struct FakeThread {
    pub tid: u32,
    pub kind: ThreadKind,
    /// CPUs on which it may run, as a list.
    pub cpus: &'static str,
    /// True if a program has set them.
    pub pinned: bool,
    /// Its group; `""` is the root.
    pub group: &'static str,
    pub policy: &'static str,
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    tid: u32,
    start: u64,
    kind: ThreadKind,
    cpus: CpuSet,
    /// Mask last requested, if the kernel remembers it.
    asked: Option<CpuSet>,
    pub group: String,
    policy: String,
    /// Its ancestors, the nearest first.
    ancestors: Vec<(u32, u64)>,
}

#[derive(Clone, Debug)]
pub(super) struct Threads {
    all: Vec<Thread>,
    traits: Traits,
}

fn list(text: &str) -> CpuSet {
    CpuSet::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// The first set unless it is empty, else the second.
fn or_else(some: CpuSet, other: &CpuSet) -> CpuSet {
    if some.is_empty() { other.clone() } else { some }
}

impl Thread {
    fn key(&self, what: TaskSetting) -> Key {
        Key::Task { tid: self.tid, start: self.start, what }
    }

    pub fn read(&self, what: TaskSetting) -> String {
        match what {
            TaskSetting::Affinity => self.cpus.to_string(),
            TaskSetting::Policy => self.policy.clone(),
            TaskSetting::Group => format!("/{}", self.group),
        }
    }

    /// Sets the affinity like sched_setaffinity(2), limited to the CPUs of its group.
    pub fn set_affinity(&mut self, value: &str, allowed: &CpuSet, traits: Traits) -> Written {
        let asked = CpuSet::parse(value).map_err(|_| libc::EINVAL)?;
        let cpus = asked.and(allowed);
        if self.kind == ThreadKind::Bound || cpus.is_empty() {
            return Err(libc::EINVAL);
        }
        self.asked = traits.remembers_masks.then_some(asked);
        self.cpus = cpus;
        Ok(())
    }

    pub fn set_policy(&mut self, value: &str) -> Written {
        let (name, level) = value.split_once(' ').ok_or(libc::EINVAL)?;
        let level: i32 = level.parse().map_err(|_| libc::EINVAL)?;
        let fits = match name {
            "fifo" | "rr" => (1..=99).contains(&level),
            "other" => (-20..20).contains(&level),
            _ => false,
        };
        if !fits {
            return Err(libc::EINVAL);
        }
        self.policy = format!("{name} {level}");
        Ok(())
    }

    /// Moves it to a group, whose CPUs it gets.
    pub fn enter(&mut self, group: String, allowed: &CpuSet, traits: Traits) -> Written {
        if self.kind != ThreadKind::User {
            return Err(libc::EINVAL);
        }
        if self.group != group {
            self.group = group;
            self.take_cpus(allowed, traits);
        }
        Ok(())
    }

    /// Updates its CPUs after those of its group have changed.
    fn take_cpus(&mut self, allowed: &CpuSet, traits: Traits) {
        let asked = self.asked.as_ref().filter(|_| traits.remembers_masks);
        self.cpus = or_else(asked.map(|asked| asked.and(allowed)).unwrap_or_default(), allowed);
    }
}

impl Threads {
    pub fn new(rows: &[FakeThread], traits: Traits) -> Threads {
        let thread = |row: &FakeThread| Thread {
            tid: row.tid,
            start: u64::from(row.tid) * 100,
            kind: row.kind,
            cpus: list(row.cpus),
            asked: (row.pinned && traits.remembers_masks).then(|| list(row.cpus)),
            group: row.group.to_owned(),
            policy: row.policy.to_owned(),
            ancestors: Vec::new(),
        };
        Threads { all: rows.iter().map(thread).collect(), traits }
    }

    pub fn start(&mut self, tid: u32, parent: u32) {
        let parent = self.all.iter().find(|thread| thread.tid == parent).cloned();
        // Later than any thread of the boot.
        self.all.extend(parent.map(|parent| {
            let ancestors =
                std::iter::once((parent.tid, parent.start)).chain(parent.ancestors.iter().copied());
            let ancestors = ancestors.collect();
            Thread { tid, start: 1_000_000 + u64::from(tid), ancestors, ..parent }
        }));
    }

    pub fn end(&mut self, tid: u32) {
        self.all.retain(|thread| thread.tid != tid);
    }

    pub fn find(&self, tid: u32, start: u64) -> Option<&Thread> {
        self.all.iter().find(|thread| thread.tid == tid && thread.start == start)
    }

    pub fn find_mut(&mut self, tid: u32, start: u64) -> Option<&mut Thread> {
        self.all.iter_mut().find(|thread| thread.tid == tid && thread.start == start)
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.all.iter().any(|thread| thread.group == group)
    }

    /// Processes in a group and below it.
    pub fn processes_in(&self, group: &str) -> Vec<GroupProcess> {
        let below = |path: &str| {
            path.strip_prefix(group).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let inside = self.all.iter().filter(|thread| group.is_empty() || below(&thread.group));
        let process = |thread: &Thread| GroupProcess {
            pid: thread.tid,
            start: thread.start,
            threads: vec![(thread.tid, thread.start)],
            ancestors: thread.ancestors.clone(),
        };
        inside.map(process).collect()
    }

    /// Affinity key of an interrupt's thread, if it has one.
    pub fn of_interrupt(&self, number: u32) -> Vec<Key> {
        let own = self.all.iter().filter(|thread| thread.kind == ThreadKind::Interrupt(number));
        own.map(|thread| thread.key(TaskSetting::Affinity)).collect()
    }

    pub fn affinities(&self) -> Vec<(Key, String)> {
        let all = self.all.iter();
        all.map(|thread| (thread.key(TaskSetting::Affinity), thread.cpus.to_string())).collect()
    }

    pub fn snapshot(&self) -> BTreeMap<String, String> {
        let all = [TaskSetting::Affinity, TaskSetting::Policy, TaskSetting::Group];
        let of = |thread: &Thread| all.map(|what| (thread.key(what).to_string(), thread.read(what)));
        self.all.iter().flat_map(of).collect()
    }

    pub fn choices(&self) -> Vec<Choice> {
        let mut all = Vec::new();
        for thread in &self.all {
            let affinity = thread.key(TaskSetting::Affinity);
            let values = |values: &[&str]| values.iter().map(ToString::to_string).collect();
            all.push(Choice {
                setting: open_setting(affinity.clone(), Comparison::List),
                values: values(&["0-1", "1,0", "3", "2-3", "9"]),
            });
            all.push(Choice {
                setting: open_setting(thread.key(TaskSetting::Policy), Comparison::Exact),
                values: values(&["fifo 50", "rr 1", "other 5", "fifo 100"]),
            });
            if thread.kind == ThreadKind::User {
                // Its affinity changes with its group.
                let partners = vec![affinity];
                let group = open_setting(thread.key(TaskSetting::Group), Comparison::Exact);
                all.push(Choice {
                    setting: Setting { partners, ..group },
                    values: values(&["/", "/system.slice", "/onbeat", "/onbeat/rt"]),
                });
            }
        }
        all
    }

    pub fn follow_interrupt(&mut self, number: u32, cpus: &CpuSet) {
        for thread in self.all.iter_mut().filter(|thread| thread.kind == ThreadKind::Interrupt(number)) {
            thread.cpus = cpus.clone();
        }
    }

    /// Updates kernel threads after partitions changed: they leave isolated CPUs; when CPUs are
    /// returned, they may run anywhere else, except those with remembered masks.
    pub fn follow_isolated(&mut self, before: &CpuSet, after: &CpuSet) {
        let allowed = self.traits.all().without(after);
        let given_back = !before.without(after).is_empty();
        for thread in &mut self.all {
            match thread.kind {
                ThreadKind::Bound | ThreadKind::User => {}
                _ if given_back => thread.take_cpus(&allowed, self.traits),
                _ if before != after => thread.cpus = or_else(thread.cpus.without(after), &allowed),
                _ => {}
            }
        }
    }

    /// Updates threads of groups whose CPUs have changed.
    pub fn follow_groups(&mut self, before: &BTreeMap<String, CpuSet>, after: &BTreeMap<String, CpuSet>) {
        let traits = self.traits;
        for thread in self.all.iter_mut().filter(|thread| thread.kind == ThreadKind::User) {
            match after.get(&thread.group) {
                Some(now) if before.get(&thread.group) != Some(now) => thread.take_cpus(now, traits),
                _ => {}
            }
        }
    }
}
