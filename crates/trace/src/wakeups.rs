//! Threads of other programs followed through the events: from the timer or the waker to the switch
//! to the thread.
//!
//! The expected time is that of its timer if it sleeps on one, that of the waking if another thread
//! wakes it, and the start of the wait if it waited for a mutex.

use std::collections::BTreeMap;

use super::cycles::place::FutexWords;
use super::event::{Address, Raw, Task, What};
use super::timer_clocks::TimerClocks;
use model::units::{CPU_LIMIT, Cpu, Nanos};

/// Wake-up of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wakeup {
    pub task: Task,
    pub cpu: Cpu,
    /// Time at which it should have run.
    pub expected: Nanos,
    /// Time of the switch to it.
    pub actual: Nanos,
    /// Offset to add to the times of the clock of its own timer, if that woke it.
    pub timer_offset: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// Timer that it started last.
    timer: Option<Address>,
    /// Start of its sleep.
    asleep: Option<Nanos>,
    /// True if it waits for a mutex of user space.
    for_mutex: bool,
    /// Expected time of a woken thread, and the offset of its timer's clock.
    due: Option<(Nanos, Option<i64>)>,
}

/// States of the followed threads.
///
/// Most events are of other threads: one bit, by the lower part of the thread ID, excludes nearly
/// all of them without a search.
#[derive(Clone, Debug)]
struct ThreadStates {
    states: BTreeMap<i32, State>,
    marks: [u64; 64],
}

impl Default for ThreadStates {
    fn default() -> ThreadStates {
        ThreadStates { states: BTreeMap::new(), marks: [0; 64] }
    }
}

impl ThreadStates {
    /// Position of a thread's bit.
    #[inline]
    fn mark(thread: i32) -> (usize, u64) {
        (thread as usize >> 6 & 63, 1 << (thread & 63))
    }

    fn add(&mut self, thread: i32) {
        let (word, bit) = ThreadStates::mark(thread);
        self.marks[word] |= bit;
        self.states.entry(thread).or_default();
    }

    #[inline]
    fn may_have(&self, thread: i32) -> bool {
        let (word, bit) = ThreadStates::mark(thread);
        self.marks[word] & bit != 0
    }

    #[inline]
    fn has(&self, thread: i32) -> bool {
        self.may_have(thread) && self.states.contains_key(&thread)
    }

    #[inline]
    fn of(&mut self, thread: i32) -> Option<&mut State> {
        if self.may_have(thread) { self.states.get_mut(&thread) } else { None }
    }
}

/// Timer whose function runs.
#[derive(Clone, Copy, Debug)]
struct ExpiringTimer {
    timer: Address,
    /// Time at which it was to expire.
    due: Nanos,
    /// Offset of its clock.
    offset: i64,
}

/// Tracker of the followed threads.
#[derive(Clone, Debug, Default)]
pub struct WakeupTracker {
    states: ThreadStates,
    /// Times at which the threads' timers are to expire, each on its own clock.
    timers: BTreeMap<Address, Nanos>,
    clocks: TimerClocks,
    /// Expiring timer by CPU.
    expiring: Vec<Option<ExpiringTimer>>,
    /// Number of the futex system call.
    futex: i64,
    words: FutexWords,
    /// Number of wake-ups from a sleep that ended without a switch to the thread.
    pub unseen: u64,
}

impl WakeupTracker {
    /// Follows these threads; `futex` is the number of that system call on this machine.
    pub fn new(threads: impl IntoIterator<Item = i32>, futex: i64) -> WakeupTracker {
        let mut tracker = WakeupTracker { futex, ..WakeupTracker::default() };
        threads.into_iter().for_each(|thread| tracker.follow(thread));
        tracker
    }

    /// Allows a trace that may be on any clock.
    pub fn on_any_clock(self) -> WakeupTracker {
        WakeupTracker { clocks: TimerClocks::of_any_trace(), ..self }
    }

    /// Sets the number of the futex system call on the machine of the trace.
    pub fn with_futex(self, futex: i64) -> WakeupTracker {
        WakeupTracker { futex, ..self }
    }

    /// Follows a further thread.
    pub fn follow(&mut self, thread: i32) {
        self.states.add(thread);
    }

    /// True for a followed thread.
    #[inline]
    pub fn follows(&self, thread: i32) -> bool {
        self.states.has(thread)
    }

    /// Stops following a thread.
    pub fn unfollow(&mut self, thread: i32) {
        if let Some(timer) = self.states.states.remove(&thread).and_then(|state| state.timer) {
            self.timers.remove(&timer);
        }
    }

    /// True if [`WakeupTracker::observe`] uses such an event.
    pub fn wants(&self, event: &Raw) -> bool {
        match &event.what {
            What::Waking { task, .. } => self.states.has(task.pid),
            What::Switch { prev, next, .. } => self.states.has(prev.pid) || self.states.has(next.pid),
            What::TimerStart { .. } | What::SyscallEntry { .. } => self.states.has(event.pid),
            What::TimerEntry { .. } | What::TimerExit { .. } => true,
            _ => false,
        }
    }

    /// Takes an event, in order of time; returns a wake-up once it is complete.
    pub fn observe(&mut self, event: &Raw) -> Option<Wakeup> {
        match &event.what {
            // A timer started by an interrupt is not a sleep of the interrupted thread.
            What::TimerStart { timer, expires, .. } if !interrupt(event) => {
                let state = self.states.of(event.pid)?;
                if let Some(last) = state.timer.replace(*timer) {
                    self.timers.remove(&last);
                }
                self.timers.insert(*timer, *expires);
            }
            What::TimerEntry { timer, now, .. } => {
                let offset = self.clocks.offset(event.time, *now);
                let expires = self.timers.get(timer);
                let due = expires.map_or(event.time, |at| Nanos(at.0.wrapping_add(offset)).min(event.time));
                self.set_expiring(event.cpu, Some(ExpiringTimer { timer: *timer, due, offset }));
            }
            What::TimerExit { .. } => self.set_expiring(event.cpu, None),
            What::SyscallEntry { id, args } => {
                let mutex = *id == self.futex && self.words.waits_for_mutex(args);
                self.states.of(event.pid)?.for_mutex = mutex;
            }
            What::Waking { task, .. } => self.woken(task.pid, event),
            What::Switch { prev, state, next } => {
                if let Some(left) = self.states.of(prev.pid) {
                    match state {
                        // A waking of a running thread (try_to_wake_up, kernel/sched/core.c) is
                        // complete without a switch.
                        0 | 256 => left.due = None,
                        // It slept, was woken and sleeps again, but its run was not recorded.
                        _ => {
                            let slept = left.asleep.replace(event.time).is_some();
                            self.unseen += u64::from(slept && left.due.take().is_some());
                        }
                    }
                }
                let came = self.states.of(next.pid)?;
                let ((expected, timer_offset), _) = (came.due.take()?, came.asleep.take());
                came.for_mutex = false;
                let (cpu, actual) = (event.cpu, event.time);
                return Some(Wakeup { task: *next, cpu, expected, actual, timer_offset });
            }
            _ => {}
        }
        None
    }

    /// Forgets the threads' states after lost events, because unknown states are not guessed.
    pub fn forget(&mut self) {
        self.states.states.values_mut().for_each(|state| *state = State::default());
        self.timers.clear();
        self.expiring.clear();
    }

    /// Notes the expiring timer of a CPU; a damaged file may contain an invalid CPU.
    fn set_expiring(&mut self, cpu: Cpu, timer: Option<ExpiringTimer>) {
        let cpu = cpu.0.min(CPU_LIMIT) as usize;
        if cpu >= self.expiring.len() {
            self.expiring.resize(cpu + 1, None);
        }
        self.expiring[cpu] = timer;
    }

    fn woken(&mut self, thread: i32, event: &Raw) {
        let Some(state) = self.states.of(thread) else { return };
        let expiring = self.expiring.get(event.cpu.0 as usize).copied().flatten();
        let own_timer = expiring.filter(|now| state.timer.is_some_and(|timer| timer == now.timer));
        state.due = Some(match own_timer {
            Some(ExpiringTimer { due, offset, .. }) => (due, Some(offset)),
            // Passed on by a thread, which had the lock as long as this one waited.
            None if state.for_mutex && !interrupt(event) => (state.asleep.unwrap_or(event.time), None),
            None => (event.time, None),
        });
    }
}

fn interrupt(event: &Raw) -> bool {
    event.context.hard_irq() || event.context.soft_irq() || event.context.nmi()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Context, Event};

    const ME: Task = Task { comm: crate::fixed_str::FixedStr::empty(), pid: 7, prio: 19 };

    fn at(time: i64, cpu: u32, pid: i32, hard: bool, what: What<Address>) -> Raw {
        let context = Context(if hard { 8 } else { 0 });
        Event { time: Nanos(time), cpu: Cpu(cpu), pid, context, preempt: 0, what }
    }

    fn switch(time: i64, from: i32, to: i32) -> Raw {
        let task = |pid| Task { pid, ..ME };
        at(time, 0, from, false, What::Switch { prev: task(from), state: 1, next: task(to) })
    }

    fn waking(time: i64, pid: i32, hard: bool) -> Raw {
        at(time, 0, pid, hard, What::Waking { task: ME, target: Cpu(0) })
    }

    fn watched(events: &[Raw]) -> Vec<(i64, i64)> {
        let mut tracker = WakeupTracker::new([7], 202);
        let mut wakeups = Vec::new();
        for event in events {
            let wakeup = tracker.observe(event);
            assert!(wakeup.is_none() || tracker.wants(event));
            wakeups.extend(wakeup.map(|wakeup| (wakeup.expected.0, wakeup.actual.0)));
        }
        wakeups
    }

    #[test]
    fn latency_counts_from_the_timer_s_expiry_on_any_clock() {
        let start = |expires| What::TimerStart { timer: 5, function: 1, expires: Nanos(expires) };
        let fires = |now| What::TimerEntry { timer: 5, function: 1, now: Nanos(now) };
        // Once on CLOCK_MONOTONIC, once on a clock that is an hour ahead; the lag of `now` is not
        // an offset.
        for (ahead, lag) in [(0, 0), (0, 25), (3_600_000_000_000, 0)] {
            let wakeups = watched(&[
                at(10, 0, 7, false, start(100 + ahead)),
                switch(11, 7, 0),
                at(130, 0, 0, true, fires(130 + ahead - lag)),
                waking(131, 0, true),
                at(132, 0, 0, true, What::TimerExit { timer: 5 }),
                switch(140, 0, 7),
            ]);
            assert_eq!(wakeups, [(100, 140)]);
        }
    }

    #[test]
    fn from_the_waker_or_from_where_the_wait_for_a_mutex_began() {
        let futex = |op, value| What::SyscallEntry { id: 202, args: [9, op, value, 0] };
        for (op, value, expected) in [
            (128, 2, 20),
            (9 + 128, 2, 20),
            (128, 0x8000_0010, 20),
            (9, u64::from(u32::MAX), 60),
            (128, 5, 60),
            (1, 2, 60),
        ] {
            let events = [
                at(15, 0, 7, false, futex(op, value)),
                switch(20, 7, 3),
                waking(60, 3, false),
                switch(70, 3, 7),
            ];
            assert_eq!(watched(&events), [(expected, 70)], "{op} {value}");
        }
        // An interrupt does not pass on a mutex.
        let events =
            [at(15, 0, 7, false, futex(0, 2)), switch(20, 7, 3), waking(60, 3, true), switch(70, 3, 7)];
        assert_eq!(watched(&events), [(60, 70)]);
    }

    #[test]
    fn a_waking_of_a_thread_that_runs_is_no_wake_up() {
        let preempted = |time| {
            let task = |pid| Task { pid, ..ME };
            at(time, 0, 7, false, What::Switch { prev: task(7), state: 0, next: task(3) })
        };
        assert_eq!(watched(&[waking(20, 7, true), preempted(50), switch(60, 3, 7)]), []);
        // Woken by another thread while it was about to sleep: that waking counts.
        let asleep = [waking(20, 3, false), switch(21, 7, 3), switch(60, 3, 7)];
        assert_eq!(watched(&asleep), [(20, 60)]);
    }

    #[test]
    fn a_thread_that_is_not_followed_is_passed_over_whatever_its_number() {
        for other in [7 + 64 * 64, 8, -7, i32::MIN] {
            let mut tracker = WakeupTracker::new([7], 202);
            assert!(tracker.follows(7) && !tracker.follows(other), "{other}");
            let task = Task { pid: other, ..ME };
            let events = [switch(20, other, 3), at(30, 0, 3, true, What::Waking { task, target: Cpu(0) })];
            assert!(events.iter().all(|event| tracker.observe(event).is_none() && !tracker.wants(event)));
            assert!(tracker.observe(&switch(40, 3, other)).is_none(), "{other}");
            tracker.unfollow(7);
            assert!(!tracker.follows(7));
        }
    }

    #[test]
    fn a_timer_on_a_cpu_that_no_kernel_has_does_no_harm() {
        let mut tracker = WakeupTracker::new([7], 202);
        let fires = What::TimerEntry { timer: 5, function: 1, now: Nanos(30) };
        for what in [fires, What::TimerExit { timer: 5 }] {
            assert_eq!(tracker.observe(&at(30, u32::MAX, 0, true, what)), None);
        }
        assert!(tracker.expiring.len() <= CPU_LIMIT as usize + 1);
    }

    #[test]
    fn a_wake_up_without_a_switch_to_the_thread_is_counted_and_not_guessed() {
        let mut tracker = WakeupTracker::new([7], 202);
        let events = [switch(20, 7, 3), waking(40, 3, true), switch(60, 7, 3), waking(80, 3, true)];
        assert!(events.iter().all(|event| tracker.observe(event).is_none()));
        let last = tracker.observe(&switch(90, 3, 7)).map(|wakeup| (wakeup.expected.0, wakeup.actual.0));
        assert_eq!((tracker.unseen, last), (1, Some((80, 90))));
    }

    #[test]
    fn after_lost_events_nothing_is_guessed() {
        let mut tracker = WakeupTracker::new([7], 202);
        assert_eq!(tracker.observe(&waking(20, 3, false)), None);
        tracker.forget();
        assert_eq!(tracker.observe(&switch(60, 3, 7)), None);
    }

    #[test]
    fn another_thread_s_timer_and_a_switch_without_a_waking_are_nothing() {
        let other = What::TimerEntry { timer: 6, function: 1, now: Nanos(30) };
        let events = [switch(20, 7, 3), at(30, 0, 3, true, other), waking(31, 3, true), switch(40, 3, 7)];
        assert_eq!(watched(&events), [(31, 40)]);
        assert_eq!(watched(&[switch(20, 7, 3), switch(40, 3, 7)]), []);
    }
}
