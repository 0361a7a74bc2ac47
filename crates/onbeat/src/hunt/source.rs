//! The source of a hunt's kernel events. A source records them while measuring goes on, and gives
//! those of a stretch of time as [`Raw`] events; all later steps are the same for all sources.

use super::scope::Scope;
use model::error::Result;
use model::run;
use model::units::{CpuSet, Nanos};
use trace::event::Raw;
use trace::held::HeldEvents;
use trace::names::Names;

pub mod ftrace;
#[cfg(test)]
pub mod memory;

/// Opens the source that this machine offers, for these CPUs, with the names of what its events
/// point at. Today that is ftrace; a further one is chosen here.
pub fn open(cpus: &CpuSet) -> Result<(Box<dyn EventSource>, Names)> {
    let (source, names) = ftrace::Ftrace::open(cpus)?;
    Ok((Box::new(source), names))
}

/// How much is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingLevel {
    Nothing,
    /// Only starts of timers, which show on which timers the measuring threads sleep.
    Timers,
    Events,
    /// Events, and stacks where they explain something.
    Stacks,
    /// The same for threads of other programs: threads that come and go as well, and with stacks
    /// where the threads sleep.
    Victims {
        stacks: bool,
        /// The threads' system calls too: that slows down every process on the machine.
        syscalls: bool,
    },
}

/// The span whose events are collected first; the rest is collected as far as there is room.
#[derive(Clone, Copy, Debug)]
pub struct WantedSpan {
    /// When the spike began: events older than this by more than a while make room for later ones.
    pub from: Nanos,
    pub to: Nanos,
}

impl WantedSpan {
    /// The latest events; the oldest make room.
    pub const LATEST: WantedSpan = WantedSpan { from: Nanos(i64::MAX), to: Nanos(i64::MAX) };
}

/// How far a collection that shows its events got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Events from before this time are missing, if any are.
    pub lost_before: Option<Nanos>,
    /// All events up to here have been shown; of a flood the rest is left for the next time.
    pub complete_until: Nanos,
}

/// A recorder of kernel events. Nothing of it stays armed once it is dropped.
pub trait EventSource: HeldEvents {
    /// Switches to a level for the threads in scope, and forgets what was collected. No thread may
    /// be measuring meanwhile: switching events patches the kernel's text.
    fn arm(&mut self, level: RecordingLevel, scope: &Scope) -> Result<()>;

    /// Records for other threads from now on: the filters and stacks of what is armed. No event is
    /// switched.
    fn set_threads(&mut self, scope: &Scope);

    /// Records system calls no longer. The kernel's text is patched, which interrupts all CPUs
    /// once.
    fn end_syscalls(&mut self);

    /// Takes stacks where the timers expire that were learned since the source was armed.
    fn add_stacks(&mut self, scope: &Scope);

    /// Gives each CPU a buffer of that size, or as near as there is memory for.
    fn resize(&mut self, kib: u64);

    /// Nothing is collected after that time.
    fn set_read_limit(&mut self, until: Nanos);

    /// Collects what was recorded, as much as the span needs.
    fn collect(&mut self, span: WantedSpan);

    /// Collects what was recorded, and shows each event once, those of one CPU in order of time.
    fn collect_each(&mut self, each: &mut dyn FnMut(Raw)) -> Collected;

    /// Shows all events that are held.
    fn each_held(&self, each: &mut dyn FnMut(Raw));

    /// Bytes per second of the busiest CPU since the source was armed, `elapsed` ago.
    fn busiest_rate(&self, elapsed: Nanos) -> u64;

    /// Events that were lost in all, within windows or not.
    fn overwritten(&self) -> u64;

    /// Adds what is recorded, what could not be, and why.
    fn account(&mut self, into: &mut run::Recorder);
}
