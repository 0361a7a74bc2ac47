//! The changes that a rule requests, as data, so that the printed advice and the applied change
//! cannot differ.
//!
//! A [`Change`] is one setting in one place. Those that have to be made together, and how they are
//! kept over a boot, are a [`super::remedy::Alternative`]; what a finding asks for is a
//! [`super::remedy::Remedy`].

use std::collections::BTreeSet;

use serde::Serialize;

use super::words::cpu_list;
use model::units::{CpuSet, named_cpus};

/// How long a change lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Persistence {
    /// Until the next boot.
    Runtime,
    /// From boot to boot: on the kernel's command line, or in a file that is read at each boot or
    /// login.
    Boot,
    /// Until another kernel is built.
    Build,
    /// For good: set in the firmware, or what the machine is.
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
        /// The files, by their paths.
        paths: Vec<String>,
        /// How they are named together: `/sys/class/net/NAME/queues/rx-N/rps_cpus`; a single one by
        /// its path.
        shown_as: String,
        /// The CPUs whose files they are: `CPUs 2-3`; `""` where the path shows them.
        scope: String,
        value: String,
    },
    /// The CPUs on which some of the kernel's threads may run.
    Affinity {
        threads: Vec<ThreadId>,
        /// How they are named together: `each, kthreadd (PID 2) included`.
        shown_as: String,
        cpus: CpuSet,
    },
    /// The policy and the priority of some of the kernel's threads.
    Policy {
        threads: Vec<ThreadId>,
        /// How they are named together: `ksoftirqd/2 and ksoftirqd/3`.
        shown_as: String,
        /// The priority with SCHED_FIFO; none for SCHED_OTHER.
        fifo: Option<u32>,
    },
    /// An isolated partition of control groups of version 2, in groups of its own.
    Partition {
        cpus: CpuSet,
        /// Where they are mounted.
        root: String,
        /// Whether it is made in a group of a group, as the kernel can from 6.7 on.
        nested: bool,
    },
    /// A word on the kernel's command line, in the place of another value of the same parameter.
    CmdlineAdd {
        /// `psi=0`
        word: String,
    },
    /// A parameter taken off the kernel's command line: `debug` with all its values, `idle=poll`
    /// with this one.
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
    /// A service of systemd's that is stopped, and not started at the next boot.
    Disable {
        /// The unit, as `systemctl` takes it.
        unit: String,
        /// The name that its process has.
        program: String,
    },
    /// What no program can do, or should not without being asked.
    Advice {
        /// What to do, in words.
        words: String,
        /// How long that lasts; `None` for the duration in the rule's record.
        persistence: Option<Persistence>,
        /// Why it is words alone.
        reason: AdviceReason,
    },
}

/// A thread: its number, and its start in ticks since boot, which tells it from a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId {
    pub tid: u32,
    pub start: u64,
}

/// Why a piece of advice is words alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdviceReason {
    /// It is the machine itself, its firmware, or its host.
    Machine,
    /// It is another kernel, whose name and origin depend on the distribution.
    Kernel,
    /// It is the work or the configuration of another program, or of a service manager.
    Program,
    /// It is about threads of programs, and which of them are meant is not known.
    Threads,
    /// There is a choice to make that depends on what the machine is for.
    Choice,
    /// It could be set, and must not be as the machine is now: something else is undone first.
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

    /// A value for one file.
    pub fn write(path: impl Into<String>, value: impl ToString) -> Change {
        let path = path.into();
        Change::Write {
            paths: vec![path.clone()],
            shown_as: path,
            scope: String::new(),
            value: value.to_string(),
        }
    }

    /// A value for the file of each of these CPUs; the pattern has `#` for the CPU's number.
    pub fn each_cpu(pattern: &str, cpus: &CpuSet, value: impl ToString) -> Change {
        Change::Write {
            paths: cpus.iter().map(|cpu| pattern.replacen('#', &cpu.0.to_string(), 1)).collect(),
            shown_as: pattern.replacen('#', "N", 1),
            scope: cpu_list(cpus),
            value: value.to_string(),
        }
    }

    /// A value for each of several files, which are named together.
    pub fn each(paths: Vec<String>, shown_as: &str, scope: &str, value: impl ToString) -> Change {
        Change::Write {
            paths,
            shown_as: shown_as.to_owned(),
            scope: scope.to_owned(),
            value: value.to_string(),
        }
    }

    /// A word on the kernel's command line.
    pub fn cmdline_add(word: impl Into<String>) -> Change {
        Change::CmdlineAdd { word: word.into() }
    }

    /// A word taken off the kernel's command line.
    pub fn cmdline_remove(word: impl Into<String>) -> Change {
        Change::CmdlineRemove { word: word.into() }
    }

    /// An option of the kernel's configuration.
    pub fn kconfig(option: &str, value: &str) -> Change {
        Change::Kconfig { option: option.to_owned(), value: value.to_owned() }
    }

    /// Words, and why there is nothing more exact.
    pub fn advice(reason: AdviceReason, words: impl Into<String>) -> Change {
        Change::Advice { words: words.into(), persistence: None, reason }
    }

    /// How long it lasts; for advice in words without a duration, the one in the rule's record.
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

    /// Whether it is one that `onbeat tune` makes: on the running kernel, and undone exactly.
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

    /// The files of the running kernel that it writes, and what.
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

/// Where a sysctl is.
pub fn sysctl_path(name: &str) -> String {
    format!("/proc/sys/{}", name.replace('.', "/"))
}

/// The commands that make a partition. One in a group of a group is valid next to groups that have
/// the same CPUs, and stays when systemd reads its units again
/// (`Documentation/admin-guide/cgroup-v2.rst`, remote partitions).
pub fn partition_steps(root: &str, cpus: &CpuSet, nested: bool) -> String {
    let steps = match nested {
        true => format!(
            "mkdir -p rt; echo {cpus} >rt/cpuset.cpus.exclusive; echo +cpuset \
             >rt/cgroup.subtree_control; mkdir -p rt/cpus; echo {cpus} \
             >rt/cpus/cpuset.cpus.exclusive; echo isolated >rt/cpus/cpuset.cpus.partition; cat \
             rt/cpus/cpuset.cpus.partition has to say isolated"
        ),
        false => format!(
            "take {} out of cpuset.cpus of every other group; mkdir rt; echo {cpus} \
             >rt/cpuset.cpus; echo isolated >rt/cpuset.cpus.partition; cat \
             rt/cpuset.cpus.partition has to say isolated, and again after each systemctl \
             daemon-reload, which takes it away",
            named_cpus(cpus)
        ),
    };
    format!("cd {root}; echo +cpuset >cgroup.subtree_control; {steps}")
}

/// The most characters of a loop's list.
const MAX_LIST: usize = 120;

/// The command that writes a value to each of these files, for any POSIX shell; none where a name
/// could upset one, or the files are no few lists of names.
pub fn write_command(paths: &[String], value: &str) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/_.:,@+-".contains(c);
    let split: Vec<Vec<&str>> = paths.iter().map(|path| path.split('/').collect()).collect();
    let first = split.first()?;
    let is_alike = split.iter().all(|path| path.len() == first.len());
    if !is_alike || !paths.iter().all(|path| path.chars().all(is_plain)) {
        return None;
    }
    let (mut shown, mut loops, mut count) = (Vec::new(), Vec::new(), 1);
    for at in 0..first.len() {
        let names: BTreeSet<&str> = split.iter().map(|path| path[at]).collect();
        if names.len() == 1 {
            shown.push(first[at].to_owned());
            continue;
        }
        let variable = ["n", "m"].get(loops.len())?;
        let (before, list, after) = list(&names);
        let is_longer = after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let variable_here = if is_longer { format!("{{{variable}}}") } else { (*variable).to_owned() };
        shown.push(format!("{before}${variable_here}{after}"));
        count *= names.len();
        loops.push((variable, Some(list).filter(|list| list.len() <= MAX_LIST)?));
    }
    let write = format!("echo {value} >{}", shown.join("/"));
    let nest =
        |inner, (variable, list): &(&&str, String)| format!("for {variable} in {list}; do {inner}; done");
    // Loops in each other write to each with each.
    (count == paths.len()).then(|| loops.iter().rev().fold(write, nest))
}

/// The numbers in names as the words of a loop, with what is before and after them; the whole names
/// where they differ in more.
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

/// Numbers as the words of a loop: four and more in a row by `seq`.
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
