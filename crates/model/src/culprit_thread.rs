//! Threads of a culprit: their turns on the CPU, and their entries in /proc.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// A thread that took time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CulpritThread {
    pub tid: i32,
    /// Name in the trace.
    pub comm: String,
    /// The kernel's priority in the trace, the most urgent: -1 deadline, 0 to 98 real-time (99 less
    /// the priority), 100 to 139 fair.
    pub prio: i32,
    /// True if its stack begins like those of kernel threads.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_kernel: bool,
    /// Number of its turns in spikes, each counted once.
    pub turns: u64,
    /// Time of its turns in spikes, added up over the spikes.
    pub total_ns: Nanos,
    /// Start of the first of its turns in spikes.
    pub first_ns: Nanos,
    /// Start of the last of its turns in spikes.
    pub last_ns: Nanos,
    /// Entry in /proc at the end of the hunt; null if it was not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<FoundThread>,
}

/// Entry of a thread in /proc; texts are `""` and numbers null if unknown, and `unread` has the
/// reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoundThread {
    /// `alive`, `ended` (its number may be in use again), or `unknown`.
    pub state: String,
    /// True for a kernel thread.
    pub kernel: Option<bool>,
    /// Id of its process.
    pub process: Option<i32>,
    /// The path of the process's program.
    pub program: String,
    /// Last part of its control group: the unit, with systemd.
    pub unit: String,
    /// `deadline`, `fifo`, `rr` or `other`.
    pub policy: String,
    pub priority: Option<u32>,
    /// CPUs that it may use.
    pub cpus: String,
    /// Start time, RFC 3339.
    pub started: String,
    /// Values that could not be read, with the reasons.
    pub unread: Vec<String>,
}

impl FoundThread {
    pub fn is_alive(&self) -> bool {
        self.state == "alive"
    }

    pub fn has_ended(&self) -> bool {
        self.state == "ended"
    }
}

/// Turns of a culprit's threads, as far as spikes show them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CulpritTurns {
    /// Number of turns of one thread, each from its switch to another thread's; one that several
    /// spikes show counts once. Time before the first of these spikes is not included.
    pub count: u64,
    /// Median length of a turn.
    pub median_ns: Nanos,
    /// Length of the longest turn.
    pub longest_ns: Nanos,
    /// Median time from one turn to the next of the same thread; null if half of these distances do
    /// not lie close together, or turns between them may have been in no spike.
    pub every_ns: Option<Nanos>,
    /// Standard error of `every_ns`.
    pub every_se_ns: Option<Nanos>,
}
