//! A machine's state as printed by `lab/machine_state`, and the differences between two of them.

use std::collections::{BTreeMap, BTreeSet};

/// Contents by key: a path, or `task:TID/START/WHAT`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineState {
    entries: BTreeMap<String, String>,
}

/// ENOENT.
const NO_ENTRY: &str = "!2";

/// A key whose contents differ; `None` if it was absent.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedKey {
    pub key: String,
    pub before: Option<String>,
    pub after: Option<String>,
}

impl MachineState {
    /// Parses the lines; one without contents is an error, because nothing may be overlooked.
    pub fn parse(text: &str) -> Result<MachineState, String> {
        let entry = |line: &str| match line.split_once('\t') {
            Some((key, content)) => Ok((key.to_string(), content.to_string())),
            None => Err(format!("a state has the line {line:?}")),
        };
        Ok(MachineState { entries: text.lines().map(entry).collect::<Result<_, String>>()? })
    }

    /// Contents of a key; a key that was requested and is absent equals one that is not listed.
    fn content(&self, key: &str) -> Option<&String> {
        self.entries.get(key).filter(|content| *content != NO_ENTRY)
    }

    /// All threads, and only the files that were requested in the other state.
    pub fn of_the_keys_of(&self, other: &MachineState) -> MachineState {
        let is_kept = |key: &str| key.starts_with("task:") || other.entries.contains_key(key);
        let entries = self.entries.iter().filter(|(key, _)| is_kept(key));
        MachineState { entries: entries.map(|(key, content)| (key.clone(), content.clone())).collect() }
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Contents of a key, without the mark of their kind.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.entries.get(key)?.strip_prefix('=')
    }

    /// The threads, as `TID/START`.
    pub fn tasks(&self) -> impl Iterator<Item = &str> {
        let task = |key: &'static str| move |entry: &str| entry.ends_with(key);
        self.entries.keys().map(String::as_str).filter_map(move |key| {
            task("/name")(key).then_some(())?;
            key.strip_prefix("task:")?.strip_suffix("/name")
        })
    }

    /// A property of a thread: `mask`, `kind`, `name`.
    pub fn of_task(&self, task: &str, what: &str) -> &str {
        self.text(&format!("task:{task}/{what}")).unwrap_or_default()
    }
}

/// Differences: of all files, and of the threads in both.
///
/// `idle` are the interrupts that did not occur while they were restored: their targets
/// (`effective_affinity`, and the CPU of their thread) follow at the next one. The CPUs of
/// workqueue rescuers are ignored, too.
pub fn differences(before: &MachineState, after: &MachineState, idle: &BTreeSet<String>) -> Vec<ChangedKey> {
    let keys: BTreeSet<&String> = before.entries.keys().chain(after.entries.keys()).collect();
    let differs = |key: &&String| before.content(key) != after.content(key);
    let difference = |key: &String| ChangedKey {
        key: key.clone(),
        before: before.content(key).cloned(),
        after: after.content(key).cloned(),
    };
    let counts = |key: &&String| match key.strip_prefix("task:") {
        Some(task) => {
            let waits = follows(task, after).is_some_and(|irq| idle.contains(irq));
            is_in_both(task, before, after) && !waits && !is_place_of_rescuer(task, after)
        }
        None => !interrupt_of(key).is_some_and(|irq| idle.contains(irq)),
    };
    keys.into_iter().filter(differs).filter(counts).map(difference).collect()
}

/// True if the key is the CPUs of a rescuer: a worker that the kernel places anew whenever it helps
/// (`rescuer_thread()` in kernel/workqueue.c), and whose CPUs no program may set.
fn is_place_of_rescuer(task: &str, state: &MachineState) -> bool {
    let Some((thread, "mask" | "cpus")) = task.rsplit_once('/') else { return false };
    let name = state.of_task(thread, "name");
    let serves = !name.starts_with("kworker/") || name.starts_with("kworker/R-");
    serves && state.of_task(thread, "kind") == "kernel pinned worker"
}

/// The interrupt that this thread serves, if the key is its CPUs.
fn follows<'a>(task: &str, state: &'a MachineState) -> Option<&'a str> {
    let (thread, what) = task.rsplit_once('/')?;
    let name = matches!(what, "mask" | "cpus").then(|| state.of_task(thread, "name"))?;
    name.strip_prefix("irq/")?.split('-').next()
}

/// Names of kernel workers change with their work.
fn is_in_both(task: &str, before: &MachineState, after: &MachineState) -> bool {
    let Some((thread, what)) = task.rsplit_once('/') else { return true };
    let there = |state: &MachineState| state.entries.contains_key(&format!("task:{thread}/name"));
    what != "name" && there(before) && there(after)
}

fn interrupt_of(key: &str) -> Option<&str> {
    let (irq, file) = key.strip_prefix("/proc/irq/")?.split_once('/')?;
    file.starts_with("effective_affinity").then_some(irq)
}

impl ChangedKey {
    /// A readable line of limited length.
    pub fn told(&self) -> String {
        let shown = |content: &Option<String>| match content {
            None => "nothing".to_string(),
            Some(text) => text.chars().take(80).collect(),
        };
        format!("{}: {} -> {}", self.key, shown(&self.before), shown(&self.after))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    const ONE: &str = "/proc/sys/vm/stat_interval\t=1\\n\n/proc/irq/24/smp_affinity\t=f\\n\n\
        /proc/irq/24/effective_affinity\t=8\\n\n/sys/kernel/irq/24/per_cpu_count\t=1,2\\n\n\
        task:12/345/name\t=kswapd0\ntask:12/345/mask\t=f\ntask:13/400/name\t=sh\ntask:13/400/mask\t=f\n";

    fn of(text: &str) -> MachineState {
        MachineState::parse(text).unwrap()
    }

    fn keys(before: &str, after: &str) -> Vec<String> {
        with_idle(before, after, &[])
    }

    fn with_idle(before: &str, after: &str, idle: &[&str]) -> Vec<String> {
        let idle = idle.iter().map(ToString::to_string).collect();
        differences(&of(before), &of(after), &idle).into_iter().map(|difference| difference.key).collect()
    }

    #[test]
    fn rescuers_are_where_the_kernel_puts_them() {
        let of_kind = |name: &str, kind: &str| {
            let before = format!("task:3/46/name\t={name}\ntask:3/46/kind\t={kind}\ntask:3/46/mask\t=4\n");
            keys(&before, &before.replace("mask\t=4", "mask\t=f"))
        };
        assert!(of_kind("rcu_gp", "kernel pinned worker").is_empty());
        assert!(of_kind("kworker/R-rcu_gp", "kernel pinned worker").is_empty());
        for (name, kind) in [
            ("kworker/0:1", "kernel pinned worker"),
            ("ksoftirqd/0", "kernel pinned"),
            ("rcu_gp", "kernel worker"),
            ("rcu_gp", "user"),
        ] {
            assert_eq!(of_kind(name, kind), ["task:3/46/mask"], "{name} {kind}");
        }
    }

    #[test]
    fn every_change_is_found() {
        assert!(keys(ONE, ONE).is_empty());
        for (old, new) in [
            ("stat_interval\t=1", "stat_interval\t=120"),
            ("stat_interval\t=1\\n", "stat_interval\t!13"),
            ("smp_affinity\t=f", "smp_affinity\t=3"),
            ("345/mask\t=f", "345/mask\t=3"),
        ] {
            let after = ONE.replace(old, new);
            assert_eq!(keys(ONE, &after).len(), 1, "{old}");
            assert_eq!(keys(&after, ONE).len(), 1, "{old}");
        }
        assert_eq!(keys(ONE, &format!("{ONE}/sys/fs/cgroup/onbeat\t/\n")), ["/sys/fs/cgroup/onbeat"]);
    }

    #[test]
    fn threads_that_came_or_went_are_not_compared_and_neither_are_names() {
        let without: String =
            ONE.lines().filter(|line| !line.contains(":13/")).map(|line| format!("{line}\n")).collect();
        assert!(keys(ONE, &without).is_empty() && keys(&without, ONE).is_empty());
        assert!(keys(ONE, &ONE.replace("kswapd0", "kswapd1")).is_empty());
        // The same number, another thread.
        let reused = ONE.replace(":13/400/", ":13/999/").replace("999/mask\t=f", "999/mask\t=1");
        assert!(keys(ONE, &reused).is_empty());
    }

    #[test]
    fn an_idle_interrupt_and_its_thread_may_be_where_they_were() {
        let one = ONE.replace("kswapd0", "irq/24-nvme0q0");
        let moved = one
            .replace("effective_affinity\t=8", "effective_affinity\t=1")
            .replace("345/mask\t=f", "345/mask\t=1");
        assert_eq!(keys(&one, &moved).len(), 2);
        assert!(with_idle(&one, &moved, &["24"]).is_empty());
        assert_eq!(with_idle(&one, &moved, &["25", "2"]).len(), 2);
        // A written setting does not depend on interrupts, nor does the policy of another one.
        let written = one.replace("smp_affinity\t=f", "smp_affinity\t=3");
        assert_eq!(with_idle(&one, &written, &["24"]), ["/proc/irq/24/smp_affinity"]);
    }

    #[test]
    fn of_some_files_what_was_asked_for_is_compared() {
        let listed = "/proc/sys/vm/stat_interval\t=1\\n\n/sys/fs/cgroup/onbeat\t!2\n";
        let (before, after) = (of(ONE), of(listed));
        let against =
            |after: &MachineState| differences(&before.of_the_keys_of(after), after, &BTreeSet::new()).len();
        assert_eq!(against(&after), 0);
        assert_eq!(against(&of(&listed.replace("=1", "=2"))), 1, "changed");
        assert_eq!(against(&of(&listed.replace("=1\\n", "!2"))), 1, "gone");
        assert_eq!(against(&of(&listed.replace("!2", "/"))), 1, "left behind");
    }

    #[test]
    fn a_line_without_content_is_refused_and_threads_are_listed() {
        assert!(MachineState::parse("/proc/sys/vm/x\n").is_err());
        let state = of(ONE);
        assert_eq!(state.tasks().collect::<Vec<_>>(), ["12/345", "13/400"]);
        assert_eq!((state.of_task("12/345", "mask"), state.of_task("12/345", "kind")), ("f", ""));
    }
}
