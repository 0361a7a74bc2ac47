//! The changes that a rule requests, as data, so that the printed advice and the applied change
//! cannot differ.
//!
//! A [`Change`] is one setting in one place. Those that have to be made together, and how they are
//! kept over a boot, are a [`super::remedy::Alternative`]; what a finding asks for is a
//! [`super::remedy::Remedy`].

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
