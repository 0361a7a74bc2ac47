//! Cycles of followed threads: from a release (a timer's expiry, an interrupt, another thread) to
//! the thread's next sleep for its next release.
//!
//! A sleep is classified at its end, by the waker, by the state and kernel stack of the sleep, and
//! by the thread's other waits: `decide` has the rules. Sleeps that no event explains are counted
//! and make no cycle. In reading order: `place` (places of sleeps), `expiry` (expiring timers),
//! `period` (periods from expiries), `thread` (states of one thread).
//!
//! Sources: kernel/sched/core.c (`__schedule`, `try_to_wake_up`), kernel/time/hrtimer.c.

mod decide;
mod expiry;
mod period;
pub mod place;
mod thread;

#[cfg(test)]
mod oracle;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use self::decide::Waking;
use self::expiry::ExpiringTimers;
use self::place::{FutexWords, SleepPlace};
use self::thread::ThreadCycles;
use crate::event::{Address, Raw, Task, What};
use model::units::{Cpu, Nanos};

/// Start of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseKind {
    /// A high-resolution timer: nanosleep, timerfd, a POSIX timer, the time-out of a wait.
    Timer,
    /// An interrupt or its thread.
    Interrupt,
    /// Another thread.
    Thread,
}

/// Class of a thread's time within a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CyclePart {
    /// The thread is released or woken, but does not run yet.
    Wait,
    /// Another thread has taken its CPU.
    Preempted,
    /// The thread sleeps, but not for its next release.
    Blocked,
}

/// Longest part of a cycle in which the thread did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestPart {
    pub part: CyclePart,
    pub length: Nanos,
    /// Thread that took the CPU or woke it; without a name if no thread did.
    pub by: Task,
}

/// Complete cycle of a thread. Its four sums add up to its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    pub task: Task,
    /// CPU on which it ended.
    pub cpu: Cpu,
    pub by: ReleaseKind,
    pub release: Nanos,
    /// Time at which the thread first ran.
    pub began: Nanos,
    /// Time at which the thread went to sleep for its next release.
    pub end: Nanos,
    /// Time on a CPU, interrupts on top of it included.
    pub own: Nanos,
    /// Time between a release or wake-up and running.
    pub wait: Nanos,
    pub preempted: Nanos,
    pub blocked: Nanos,
    pub faults: u64,
    pub longest: Option<LongestPart>,
    /// Time between the previous expiry of the timer and that of this release.
    pub distance: Option<Nanos>,
    /// Period estimated from the thread's timers.
    pub period: Option<Nanos>,
}

impl Cycle {
    /// Time from the release to the end.
    pub fn response(&self) -> Nanos {
        self.end - self.release
    }
}

/// Counters of a thread in addition to its cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CycleCounters {
    /// Sleeps that no event explains, and cycles interrupted by lost events.
    pub untold: u64,
    /// Expiries of the releasing timer during an unfinished cycle.
    pub overrun: u64,
    /// Unrecorded switches to it within cycles: the time at which it got its CPU is estimated from
    /// the last event of another thread there.
    pub unseen_switches: u64,
}

/// Thread of the last event on a CPU, and the last time of the one before it there.
#[derive(Clone, Copy, Debug, Default)]
struct LastSeen {
    pid: i32,
    at: Nanos,
    before: Option<Nanos>,
}

impl LastSeen {
    fn see(&mut self, event: &Raw) {
        if self.pid != event.pid {
            *self = LastSeen { pid: event.pid, at: event.time, before: Some(self.at) };
        }
        self.at = event.time;
    }
}

/// Tracks the cycles of threads in the events of all CPUs, in order of time.
#[derive(Clone, Debug, Default)]
pub struct CycleTracker {
    threads: BTreeMap<i32, ThreadCycles>,
    expiring: ExpiringTimers,
    /// Running thread of each CPU.
    current: BTreeMap<Cpu, Task>,
    /// Thread of the last event of each CPU.
    seen: BTreeMap<Cpu, LastSeen>,
    /// Number of the futex system call, if system calls are recorded.
    futex: Option<i64>,
    words: FutexWords,
    /// Threads whose system calls have other numbers.
    others: BTreeSet<i32>,
}

impl CycleTracker {
    /// Starts without threads; `futex` is the number of that system call if calls are recorded.
    pub fn new(futex: Option<i64>) -> CycleTracker {
        CycleTracker { futex, ..CycleTracker::default() }
    }

    /// Notes that system calls are no longer recorded.
    pub fn end_syscalls(&mut self) {
        self.futex = None;
    }

    /// Ignores the system calls of a thread from now on, because they have other numbers, such as
    /// those of a 32-bit program on a 64-bit kernel.
    pub fn has_other_numbers(&mut self, thread: i32) {
        if self.threads.contains_key(&thread) {
            self.others.insert(thread);
        }
    }

    pub fn follow(&mut self, thread: i32) {
        self.threads.entry(thread).or_default();
    }

    /// Stops following a thread that has ended, because its ID may be reused.
    pub fn unfollow(&mut self, thread: i32) {
        self.threads.remove(&thread);
        self.others.remove(&thread);
    }

    pub fn counters(&self, thread: i32) -> CycleCounters {
        self.threads.get(&thread).map(|own| own.counters).unwrap_or_default()
    }

    /// Start of a thread's unfinished cycle.
    pub fn open_since(&self, thread: i32) -> Option<Nanos> {
        self.threads.get(&thread)?.open_since()
    }

    /// True if [`CycleTracker::observe`] may use such an event.
    pub fn wants(event: &Raw) -> bool {
        matches!(
            event.what,
            What::Switch { .. }
                | What::Waking { .. }
                | What::TimerStart { .. }
                | What::TimerEntry { .. }
                | What::TimerExit { .. }
                | What::TimerStartExpired { .. }
                | What::SyscallEntry { .. }
                | What::Fault { .. }
                | What::Stack { .. }
                | What::VectorExit { .. }
                | What::IrqExit { .. }
                | What::SoftirqExit { .. }
        )
    }

    /// Takes an event, in order of time; returns a cycle once its end is known. `place` derives the
    /// place of a sleep from its kernel stack.
    pub fn observe(&mut self, event: &Raw, place: &mut dyn FnMut(&[Address]) -> SleepPlace) -> Option<Cycle> {
        let in_interrupt = event.context.hard_irq() || event.context.soft_irq() || event.context.nmi();
        let first = LastSeen { pid: event.pid, at: event.time, before: None };
        self.seen.entry(event.cpu).or_insert(first).see(event);
        match &event.what {
            What::TimerStart { timer, expires, .. } => {
                let own = self.threads.get_mut(&event.pid).filter(|_| !in_interrupt);
                if let Some(own) = own {
                    own.arms(*timer, event.time);
                    self.expiring.started(*timer, *expires);
                } else {
                    self.expiring.started_by_another(*timer, *expires);
                }
            }
            What::TimerEntry { timer, now, .. } => {
                self.expiring.entered(event, *timer, *now);
                self.threads.values_mut().for_each(|own| own.timer_expires(*timer));
            }
            What::TimerExit { timer } => {
                self.expiring.left(event.cpu, *timer);
                self.threads.values_mut().for_each(|own| own.timer_expired(*timer));
            }
            What::TimerStartExpired { timer } if !in_interrupt => {
                let own = self.threads.get_mut(&event.pid)?;
                let timer = self.expiring.due_at_start(event, *timer);
                let (time, by) = (event.time, Task::default());
                let waking = Waking { time, timer: Some(timer), by, in_interrupt: true, is_condition: false };
                let (ended, released_by) = own.goes_on(&waking);
                self.expiring.remember(released_by, timer.offset);
                return ended;
            }
            What::SyscallEntry { id, args } => {
                let futex = self.futex.filter(|_| !self.others.contains(&event.pid))?;
                let mutex = *id == futex && self.words.waits_for_mutex(args);
                self.threads.get_mut(&event.pid)?.enters_call(mutex);
            }
            What::Fault { .. } => self.threads.get_mut(&event.pid)?.faults(),
            What::Stack { frames, .. } => {
                let own = self.threads.get_mut(&event.pid)?;
                if own.lacks_place(event.cpu, event.time) {
                    own.sleeps_at(place(frames));
                }
            }
            What::Waking { task, .. } => return self.woken(event, task, in_interrupt),
            What::Switch { prev, state, next } => {
                self.current.insert(event.cpu, *next);
                if let Some(own) = self.threads.get_mut(&prev.pid) {
                    let last = self.seen.get(&event.cpu).filter(|last| last.pid == prev.pid);
                    own.leaves(event, *state, next, last.and_then(|last| last.before));
                }
                if let Some(own) = self.threads.get_mut(&next.pid) {
                    own.runs(event, next);
                }
            }
            _ => {}
        }
        None
    }

    fn woken(&mut self, event: &Raw, task: &Task, in_interrupt: bool) -> Option<Cycle> {
        let own = self.threads.get_mut(&task.pid)?;
        let timer = self.expiring.around(event);
        let by = match self.current.get(&event.cpu) {
            Some(current) if !in_interrupt && current.pid == event.pid => *current,
            _ if in_interrupt => Task::default(),
            _ => Task { pid: event.pid, ..Task::default() },
        };
        let is_condition = own.calls && self.futex.is_some() && !self.others.contains(&task.pid);
        let (ended, released_by) =
            own.woken(&Waking { time: event.time, timer, by, in_interrupt, is_condition });
        // The timer that released the thread is tracked from now on, for any starter.
        self.expiring.remember(released_by, timer.map_or(0, |timer| timer.offset));
        ended
    }

    /// Forgets the threads' states after lost events, because unknown states are not guessed.
    pub fn forget(&mut self) {
        self.threads.values_mut().for_each(ThreadCycles::forget);
        self.expiring.forget();
        self.current.clear();
        self.seen.clear();
    }
}
