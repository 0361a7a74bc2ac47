//! The cycles of followed threads: from a release (a timer's expiry, an interrupt, another thread)
//! to the thread's next sleep for its next release.
//!
//! A sleep is judged when it is over, by what woke the thread, by the state and the kernel stack in
//! which it slept, and by what it waits for otherwise: `decide` has the rules. What no event tells
//! is counted and makes no cycle. In reading order: `place` (where a thread slept), `expiry` (which
//! timer is expiring), `period` (what the expiries show), `thread` (the states of one thread).
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

/// What begins a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseKind {
    /// A high-resolution timer: nanosleep, timerfd, a POSIX timer, the time-out of a wait.
    Timer,
    /// An interrupt or its thread.
    Interrupt,
    /// Another thread.
    Thread,
}

/// What a thread's time within a cycle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CyclePart {
    /// Released or woken, it did not run yet.
    Wait,
    /// Another thread had taken its CPU.
    Preempted,
    /// It slept, and not for its next release.
    Blocked,
}

/// The longest part of a cycle in which the thread did not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongestPart {
    pub part: CyclePart,
    pub length: Nanos,
    /// Who took the CPU, or woke it; no name where no thread did.
    pub by: Task,
}

/// A complete cycle of a thread. Its four sums are its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cycle {
    pub task: Task,
    /// Where it ended.
    pub cpu: Cpu,
    pub by: ReleaseKind,
    pub release: Nanos,
    /// When it first ran.
    pub began: Nanos,
    /// When it went to sleep for its next release.
    pub end: Nanos,
    /// On a CPU, interrupts on top of it included.
    pub own: Nanos,
    /// Released or woken, and not running yet.
    pub wait: Nanos,
    pub preempted: Nanos,
    pub blocked: Nanos,
    pub faults: u64,
    pub longest: Option<LongestPart>,
    /// From the timer's expiry before to that of this release.
    pub distance: Option<Nanos>,
    /// The period that the thread's timers show.
    pub period: Option<Nanos>,
}

impl Cycle {
    /// From the release to the end.
    pub fn response(&self) -> Nanos {
        self.end - self.release
    }
}

/// What is counted of a thread beside its cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CycleCounters {
    /// Sleeps of which no event tells what they were for, and cycles cut by lost events.
    pub untold: u64,
    /// Expiries of the timer that releases it while its last cycle was on.
    pub overrun: u64,
    /// Switches to it within cycles that the kernel did not record: when it got its CPU is known
    /// from what ran there before.
    pub unseen_switches: u64,
}

/// The thread whose event was the last on a CPU, and when the one before it was last seen there.
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

/// Follows threads through the events of all CPUs, in order of time.
#[derive(Clone, Debug, Default)]
pub struct CycleTracker {
    threads: BTreeMap<i32, ThreadCycles>,
    expiring: ExpiringTimers,
    /// Who runs on each CPU.
    current: BTreeMap<Cpu, Task>,
    /// Whose events came from each CPU.
    seen: BTreeMap<Cpu, LastSeen>,
    /// The number of the futex system call, where system calls are recorded.
    futex: Option<i64>,
    words: FutexWords,
    /// Threads whose calls have other numbers.
    others: BTreeSet<i32>,
}

impl CycleTracker {
    /// Follows nobody yet; `futex` is the number of that system call where calls are recorded.
    pub fn new(futex: Option<i64>) -> CycleTracker {
        CycleTracker { futex, ..CycleTracker::default() }
    }

    /// Calls are recorded no longer.
    pub fn end_syscalls(&mut self) {
        self.futex = None;
    }

    /// What a thread calls is not known from now on: its calls have other numbers than that of the
    /// futex, as those of a 32-bit program on a 64-bit kernel.
    pub fn has_other_numbers(&mut self, thread: i32) {
        if self.threads.contains_key(&thread) {
            self.others.insert(thread);
        }
    }

    pub fn follow(&mut self, thread: i32) {
        self.threads.entry(thread).or_default();
    }

    /// Follows a thread no longer: it has ended, and its number may be used again.
    pub fn unfollow(&mut self, thread: i32) {
        self.threads.remove(&thread);
        self.others.remove(&thread);
    }

    pub fn counters(&self, thread: i32) -> CycleCounters {
        self.threads.get(&thread).map(|own| own.counters).unwrap_or_default()
    }

    /// Since when a thread's cycle is on that has not ended.
    pub fn open_since(&self, thread: i32) -> Option<Nanos> {
        self.threads.get(&thread)?.open_since()
    }

    /// Whether [`CycleTracker::observe`] may use such an event.
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

    /// Takes the events in order of time; a cycle when its end is known. `place` tells where a
    /// thread sleeps from its kernel stack.
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
                let waking = Waking { time, timer: Some(timer), by, in_interrupt: true, told: false };
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
        let told = own.calls && self.futex.is_some() && !self.others.contains(&task.pid);
        let (ended, released_by) = own.woken(&Waking { time: event.time, timer, by, in_interrupt, told });
        // What releases a thread once is looked for again, whoever starts it.
        self.expiring.remember(released_by, timer.map_or(0, |timer| timer.offset));
        ended
    }

    /// Forgets the threads' states: events are missing, and what is not known is not guessed.
    pub fn forget(&mut self) {
        self.threads.values_mut().for_each(ThreadCycles::forget);
        self.expiring.forget();
        self.current.clear();
        self.seen.clear();
    }
}
