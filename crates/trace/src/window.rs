//! What was traced around one spike: all that an explanation needs, and all that is kept of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::event::{Named, Task};
use model::run::Slice;
use model::units::{Cpu, Nanos};

/// A spike and the events around it: one line of a bundle's `events/spikes.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// The CPU on which the wake-up was late.
    pub cpu: Cpu,
    /// The slot's number; null for a task without a schedule of onbeat's.
    pub cycle: Option<u64>,
    /// When the thread should have run.
    pub expected_ns: Nanos,
    /// When it ran: by its own timestamp, or for a followed task the end of the switch to it.
    pub actual_ns: Nanos,
    /// The thread that woke late.
    pub victim: Task,
    /// Whether `actual_ns` is the thread's own timestamp, taken after its return to user space.
    #[serde(default)]
    pub own: bool,
    /// Of a cycle that was later than its deadline: that deadline. It goes from its release at
    /// `expected_ns` to the thread's sleep for the next one at `actual_ns`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<Nanos>,
    /// The cycle of the thread that was on when this one was due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousCycle>,
    /// Events that the kernel overwrote on this CPU before they could be read, as far as it counts
    /// them, within the window or up to its start.
    pub events_lost: u64,
    /// Whether the buffer did not reach back to where the spike began.
    #[serde(default)]
    pub begins_late: bool,
    /// Events of other CPUs, or from before the spike, that were left out for want of space.
    #[serde(default)]
    pub left_out: u64,
    /// Names of the system calls in its events, by their numbers on the machine that it is of.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub calls: BTreeMap<i64, String>,
    /// Where locks lie that the thread's calls name, as mapping and offset, by the number that a
    /// lock has in the events.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub locks: BTreeMap<u64, String>,
    /// In order of time, of all CPUs, from some way before `expected_ns` to `actual_ns`.
    pub events: Vec<Named>,
}

/// A cycle that was on when the thread's next one was due, as it was explained with the events of
/// its own window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PreviousCycle {
    pub release_ns: Nanos,
    /// Its end; from there on the thread is at the next one.
    pub end_ns: Nanos,
    /// Its time since the next one was due, in order; time that is in none of them is unexplained.
    pub slices: Vec<Slice>,
}

impl Window {
    /// Whether its times are ones that a kernel can give; a damaged or forged file may contain
    /// otherwise.
    pub fn is_sound(&self) -> bool {
        self.expected_ns.0 >= 0 && self.actual_ns >= self.expected_ns
    }

    pub fn latency(&self) -> Nanos {
        self.actual_ns - self.expected_ns
    }
}
