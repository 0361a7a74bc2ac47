//! Source of a hunt's kernel events. A source records them during the measurement, and gives those
//! of a span as [`Raw`] events; all later steps are the same for all sources.

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

/// Opens the source that this machine offers, for these CPUs, with the names for the addresses in
/// its events. Today that is ftrace; another one would be chosen here.
pub fn open(cpus: &CpuSet) -> Result<(Box<dyn EventSource + Send>, Names)> {
    let (source, names) = ftrace::Ftrace::open(cpus)?;
    Ok((Box::new(source), names))
}

/// Amount of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingLevel {
    Nothing,
    /// Only starts of timers, which show the timers that the measuring threads sleep on.
    Timers,
    Events,
    /// Interrupts, wake-ups and switches alone, for a probe.
    Interrupts,
    /// Events, and stacks where they explain something.
    Stacks,
    /// Events for threads of other programs, which come and go; stacks also where the threads
    /// sleep.
    Victims {
        stacks: bool,
        /// True to record system calls as well, which slows down every process.
        syscalls: bool,
    },
}

/// Span whose events are collected first; others are collected as far as there is room.
#[derive(Clone, Copy, Debug)]
pub struct WantedSpan {
    /// Start of the spike: events older than this by more than a margin make room for later ones.
    pub from: Nanos,
    pub to: Nanos,
}

impl WantedSpan {
    /// The latest events; the oldest make room.
    pub const LATEST: WantedSpan = WantedSpan { from: Nanos(i64::MAX), to: Nanos(i64::MAX) };
}

/// Extent of a collection that shows its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collected {
    /// Time before which events are missing, if any are.
    pub lost_before: Option<Nanos>,
    /// Time up to which all events have been shown; in a flood, the rest is left for the next time.
    pub complete_until: Nanos,
}

/// Recorder of kernel events. Nothing stays armed once it is dropped.
pub trait EventSource: HeldEvents {
    /// Switches to a level for the threads in scope, and discards what was collected. No thread may
    /// be measuring: switching events patches the kernel's text.
    fn arm(&mut self, level: RecordingLevel, scope: &Scope) -> Result<()>;

    /// Records for other threads from now on: changes the filters and stacks of what is armed, and
    /// switches no event.
    fn set_threads(&mut self, scope: &Scope);

    /// Ends the recording of system calls. The kernel's text is patched, which interrupts all CPUs
    /// once.
    fn end_syscalls(&mut self);

    /// Takes stacks at the timers that were learned since the source was armed.
    fn add_stacks(&mut self, scope: &Scope);

    /// Gives each CPU a buffer of that size, or the largest for which there is memory.
    fn resize(&mut self, kib: u64);

    /// Sets the time after which nothing is collected.
    fn set_read_limit(&mut self, until: Nanos);

    /// Collects the recorded events, as many as the span needs.
    fn collect(&mut self, span: WantedSpan);

    /// Collects the recorded events, and shows each once, those of one CPU in order of time.
    fn collect_each(&mut self, each: &mut dyn FnMut(Raw)) -> Collected;

    /// Shows all events that are held.
    fn each_held(&self, each: &mut dyn FnMut(Raw));

    /// Bytes per second of the busiest CPU since the source was armed, `elapsed` ago.
    fn busiest_rate(&self, elapsed: Nanos) -> u64;

    /// Total number of lost events, within windows or not.
    fn overwritten(&self) -> u64;

    /// Adds the recorded events, the missing ones and the reasons for that.
    fn account(&mut self, into: &mut run::Recorder);
}
