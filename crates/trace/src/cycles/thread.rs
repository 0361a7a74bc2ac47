//! State of one followed thread, and its unfinished cycle.

use std::collections::{BTreeMap, BTreeSet};

use super::decide::{Habits, SleepVerdict, ThreadSleep, Waking, verdict};
use super::period::PeriodEstimate;
use super::place::{SleepKind, SleepPlace};
use super::{Cycle, CycleCounters, CyclePart, LongestPart, ReleaseKind};
use crate::event::{Address, Raw, Task};
use model::units::{Cpu, Nanos};

/// Limit of places where a thread waits for its next release; it has few.
const MAX_PLACES: usize = 16;

/// Number of timer releases from which on a thread counts as timer-driven.
const FIRST_TIMERS: u64 = 3;

/// A timer that has not released the thread for this many periods, and at least this time, no
/// longer drives it.
const QUIET_PERIODS: i64 = 8;
const QUIET: Nanos = Nanos(1_000_000_000);

/// Longest time between a switch and its stack: the walk of the stack, and interrupts during it.
const STACK_DELAY: Nanos = Nanos(1_000_000);

#[derive(Clone, Copy, Debug, Default)]
enum Now {
    #[default]
    Unknown,
    Asleep(ThreadSleep),
    /// In a run queue, with the start, the part of the cycle, and the thread that caused it.
    Queued(Nanos, CyclePart, Task),
    Running(Nanos),
}

/// Unfinished cycle.
#[derive(Clone, Copy, Debug)]
struct OpenCycle {
    by: ReleaseKind,
    release: Nanos,
    began: Option<Nanos>,
    own: i64,
    wait: i64,
    preempted: i64,
    blocked: i64,
    faults: u64,
    longest: Option<LongestPart>,
    distance: Option<Nanos>,
}

/// Timer that the thread started since it was last woken.
#[derive(Clone, Copy, Debug)]
struct Armed {
    timer: Address,
    at: Nanos,
}

/// State of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct ThreadCycles {
    task: Task,
    now: Now,
    open: Option<OpenCycle>,
    armed: Option<Armed>,
    mutex: bool,
    /// True once one of its system calls was recorded: later ones are recorded, too.
    pub calls: bool,
    /// Sleeps from which timers released it, with the expiries there.
    timer_places: BTreeMap<(SleepPlace, bool), PeriodEstimate>,
    /// Sleeps from which anything else released it.
    other_places: BTreeSet<(SleepPlace, bool)>,
    /// Timer that released it last; `timers` counts all releases by timers.
    timer: Option<Address>,
    timers: u64,
    /// Sleeps ended by another thread, at a futex or without a stack.
    futexes: u64,
    /// Releasing timer whose function runs while the thread is not asleep.
    missed: Option<Address>,
    period: PeriodEstimate,
    pub counters: CycleCounters,
}

impl ThreadCycles {
    pub fn open_since(&self) -> Option<Nanos> {
        self.open.as_ref().map(|open| open.release)
    }

    pub fn arms(&mut self, timer: Address, at: Nanos) {
        self.armed = Some(Armed { timer, at });
    }

    /// Handles the start of any timer's function; if the timer releases this thread, its last cycle
    /// has not ended.
    pub fn timer_expires(&mut self, timer: Address) {
        let busy = matches!(self.now, Now::Running(_) | Now::Queued(..)) && self.open.is_some();
        self.missed = (busy && self.timer == Some(timer)).then_some(timer);
    }

    /// Handles the end of the function, which has woken no thread.
    pub fn timer_expired(&mut self, timer: Address) {
        let missed = self.missed.take_if(|missed| *missed == timer).is_some();
        self.counters.overrun += u64::from(missed);
    }

    /// Handles the entry of a system call.
    pub fn enters_call(&mut self, waits_for_mutex: bool) {
        (self.calls, self.mutex) = (true, waits_for_mutex);
    }

    pub fn faults(&mut self) {
        self.open.iter_mut().for_each(|open| open.faults += 1);
    }

    /// True if a stack recorded now is that of its sleep.
    pub fn lacks_place(&self, cpu: Cpu, time: Nanos) -> bool {
        matches!(self.now, Now::Asleep(sleep) if sleep.cpu == cpu
            && sleep.place.kind == SleepKind::Unknown && time - sleep.since <= STACK_DELAY)
    }

    pub fn sleeps_at(&mut self, place: SleepPlace) {
        if let Now::Asleep(sleep) = &mut self.now {
            sleep.place = place;
        }
    }

    /// Handles a switch to another thread. `other` is the last time of another thread on that CPU.
    pub fn leaves(&mut self, event: &Raw, state: i64, next: &Task, other: Option<Nanos>) {
        let time = event.time;
        match self.now {
            Now::Running(since) => {
                self.open.iter_mut().for_each(|open| open.own += (time - since).0);
            }
            Now::Queued(since, part, by) => {
                // Some kernels of virtual machines record no switch at the end of idling. It cannot
                // have run before the other thread did, so its own time is an upper bound.
                let began = other.map_or(since, |other| other.max(since)).min(time);
                if let Some(open) = &mut self.open {
                    open.add(part, began - since, by);
                    open.own += (time - began).0;
                    open.began.get_or_insert(began);
                    self.counters.unseen_switches += 1;
                }
            }
            Now::Asleep(_) | Now::Unknown => self.cut(),
        }
        // 0 is runnable, 256 preempted (TASK_REPORT_MAX).
        self.now = match state & 0xff {
            0 => Now::Queued(time, CyclePart::Preempted, *next),
            _ => Now::Asleep(ThreadSleep {
                since: time,
                cpu: event.cpu,
                state,
                place: SleepPlace::default(),
                timed: self.armed.is_some(),
                mutex: std::mem::take(&mut self.mutex),
            }),
        };
    }

    /// Handles a switch to this thread.
    pub fn runs(&mut self, event: &Raw, task: &Task) {
        self.task = *task;
        let before = std::mem::replace(&mut self.now, Now::Running(event.time));
        let Now::Queued(since, part, by) = before else {
            // Its wake-up or the switch away is missing.
            return self.cut();
        };
        let Some(open) = &mut self.open else { return };
        open.add(part, event.time - since, by);
        open.began.get_or_insert(event.time);
    }

    /// Handles a wake-up; returns the cycle ended by its sleep, and the timer that released it.
    pub fn woken(&mut self, waking: &Waking) -> (Option<Cycle>, Option<Address>) {
        self.missed = None;
        match self.now {
            Now::Asleep(sleep) => self.woken_from(&sleep, waking),
            Now::Running(since) => self.woken_before_it_slept(since, waking),
            // Woken already, or its state is unknown.
            Now::Queued(..) => (None, None),
            Now::Unknown => {
                self.now = Now::Queued(waking.time, CyclePart::Wait, waking.by);
                (None, None)
            }
        }
    }

    fn woken_from(&mut self, sleep: &ThreadSleep, waking: &Waking) -> (Option<Cycle>, Option<Address>) {
        let nameless = matches!(sleep.place.kind, SleepKind::Futex | SleepKind::Unknown);
        self.futexes += u64::from(nameless && waking.timer.is_none() && !waking.in_interrupt);
        let verdict = verdict(sleep, waking, self.habits(sleep, waking.time));
        self.armed = None;
        self.now = Now::Queued(waking.time, CyclePart::Wait, Task::default());
        match verdict {
            SleepVerdict::Released(by, release) => {
                let release = self.not_before_the_last(release, sleep.since);
                let ended = self.end(sleep.since, sleep.cpu);
                self.remember(by, sleep, release);
                self.now = Now::Queued(release, CyclePart::Wait, Task::default());
                (ended, self.release(by, release, waking))
            }
            SleepVerdict::Blocked => {
                if let Some(open) = &mut self.open {
                    open.add(CyclePart::Blocked, waking.time - sleep.since, waking.by);
                }
                (None, None)
            }
            SleepVerdict::Untold => {
                self.counters.untold += 1;
                self.open = None;
                (None, None)
            }
        }
    }

    /// Handles a wake-up of a running thread that is about to sleep (`try_to_wake_up` checks its
    /// state first). If the timer that it has just armed wakes it, its next release was due before
    /// its cycle had ended: there is no sleep between the two.
    fn woken_before_it_slept(&mut self, since: Nanos, waking: &Waking) -> (Option<Cycle>, Option<Address>) {
        let own = |armed: &Armed| waking.timer.is_some_and(|timer| timer.timer == armed.timer);
        let Some(armed) = self.armed.take_if(|armed| own(armed)) else { return (None, None) };
        let (Some(timer), true) = (waking.timer, armed.at >= since) else {
            self.counters.overrun += 1;
            return (None, None);
        };
        let release = self.not_before_the_last(timer.due, armed.at);
        if let Some(open) = &mut self.open {
            open.own += (armed.at - since).0;
        }
        // It has not left its CPU: the cycle ends with the call that started the timer.
        let ended = self.end(armed.at, self.cpu_of(waking));
        let by = self.release(ReleaseKind::Timer, release, waking);
        if let Some(open) = &mut self.open {
            open.add(CyclePart::Wait, waking.time - release, Task::default());
            open.began = Some(waking.time);
        }
        self.now = Now::Running(waking.time);
        (ended, by)
    }

    /// Handles the start of a timer that is due already, without a sleep: its next release, unless
    /// it is a short sleep within a cycle to let other threads run.
    pub fn goes_on(&mut self, waking: &Waking) -> (Option<Cycle>, Option<Address>) {
        let due = waking.timer.map_or(waking.time, |timer| timer.due);
        let half = self.period.found().map_or(0, |period| period.0 / 2);
        let soon = self.open.is_some_and(|open| (due - open.release).0 < half);
        let (Now::Running(since), false) = (self.now, soon) else {
            self.armed = None;
            return (None, None);
        };
        self.woken_before_it_slept(since, waking)
    }

    /// Limits a release to the last one or later: a timer may be armed for a time in the past.
    fn not_before_the_last(&self, release: Nanos, slept: Nanos) -> Nanos {
        let last = self.open.as_ref().map_or(slept, |open| open.release);
        if release > last { release } else { release.max(slept) }
    }

    fn cpu_of(&self, waking: &Waking) -> Cpu {
        waking.timer.map_or_else(Cpu::default, |timer| timer.cpu)
    }

    fn remember(&mut self, by: ReleaseKind, sleep: &ThreadSleep, release: Nanos) {
        let Some(key) = sleep.key() else { return };
        match by {
            ReleaseKind::Timer => {
                if self.timer_places.len() < MAX_PLACES || self.timer_places.contains_key(&key) {
                    self.timer_places.entry(key).or_default().expired(release);
                }
            }
            ReleaseKind::Interrupt | ReleaseKind::Thread => {
                if self.other_places.len() < MAX_PLACES {
                    self.other_places.insert(key);
                }
            }
        }
    }

    fn habits(&self, sleep: &ThreadSleep, time: Nanos) -> Habits {
        let recent = |estimate: &PeriodEstimate| {
            let found = estimate.found();
            let quiet = found.map_or(QUIET, |period| Nanos(QUIET_PERIODS * period.0).max(QUIET));
            estimate.last().is_some_and(|last| time - last <= quiet)
        };
        let timer_driven = self.timers >= FIRST_TIMERS && recent(&self.period);
        let keeps = |estimate: &PeriodEstimate| estimate.exact() && recent(estimate);
        let has_place = timer_driven && self.timer_places.values().any(keeps);
        let scheduled = has_place || self.period.scheduled();
        let here = sleep.key().and_then(|key| self.timer_places.get(&key));
        // Apparent releases before its schedule was known were not releases.
        let other = !(timer_driven && scheduled);
        let here_before = sleep.key().is_some_and(|key| other && self.other_places.contains(&key));
        Habits {
            releases_here: here.is_some() || here_before,
            off_schedule: has_place && sleep.key().is_some() && !here.is_some_and(keeps),
            timer_driven,
            scheduled,
            waits_often: 2 * self.futexes > self.timers,
        }
    }

    fn end(&mut self, end: Nanos, cpu: Cpu) -> Option<Cycle> {
        let open = self.open.take()?;
        // Released and asleep again without having run, which no event explains.
        let began = open.began?;
        Some(Cycle {
            task: self.task,
            cpu,
            by: open.by,
            release: open.release,
            began,
            end,
            own: Nanos(open.own),
            wait: Nanos(open.wait),
            preempted: Nanos(open.preempted),
            blocked: Nanos(open.blocked),
            faults: open.faults,
            longest: open.longest,
            distance: open.distance,
            period: self.period.found(),
        })
    }

    fn release(&mut self, by: ReleaseKind, release: Nanos, waking: &Waking) -> Option<Address> {
        let timer = waking.timer.filter(|_| by == ReleaseKind::Timer).map(|timer| timer.timer);
        let distance = timer.and_then(|_| self.period.expired(release));
        if timer.is_some() {
            self.timer = timer;
            self.timers += 1;
        }
        self.open = Some(OpenCycle {
            by,
            release,
            began: None,
            own: 0,
            wait: 0,
            preempted: 0,
            blocked: 0,
            faults: 0,
            longest: None,
            distance,
        });
        timer
    }

    /// Counts an unfinished cycle whose state is lost.
    fn cut(&mut self) {
        self.counters.untold += u64::from(self.open.take().is_some());
    }

    /// Forgets its state after lost events.
    pub fn forget(&mut self) {
        self.cut();
        (self.now, self.armed, self.mutex) = (Now::Unknown, None, false);
        self.period.forget();
        self.timer_places.values_mut().for_each(PeriodEstimate::forget);
    }
}

impl OpenCycle {
    fn add(&mut self, part: CyclePart, length: Nanos, by: Task) {
        match part {
            CyclePart::Wait => self.wait += length.0,
            CyclePart::Preempted => self.preempted += length.0,
            CyclePart::Blocked => self.blocked += length.0,
        }
        if self.longest.is_none_or(|longest| longest.length < length) {
            self.longest = Some(LongestPart { part, length, by });
        }
    }
}
