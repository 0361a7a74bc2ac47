//! Case: one spike with everything known about it, for its attribution.

use std::collections::HashMap;

use super::hotplug::HotplugStep;
use super::path::{Path, PerCpu};
use super::spans::Spans;
use super::state::Stretch;
use super::tasks::Tasks;
use crate::event::{Named, Task, What};
use crate::window::Window;
use model::run::{Host, Who};
use model::slice::SliceKind;
use model::units::Cpu;

/// Cause of a stretch, with its evidence.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cause {
    pub kind: SliceKind,
    pub who: Who,
    /// Evidence: a short sentence.
    pub evidence: String,
    /// Stack of the CPU.
    pub stack: Vec<String>,
    /// True if all CPUs may have been stopped at the time.
    pub contested: bool,
    /// True if its length is estimated, not counted.
    pub estimated: bool,
}

impl Cause {
    /// Creates a cause without a stack.
    pub(super) fn new(kind: SliceKind, who: Who, evidence: impl Into<String>) -> Cause {
        Cause { kind, who, evidence: evidence.into(), stack: Vec::new(), contested: false, estimated: false }
    }
}

/// Stage of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// No event records the waking, or the thread waits for another one.
    Unknown,
    /// The timer's interrupt has not arrived.
    Before,
    /// The interrupt has arrived, but not the softirq that expires the timer.
    Raised,
    Expiring,
    /// The thread is runnable or runs.
    Runnable,
}

/// A stop of the machine from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub certainty: StopCertainty,
    /// True if only silence shows it at that time: no timer was due yet.
    pub estimated: bool,
}

/// Certainty of a stop of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopCertainty {
    /// A timer was due when nothing could delay it.
    Proven,
    /// Such a timer in a virtual machine: a single virtual CPU may have been late by itself.
    Contested,
    /// A busy CPU missed its ticks.
    Likely,
}

/// Spike with the findings about it.
pub(super) struct Case<'w> {
    pub window: &'w Window,
    pub host: &'w Host,
    /// Longest time between two events on the measuring thread's own path, in ns.
    pub own: i64,
    /// Events by CPU.
    pub cpus: PerCpu<'w>,
    /// Requests between CPUs, in order of time.
    pub sent: Vec<&'w Named>,
    pub tasks: Tasks,
    /// Priority changes by inheritance, by thread, in order of time.
    pub handed_on: HashMap<i32, Vec<&'w Named>>,
    pub path: Path,
    /// Start of the time to explain; `to` minus this is the latency.
    pub from: i64,
    pub to: i64,
    /// Steps of CPUs on the way online or offline.
    pub hotplug: Vec<HotplugStep<'w>>,
    /// Times with interrupts off for certain.
    pub irqs_off: Spans<Cause>,
    /// Times in which the whole machine was stopped.
    pub silent: Spans<Stop>,
    /// Times in which the thread waited for one with lower priority.
    pub inverted: Spans<Cause>,
    /// Time from which the CPU's events are lost: what ran later is unknown.
    pub lost_from: Option<i64>,
}

impl<'w> Case<'w> {
    /// CPU of the wake-up at its start.
    pub(super) fn home(&self) -> Cpu {
        self.path.cpu_intervals.first().map_or(self.window.cpu, |leg| leg.1)
    }

    /// Events of a CPU.
    pub(super) fn events(&self, cpu: Cpu) -> &[&'w Named] {
        self.cpus.get(&cpu).map_or(&[], Vec::as_slice)
    }

    /// Time since which the victim was runnable at `time`, if an event shows it.
    pub(super) fn runnable_since(&self, time: i64) -> Option<i64> {
        let all = &self.path.runnable;
        all[..all.partition_point(|&since| since <= time)].last().copied()
    }

    /// Stage of the wake-up at a time.
    pub(super) fn phase(&self, time: i64) -> Phase {
        let path = &self.path;
        if path.asleep.is_some_and(|asleep| time < asleep) && self.runnable_since(time).is_some() {
            return Phase::Runnable;
        }
        if path.due_at_start.is_some_and(|over| over <= time) {
            return Phase::Runnable;
        }
        if path.queued.is_some_and(|queued| queued <= time)
            || path.waking.is_some_and(|waking| waking <= time)
        {
            return Phase::Runnable;
        }
        if path.waking.is_none() && path.switch.is_some_and(|switch| switch <= time) {
            return Phase::Runnable;
        }
        match &path.expiry {
            Some(expiry) if time < expiry.interrupt => Phase::Before,
            Some(expiry) if time < expiry.time => Phase::Raised,
            Some(_) => Phase::Expiring,
            None => Phase::Unknown,
        }
    }

    /// Current thread; none if no event names it.
    pub(super) fn current(&self, stretch: &Stretch) -> Option<Task> {
        stretch.pid.and_then(|pid| self.tasks.at(pid, stretch.start))
    }

    /// Stack of an event of a CPU, and the index of the frame that enabled interrupts.
    pub(super) fn stack_of(&self, cpu: Cpu, index: usize) -> Option<(&'w [String], Option<usize>)> {
        // Only a non-maskable interrupt can come between the two.
        let mut next = self.events(cpu).get(index + 1..)?.iter().take(4);
        match &next.find(|event| !matches!(event.what, What::Nmi { .. }))?.what {
            What::Stack { frames, enables } => Some((frames, *enables)),
            _ => None,
        }
    }
}
