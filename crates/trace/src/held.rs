//! Access to stored events, to read those around a late wake-up.

use super::event::Raw;
use model::units::{Cpu, Nanos};

/// Events that are missing in a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCoverage {
    /// No event that was shown is older than this.
    pub begins: Nanos,
    /// Number of events lost right before that.
    pub lost_before: u64,
    /// Number of events lost within the stretch.
    pub lost: u64,
    /// Number of events between the last switch and the stretch that were omitted to save space.
    pub left_out: u64,
}

/// Store of events: buffers that were read, or a part of a file.
pub trait HeldEvents {
    /// Recorded CPUs.
    fn cpus(&self) -> Vec<Cpu>;

    /// Passes the events of a CPU between `from` and `to` to `each` in order of time, after those
    /// since the last switch before `from`, which identify the running thread. A few more may come
    /// with them, older or younger.
    fn events(&mut self, cpu: Cpu, from: Nanos, to: Nanos, each: &mut dyn FnMut(Raw)) -> EventCoverage;

    /// Time of the oldest event of a CPU; none if there are none: then all events count as missing.
    fn oldest(&self, cpu: Cpu) -> Option<Nanos>;

    /// True if there were older events, which are not stored.
    fn lacks_older(&self, cpu: Cpu) -> bool;
}
