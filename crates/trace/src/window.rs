//! Window of events around one spike: all that an explanation needs, and all that is stored of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::event::{Named, Task};
use model::run::Slice;
use model::units::{Cpu, Nanos};

/// Spike with the events around it: one line of a bundle's `events/spikes.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// CPU on which the wake-up was late.
    pub cpu: Cpu,
    /// Number of the slot; null for a task without a schedule of onbeat's.
    pub cycle: Option<u64>,
    /// Time at which the thread should have run.
    pub expected_ns: Nanos,
    /// Time at which it ran: its own timestamp, or for a followed task the switch to it.
    pub actual_ns: Nanos,
    /// Thread that woke late.
    pub victim: Task,
    /// True if `actual_ns` is the thread's own timestamp, after its return to user space.
    #[serde(default)]
    pub own: bool,
    /// Deadline of a late cycle. The cycle goes from its release at `expected_ns` to the thread's
    /// sleep for the next one at `actual_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<Nanos>,
    /// Cycle of the thread that was unfinished when this one was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousCycle>,
    /// Events overwritten on this CPU before they could be read, as far as the kernel counts them,
    /// within the window or up to its start.
    pub events_lost: u64,
    /// True if the buffer did not reach back to the start of the spike.
    #[serde(default)]
    pub begins_late: bool,
    /// Events of other CPUs, or from before the spike, that were omitted to save space.
    #[serde(default)]
    pub left_out: u64,
    /// Names of the system calls in its events, by their numbers on its machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<i64, String>,
    /// Locations of the locks in the thread's calls, as mapping and offset, by the number of the
    /// lock in the events.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locks: BTreeMap<u64, String>,
    /// Events in order of time, of all CPUs, from some time before `expected_ns` to `actual_ns`.
    pub events: Vec<Named>,
}

/// Cycle that was unfinished when the thread's next one was due, with its explanation from the
/// events of its own window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PreviousCycle {
    pub release_ns: Nanos,
    /// End of the cycle, and start of the thread's work on the next one.
    pub end_ns: Nanos,
    /// Its time since the next one was due, in order; time outside of them is unexplained.
    pub slices: Vec<Slice>,
}

impl Window {
    /// True if its times are possible in a kernel; a damaged or forged file may contain others.
    pub fn is_sound(&self) -> bool {
        self.expected_ns.0 >= 0 && self.actual_ns >= self.expected_ns
    }

    pub fn latency(&self) -> Nanos {
        self.actual_ns - self.expected_ns
    }
}
