//! Isolated CPUs: the groups that hold them, and the document `onbeat.isolation/1` (the contract's
//! `isolate list`).

use serde::{Deserialize, Serialize};

/// The name and version of the JSON.
pub const ISOLATION_SCHEMA: &str = "onbeat.isolation/1";

/// The group below which the partition is, below the mount of control groups.
pub const OUTER_GROUP: &str = "onbeat";

/// Group whose processes have the isolated CPUs.
pub const INNER_GROUP: &str = "onbeat/rt";

/// Rule that a partition satisfies, under which threads placed in it are journaled.
pub const PARTITION_RULE: &str = "cpu-isolation";

/// Reason why a thread cannot be moved.
pub const IMMOVABLE: &str = "the kernel refuses another affinity (PF_NO_SETAFFINITY)";

/// State of the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PartitionState {
    /// In force.
    Isolated,
    /// Created, and not in force.
    Invalid,
    None,
}

/// A thread that may run on the isolated CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolatedThread {
    pub tid: u32,
    pub comm: String,
    /// True if user space may change its affinity.
    pub movable: bool,
    /// Reason why it is there: it was placed there, or cannot leave.
    pub why: String,
    /// The CPUs on which it may run, as a list.
    #[serde(default)]
    pub allowed: String,
}

/// An interrupt that may go to the isolated CPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolatedInterrupt {
    /// Number of the interrupt, as in `/proc/interrupts`.
    pub irq: String,
    /// Names of its handlers.
    pub name: String,
    pub movable: bool,
    /// Reason why it is there.
    pub why: String,
    /// CPUs to which it may go, as a list.
    #[serde(default)]
    pub allowed: String,
    /// True if it may not go there any more, and leaves with its next occurrence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pending: bool,
}

/// Events of one kind on an isolated CPU during the count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrivals {
    pub cpu: u32,
    /// `interrupt`, `timer`, `softirq` or `switch`.
    pub kind: String,
    /// Name from the kernel: the label and the description of `/proc/interrupts`.
    pub name: String,
    pub count: u64,
}

/// The isolated CPUs, and the threads and interrupts that may still use them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationDocument {
    pub schema: String,
    /// Requested CPUs, as a list.
    pub cpus: String,
    pub partition: PartitionState,
    /// Reason why the partition is not in force; `""` if it is.
    #[serde(default)]
    pub reason: String,
    /// CPUs available to its processes.
    #[serde(default)]
    pub effective: String,
    /// Id of the journal's entry; `""` without one.
    #[serde(default)]
    pub entry: String,
    /// Time in ns until it undoes itself; null if it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone_in_ns: Option<i64>,
    /// True if confirming keeps it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub confirmable: bool,
    pub threads: Vec<IsolatedThread>,
    pub interrupts: Vec<IsolatedInterrupt>,
    /// Length of the count of arrivals in ns; null if nothing was counted.
    #[serde(default)]
    pub counted_ns: Option<i64>,
    #[serde(default)]
    pub arrivals: Vec<Arrivals>,
}
