//! One spike with all that is known of it, as the judgements ask for it.

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

/// The cause of a stretch, and the evidence for it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cause {
    pub kind: SliceKind,
    pub who: Who,
    /// What it rests on: a short sentence.
    pub evidence: String,
    /// Where the CPU was.
    pub stack: Vec<String>,
    /// Whether all CPUs may have been stopped meanwhile.
    pub contested: bool,
    /// True if its length is estimated and not counted.
    pub estimated: bool,
}

impl Cause {
    /// A cause without a stack.
    pub(super) fn new(kind: SliceKind, who: Who, evidence: impl Into<String>) -> Cause {
        Cause { kind, who, evidence: evidence.into(), stack: Vec::new(), contested: false, estimated: false }
    }
}

/// Which stage of the wake-up this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// No event records the waking, or the thread waits for another.
    Unknown,
    /// The timer's interrupt has not come.
    Before,
    /// The interrupt has come, the softirq that expires the timer has not.
    Raised,
    Expiring,
    /// The thread is runnable or runs.
    Runnable,
}

/// A stop of the machine from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub certainty: StopCertainty,
    /// Silence alone shows it at that time: no timer was due yet.
    pub estimated: bool,
}

/// How certain it is that the machine was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopCertainty {
    /// A timer was due where nothing could delay it.
    Proven,
    /// The same in a virtual machine: a single virtual CPU may have been late by itself.
    Contested,
    /// A busy CPU missed its ticks.
    Likely,
}

/// A spike and what was found out about it.
pub(super) struct Case<'w> {
    pub window: &'w Window,
    pub host: &'w Host,
    /// The longest time that the measuring thread's own path can take between two events.
    pub own: i64,
    /// The events by CPU.
    pub cpus: PerCpu<'w>,
    /// What was sent from CPU to CPU, in order of time.
    pub sent: Vec<&'w Named>,
    pub tasks: Tasks,
    /// Changes of a thread's priority by inheritance, by thread, in order of time.
    pub handed_on: HashMap<i32, Vec<&'w Named>>,
    pub path: Path,
    /// The start of what is explained; `to` minus this is the latency.
    pub from: i64,
    pub to: i64,
    /// Steps of CPUs on their way on or off line.
    pub hotplug: Vec<HotplugStep<'w>>,
    /// Time in which interrupts were off for certain.
    pub irqs_off: Spans<Cause>,
    /// Time in which the whole machine was stopped.
    pub silent: Spans<Stop>,
    /// Time in which the thread waited for one of lower priority.
    pub inverted: Spans<Cause>,
    /// From when on there are no events of the CPU, because they were lost: what ran then is
    /// unknown.
    pub lost_from: Option<i64>,
}

impl<'w> Case<'w> {
    /// The CPU that had the wake-up at the beginning.
    pub(super) fn home(&self) -> Cpu {
        self.path.cpu_intervals.first().map_or(self.window.cpu, |leg| leg.1)
    }

    /// The events of a CPU.
    pub(super) fn events(&self, cpu: Cpu) -> &[&'w Named] {
        self.cpus.get(&cpu).map_or(&[], Vec::as_slice)
    }

    /// Since when the victim was runnable at that time, if an event shows it.
    pub(super) fn runnable_since(&self, time: i64) -> Option<i64> {
        let all = &self.path.runnable;
        all[..all.partition_point(|&since| since <= time)].last().copied()
    }

    /// Which stage the wake-up was in.
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

    /// The thread that was current; none where no event names it.
    pub(super) fn current(&self, stretch: &Stretch) -> Option<Task> {
        stretch.pid.and_then(|pid| self.tasks.at(pid, stretch.start))
    }

    /// The frames that belong to an event of a CPU, and which of them enabled interrupts.
    pub(super) fn stack_of(&self, cpu: Cpu, index: usize) -> Option<(&'w [String], Option<usize>)> {
        // Nothing but a non-maskable interrupt comes between the two.
        let mut next = self.events(cpu).get(index + 1..)?.iter().take(4);
        match &next.find(|event| !matches!(event.what, What::Nmi { .. }))?.what {
            What::Stack { frames, enables } => Some((frames, *enables)),
            _ => None,
        }
    }
}
