//! Changes that a rule requests, as data, so that the printed advice and the applied change cannot
//! differ.
//!
//! A [`Change`] is one setting in one place. Changes that belong together, and those that keep them
//! over a boot, form a [`super::remedy::Alternative`]; the whole answer to a finding is a
//! [`super::remedy::Remedy`].

use std::collections::BTreeSet;

use serde::Serialize;

use super::words::cpu_list;
use model::units::{CpuSet, named_cpus};

/// Lifetime of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Persistence {
    /// Until the next boot.
    Runtime,
    /// Across boots: on the kernel's command line, or in a file that is read at each boot or login.
    Boot,
    /// Until another kernel is built.
    Build,
    /// Permanently: a firmware setting, or a property of the machine.
    Firmware,
}

/// A change of one setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A sysctl, by its name with dots.
    Sysctl {
        /// `vm.stat_interval`
        name: String,
        value: String,
    },
    /// A value written to files of the running kernel.
    Write {
        /// Paths of the files.
        paths: Vec<String>,
        /// Common name of the files: `/sys/class/net/NAME/queues/rx-N/rps_cpus`; the path of a
        /// single one.
        shown_as: String,
        /// CPUs that the files belong to: `CPUs 2-3`; `""` if the path shows them.
        scope: String,
        value: String,
    },
    /// The CPUs on which some kernel threads may run.
    Affinity {
        threads: Vec<ThreadId>,
        /// Common name of the threads: `each, kthreadd (PID 2) included`.
        shown_as: String,
        cpus: CpuSet,
    },
    /// The policy and the priority of some kernel threads.
    Policy {
        threads: Vec<ThreadId>,
        /// Common name of the threads: `ksoftirqd/2 and ksoftirqd/3`.
        shown_as: String,
        /// Priority with SCHED_FIFO; none for SCHED_OTHER.
        fifo: Option<u32>,
    },
    /// An isolated partition of control groups of version 2, in separate groups.
    Partition {
        cpus: CpuSet,
        /// Mount point of the control groups.
        root: String,
        /// True for a group below another, which is possible since 6.7.
        nested: bool,
    },
    /// A word on the kernel's command line, replacing another value of the same parameter.
    CmdlineAdd {
        /// `psi=0`
        word: String,
    },
    /// A parameter removed from the kernel's command line: `debug` with all its values, `idle=poll`
    /// with only this one.
    CmdlineRemove {
        /// The parameter, or the parameter and a value.
        word: String,
    },
    /// An option of the kernel's configuration; `n` for none.
    Kconfig {
        /// The option without `CONFIG_`.
        option: String,
        /// `y`, `n`, or its number.
        value: String,
    },
    /// A systemd service that is stopped, and not started at the next boot.
    Disable {
        /// Unit name, as for `systemctl`.
        unit: String,
        /// Name of its process.
        program: String,
    },
    /// Advice, for a change that no program can make, or none should without being asked.
    Advice {
        /// Advice in words.
        words: String,
        /// Lifetime of the change; `None` for the one in the rule's record.
        persistence: Option<Persistence>,
        /// Reason why it is only advice.
        reason: AdviceReason,
    },
}

/// A thread: its ID, and its start in ticks since boot, which distinguishes it from a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId {
    pub tid: u32,
    pub start: u64,
}

/// Reason why a change is only advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdviceReason {
    /// It concerns the machine itself, its firmware, or its host.
    Machine,
    /// It takes another kernel, whose name and origin depend on the distribution.
    Kernel,
    /// It concerns the work or the configuration of another program, or of a service manager.
    Program,
    /// It concerns threads of programs, and the ones that are meant are not known.
    Threads,
    /// There is a choice that depends on the purpose of the machine.
    Choice,
    /// It could be set, but not in the present state: something else has to be undone first.
    NotNow,
}

impl AdviceReason {
    pub const ALL: [AdviceReason; 6] = [
        AdviceReason::Machine,
        AdviceReason::Kernel,
        AdviceReason::Program,
        AdviceReason::Threads,
        AdviceReason::Choice,
        AdviceReason::NotNow,
    ];
}

impl Change {
    pub fn sysctl(name: &str, value: impl ToString) -> Change {
        Change::Sysctl { name: name.to_owned(), value: value.to_string() }
    }

    /// Writes a value to one file.
    pub fn write(path: impl Into<String>, value: impl ToString) -> Change {
        let path = path.into();
        Change::Write {
            paths: vec![path.clone()],
            shown_as: path,
            scope: String::new(),
            value: value.to_string(),
        }
    }

    /// Writes a value to the file of each of these CPUs; the pattern has `#` for the CPU's number.
    pub fn each_cpu(pattern: &str, cpus: &CpuSet, value: impl ToString) -> Change {
        Change::Write {
            paths: cpus.iter().map(|cpu| pattern.replacen('#', &cpu.0.to_string(), 1)).collect(),
            shown_as: pattern.replacen('#', "N", 1),
            scope: cpu_list(cpus),
            value: value.to_string(),
        }
    }

    /// Writes a value to each of several files with a common name.
    pub fn each(paths: Vec<String>, shown_as: &str, scope: &str, value: impl ToString) -> Change {
        Change::Write {
            paths,
            shown_as: shown_as.to_owned(),
            scope: scope.to_owned(),
            value: value.to_string(),
        }
    }

    /// Adds a word to the kernel's command line.
    pub fn cmdline_add(word: impl Into<String>) -> Change {
        Change::CmdlineAdd { word: word.into() }
    }

    /// Removes a word from the kernel's command line.
    pub fn cmdline_remove(word: impl Into<String>) -> Change {
        Change::CmdlineRemove { word: word.into() }
    }

    /// Sets an option of the kernel's configuration.
    pub fn kconfig(option: &str, value: &str) -> Change {
        Change::Kconfig { option: option.to_owned(), value: value.to_owned() }
    }

    /// Advice in words, and the reason why it is not more exact.
    pub fn advice(reason: AdviceReason, words: impl Into<String>) -> Change {
        Change::Advice { words: words.into(), persistence: None, reason }
    }

    /// Lifetime of the change; for advice without one, the lifetime in the rule's record.
    pub fn persistence(&self, rule: Persistence) -> Persistence {
        match self {
            Change::Sysctl { .. }
            | Change::Write { .. }
            | Change::Affinity { .. }
            | Change::Policy { .. }
            | Change::Partition { .. } => Persistence::Runtime,
            Change::CmdlineAdd { .. } | Change::CmdlineRemove { .. } | Change::Disable { .. } => {
                Persistence::Boot
            }
            Change::Kconfig { .. } => Persistence::Build,
            Change::Advice { persistence, .. } => persistence.unwrap_or(rule),
        }
    }

    /// True if `onbeat tune` can make it: on the running kernel, and undone exactly.
    pub fn is_settable(&self) -> bool {
        match self {
            Change::Sysctl { .. }
            | Change::Write { .. }
            | Change::Affinity { .. }
            | Change::Policy { .. }
            | Change::Partition { .. } => true,
            Change::CmdlineAdd { .. }
            | Change::CmdlineRemove { .. }
            | Change::Kconfig { .. }
            | Change::Disable { .. }
            | Change::Advice { .. } => false,
        }
    }

    /// Files of the running kernel that it writes, with the values.
    pub fn writes(&self) -> Vec<(String, &str)> {
        match self {
            Change::Sysctl { name, value } => vec![(sysctl_path(name), value)],
            Change::Write { paths, value, .. } => {
                paths.iter().map(|path| (path.clone(), value.as_str())).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Path of a sysctl.
pub fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// Commands that create a partition. One below another group is valid next to groups with the same
/// CPUs, and persists when systemd reloads its units (`Documentation/admin-guide/cgroup-v2.rst`,
/// remote partitions).
pub fn partition_steps(root: &str, cpus: &CpuSet, nested: bool) -> String {
    let steps = if nested {
        format!(
            "mkdir -p rt; echo {cpus} >rt/cpuset.cpus.exclusive; echo +cpuset >rt/cgroup.subtree_control; \
             mkdir -p rt/cpus; echo {cpus} >rt/cpus/cpuset.cpus.exclusive; echo isolated \
             >rt/cpus/cpuset.cpus.partition; cat rt/cpus/cpuset.cpus.partition must then print isolated"
        )
    } else {
        format!(
            "take {} out of cpuset.cpus of every other group; mkdir rt; echo {cpus} >rt/cpuset.cpus; echo \
             isolated >rt/cpuset.cpus.partition; cat rt/cpuset.cpus.partition must then print isolated; \
             repeat this after each systemctl daemon-reload, which removes the partition",
            named_cpus(cpus)
        )
    };
    format!("cd {root}; echo +cpuset >cgroup.subtree_control; {steps}")
}

/// Limit of a loop's list in characters.
const MAX_LIST: usize = 120;

/// Command that writes a value to each of these files, for any POSIX shell; none if a name could
/// upset a shell, or the files do not form a few lists of names.
pub fn write_command(paths: &[String], value: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.:,@+-".contains(c);
    let split: Vec<Vec<&str>> = paths.iter().map(|path| path.split('/').collect()).collect();
    let first = split.first()?;
    let is_alike = split.iter().all(|path| path.len() == first.len());
    if !is_alike || !paths.iter().all(|path| path.chars().all(is_plain)) {
        return None;
    }
    let (mut parts, mut loops, mut count) = (Vec::new(), Vec::new(), 1);
    for at in 0..first.len() {
        let names: BTreeSet<&str> = split.iter().map(|path| path[at]).collect();
        if names.len() == 1 {
            parts.push(first[at].to_owned());
            continue;
        }
        let variable = ["n", "m"].get(loops.len())?;
        let (before, list, after) = list(&names);
        let is_longer = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let variable_here = if is_longer { format!("{{{variable}}}") } else { (*variable).to_owned() };
        parts.push(format!("{before}${variable_here}{after}"));
        count *= names.len();
        loops.push((variable, Some(list).filter(|list| list.len() <= MAX_LIST)?));
    }
    let write = format!("echo {value} >{}", parts.join("/"));
    let nest =
        |inner, (variable, list): &(&&str, String)| format!("for {variable} in {list}; do {inner}; done");
    // Nested loops combine each name with each other.
    (count == paths.len()).then(|| loops.iter().rev().fold(write, nest))
}

/// Numbers in names as the words of a loop, with the text before and after them; the whole names if
/// they differ in more.
fn list<'a>(names: &BTreeSet<&'a str>) -> (&'a str, String, &'a str) {
    let split = |name: &&'a str| {
        let start = name.find(|c: char| c.is_ascii_digit())?;
        let digits = name[start..].bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = name[start..].split_at(digits);
        let number: u32 = number.parse().ok().filter(|value: &u32| value.to_string() == number)?;
        Some((number, (&name[..start], after)))
    };
    let numbered: Option<Vec<_>> = names.iter().map(split).collect();
    match numbered.as_deref() {
        Some(all @ [(_, (before, after)), ..])
            if all.iter().all(|(_, around)| *around == (*before, *after)) =>
        {
            (before, sequences(all.iter().map(|(number, _)| *number).collect()), after)
        }
        _ => ("", names.iter().copied().collect::<Vec<_>>().join(" "), ""),
    }
}

/// Numbers as the words of a loop: four or more in a row by `seq`.
fn sequences(numbers: BTreeSet<u32>) -> String {
    let mut rows: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match rows.last_mut() {
            Some((_, last)) if number - *last == 1 => *last = number,
            _ => rows.push((number, number)),
        }
    }
    let words = rows.into_iter().map(|(first, last)| match last - first {
        0..3 => (first..=last).map(|number| number.to_string()).collect::<Vec<_>>().join(" "),
        _ => format!("$(seq {first} {last})"),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_can_be_pasted() {
        let command = |paths: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
            write_command(&paths, "1").unwrap_or("none".to_owned())
        };
        assert_eq!(command(&[]), "none");
        assert_eq!(command(&["/a/cpu3/b"]), "echo 1 >/a/cpu3/b");
        assert_eq!(command(&["/a/cpu3/b", "/a/cpu12/b"]), "for n in 3 12; do echo 1 >/a/cpu$n/b; done");
        assert_eq!(
            command(&["/a/huge-64kB/b", "/a/huge-128kB/b"]),
            "for n in 64 128; do echo 1 >/a/huge-${n}kB/b; done"
        );
        assert_eq!(command(&["/net/eth0/b", "/net/lo/b"]), "for n in eth0 lo; do echo 1 >/net/$n/b; done");
        assert_eq!(command(&["/a/0:00/b", "/a/0:01/b"]), "for n in 0:00 0:01; do echo 1 >/a/$n/b; done");
        let rows: Vec<String> = [1, 4, 5, 6, 7, 8, 10, 11].map(|n| format!("/irq/{n}/b")).to_vec();
        assert_eq!(
            write_command(&rows, "0-1").as_deref(),
            Some("for n in 1 $(seq 4 8) 10 11; do echo 0-1 >/irq/$n/b; done")
        );
        let each = ["/cpu2/state1/b", "/cpu2/state2/b", "/cpu3/state1/b", "/cpu3/state2/b"];
        assert_eq!(command(&each), "for n in 2 3; do for m in 1 2; do echo 1 >/cpu$n/state$m/b; done; done");
        assert_eq!(command(&each[..3]), "none");
        assert_eq!(command(&["/net/a;b/c"]), "none");
        assert_eq!(command(&["/net/$(x)/c", "/net/b/c"]), "none");
        let many: Vec<String> = (0..99).map(|n| format!("/irq/{}/b", 2 * n)).collect();
        assert_eq!(write_command(&many, "1"), None);
    }
}
