//! CPUs that are set apart: the groups that hold them, and the document `onbeat.isolation/1` (the
//! contract's `isolate list`).

use serde::{Deserialize, Serialize};

/// The name and version of the JSON.
pub const ISOLATION_SCHEMA: &str = "onbeat.isolation/1";

/// The group below which the partition is, below the mount of control groups.
pub const OUTER_GROUP: &str = "onbeat";

/// The group whose processes have the isolated CPUs.
pub const INNER_GROUP: &str = "onbeat/rt";

/// The rule that a partition satisfies, and under which what is placed in it is journaled.
pub const PARTITION_RULE: &str = "cpu-isolation";

/// Why a thread stays where it is.
pub const IMMOVABLE: &str = "the kernel refuses another affinity (PF_NO_SETAFFINITY)";

/// What has become of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartitionState {
    /// In force.
    Isolated,
    /// It was made, and is not in force.
    Invalid,
    None,
}

/// A thread that may run on the isolated CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolatedThread {
    pub tid: u32,
    pub comm: String,
    /// Whether user space may change where it runs.
    pub movable: bool,
    /// Why it is there: it was placed there, or why it cannot leave.
    pub why: String,
    /// The CPUs on which it may run, as a list.
    #[serde(default)]
    pub allowed: String,
}

/// An interrupt that may go to the isolated CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolatedInterrupt {
    /// Its number, as `/proc/interrupts` shows it.
    pub irq: String,
    /// The names of its handlers.
    pub name: String,
    pub movable: bool,
    /// Why it is there.
    pub why: String,
    /// The CPUs to which it may go, as a list.
    #[serde(default)]
    pub allowed: String,
    /// Whether it may not go there any more, and leaves with its next occurrence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

/// What came to an isolated CPU while it was counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrivals {
    pub cpu: u32,
    /// `interrupt`, `timer`, `softirq` or `switch`.
    pub kind: String,
    /// As the kernel names it: the label and the description of `/proc/interrupts`.
    pub name: String,
    pub count: u64,
}

/// The isolated CPUs, and what may still come to them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationDocument {
    pub schema: String,
    /// The CPUs that were asked for, as a list.
    pub cpus: String,
    pub partition: PartitionState,
    /// Why the partition is not in force; `""` where it is.
    #[serde(default)]
    pub reason: String,
    /// The CPUs that its processes have.
    #[serde(default)]
    pub effective: String,
    /// The journal's entry; `""` where there is none.
    #[serde(default)]
    pub entry: String,
    /// In so many ns it undoes itself; none where it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_in_ns: Option<i64>,
    /// Whether confirming keeps it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirmable: bool,
    pub threads: Vec<IsolatedThread>,
    pub interrupts: Vec<IsolatedInterrupt>,
    /// What came in so many ns; null where nothing was counted.
    #[serde(default)]
    pub counted_ns: Option<i64>,
    #[serde(default)]
    pub arrivals: Vec<Arrivals>,
}
