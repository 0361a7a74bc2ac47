//! Who a culprit is, where it is a thread: which threads were seen, for how long each time, and
//! what /proc said of them.

use serde::{Deserialize, Serialize};

use crate::units::Nanos;

/// A thread that took time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CulpritThread {
    pub tid: i32,
    /// Its name in the trace.
    pub comm: String,
    /// The kernel's priority in the trace, the most urgent: -1 deadline, 0 to 98 real-time (99 less
    /// the priority), 100 to 139 fair.
    pub prio: i32,
    /// Whether its stack begins where those of the kernel's threads do.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub of_kernel: bool,
    /// Its turns in spikes, each once.
    pub turns: u64,
    /// Their time in spikes, added up over the spikes.
    pub total_ns: Nanos,
    /// When the first and the last of its turns in spikes began.
    pub first_ns: Nanos,
    pub last_ns: Nanos,
    /// What /proc said of it at the end of the hunt; null where that was not asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<FoundThread>,
}

/// What /proc says of a thread; texts are `""` and numbers null where that is not known, and
/// `unread` has the reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct FoundThread {
    /// `alive`, `ended` (its number may be another's by now), or `unknown`.
    pub state: String,
    /// Whether it is a thread of the kernel.
    pub kernel: Option<bool>,
    /// Its process.
    pub process: Option<i32>,
    /// The path of the process's program.
    pub program: String,
    /// The last part of its control group: the unit, with systemd.
    pub unit: String,
    /// `deadline`, `fifo`, `rr` or `other`.
    pub policy: String,
    pub priority: Option<u32>,
    /// The CPUs that it may use.
    pub cpus: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// What could not be read, and why.
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

/// The turns of a culprit's threads, as far as spikes show them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CulpritTurns {
    /// Turns of one thread, from its switch to another thread's; one that several spikes show is
    /// one. What came before the first of these spikes is not in it.
    pub count: u64,
    /// The length of one, at the median and at most.
    pub median_ns: Nanos,
    pub longest_ns: Nanos,
    /// From one to the next of the same thread, the median; null where half of these distances do
    /// not lie close together, or turns between them may have been in no spike.
    pub every_ns: Option<Nanos>,
    /// The standard error of that.
    pub every_se_ns: Option<Nanos>,
}
