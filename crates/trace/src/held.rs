//! Events that are held somewhere, of which those around a late wake-up are asked for.

use super::event::Raw;
use model::units::{Cpu, Nanos};

/// The events that are missing from a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventCoverage {
    /// The first event that was shown is not older than this.
    pub begins: Nanos,
    /// Events that were lost right before that.
    pub lost_before: u64,
    /// Events that were lost within the stretch.
    pub lost: u64,
    /// Events between the last switch and the stretch that were omitted for want of space.
    pub left_out: u64,
}

/// A holder of events: buffers that were read, or a part of a file.
pub trait HeldEvents {
    /// The CPUs that are recorded.
    fn cpus(&self) -> Vec<Cpu>;

    /// Shows the events that are held of a CPU from `from` to `to` in order of time, and before
    /// them those since the last switch before `from`: they show which thread ran. A few more may
    /// come with them, older or younger.
    fn events(&mut self, cpu: Cpu, from: Nanos, to: Nanos, each: &mut dyn FnMut(Raw)) -> EventCoverage;

    /// The time back to which the events of a CPU reach; none where none are held: all events of
    /// that time then count as missing.
    fn oldest(&self, cpu: Cpu) -> Option<Nanos>;

    /// True if there were events before the oldest that are held.
    fn lacks_older(&self, cpu: Cpu) -> bool;
}
