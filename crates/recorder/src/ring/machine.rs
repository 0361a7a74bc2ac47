//! The work of the programs inside the kernel, done on the events of a ring: a thread's timer, its
//! waking, its switch.
//!
//! The rules are those of the programs, so that both ways count the same of the same events. One is
//! added, as a ring may lose events: no latency spans a gap.

use std::collections::BTreeMap;

use model::units::{Cpu, Nanos};
use trace::event::{Address, Raw, Task, What};

use super::pieces::CpuPieces;
use super::tally::{Interrupted, RingTallies, WakeupSample};
use crate::layout::{COUNTS, CountedEvent, SLOTS};
use crate::programs::leaving::{SHOWN_DEAD, SHOWN_STATES};
use crate::programs::timers::ONE_PASS;
use crate::programs::{Functions, NOT_REAL_TIME};

/// A timer that a thread set.
#[derive(Clone, Copy, Debug)]
struct SetTimer {
    timer: Address,
    expiry: i64,
    /// Time of the event, and the number of suspends before it.
    at: Nanos,
    suspends: u32,
}

/// The last timer that fired on a CPU: the time of its clock then, and that clock's distance from
/// CLOCK_MONOTONIC.
#[derive(Clone, Copy, Debug)]
struct FiredTimer {
    timer: Address,
    now: i64,
    shift: i64,
}

/// State of a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadState {
    /// True for a kernel thread; `None` if that is not known.
    kernel: Option<bool>,
    timers: [Option<SetTimer>; 2],
    /// Time of its waking; `None` while it runs.
    wake: Option<Nanos>,
    /// T of that waking, and whom its timer interrupted.
    late: Option<(Nanos, Interrupted)>,
    /// True from its falling asleep until it is switched to.
    pub slept: bool,
    /// Its wake-ups after a sleep that were recorded.
    pub recorded: u32,
    /// True if it has separate histograms.
    pub chosen: bool,
}

/// Follows the threads through the events.
pub struct WakeupMachine {
    functions: Functions,
    /// Record all real-time threads, or the chosen ones alone.
    all: bool,
    /// True for a kernel thread, by its id: no event contains it.
    kind_of: fn(u32) -> Option<bool>,
    /// True if no other clock is near CLOCK_MONOTONIC.
    pub clocks_apart: bool,
    threads: BTreeMap<u32, ThreadState>,
    fired: BTreeMap<(Cpu, usize), FiredTimer>,
    /// Threads that had each CPU last.
    pieces: BTreeMap<Cpu, CpuPieces>,
    suspends: u32,
    resumed: Nanos,
    /// CPUs of which events are lost at this time.
    gaps: usize,
    /// No event is lost from here on, up to the next gap.
    whole_from: Nanos,
    counts: [u64; COUNTS],
    spanning: u64,
    tallies: RingTallies,
}

impl WakeupMachine {
    /// Begins with no known thread.
    pub fn new(functions: Functions, all: bool, kind_of: fn(u32) -> Option<bool>) -> WakeupMachine {
        WakeupMachine {
            functions,
            all,
            kind_of,
            clocks_apart: false,
            threads: BTreeMap::new(),
            fired: BTreeMap::new(),
            pieces: BTreeMap::new(),
            suspends: 0,
            resumed: Nanos(0),
            gaps: 0,
            whole_from: Nanos(0),
            counts: [0; COUNTS],
            spanning: 0,
            tallies: RingTallies::default(),
        }
    }

    /// Adds a thread that exists already; false if there is no room for it.
    pub fn add(&mut self, tid: u32, kernel: bool, asleep: bool) -> bool {
        if self.threads.len() >= SLOTS {
            return false;
        }
        let state = ThreadState { kernel: Some(kernel), slept: asleep, ..ThreadState::default() };
        self.threads.entry(tid).or_insert(state);
        true
    }

    pub fn thread(&self, tid: u32) -> Option<&ThreadState> {
        self.threads.get(&tid)
    }

    /// The threads that are followed, in the order of their numbers.
    pub fn tids(&self) -> Vec<u32> {
        self.threads.keys().copied().collect()
    }

    /// Gives a thread separate histograms.
    pub fn choose(&mut self, tid: u32) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            thread.chosen = true;
        }
    }

    /// Removes a thread that has ended.
    pub fn remove(&mut self, tid: u32) {
        self.threads.remove(&tid);
    }

    /// The number is another thread's now, and the end of the first was not seen.
    pub fn replace(&mut self, tid: u32, kernel: bool) {
        if let Some(thread) = self.threads.get_mut(&tid) {
            let recorded = thread.recorded;
            *thread = ThreadState { kernel: Some(kernel), recorded, ..ThreadState::default() };
        }
    }

    /// Takes the counts since the last call, in the order of [`CountedEvent`], the number of
    /// latencies dropped because events were lost within them, and the histograms.
    pub fn take_counted(&mut self) -> ([u64; COUNTS], u64, RingTallies) {
        let counts = std::mem::take(&mut self.counts);
        (counts, std::mem::take(&mut self.spanning), std::mem::take(&mut self.tallies))
    }

    /// Begins and ends of suspends, since the beginning.
    pub fn suspends(&self) -> u32 {
        self.suspends
    }

    /// The histograms so far.
    pub fn tallies(&self) -> &RingTallies {
        &self.tallies
    }

    /// Begins a gap, in which events of a CPU are lost.
    pub fn gap_begins(&mut self) {
        self.gaps += 1;
    }

    /// Ends a gap of this CPU.
    pub fn gap_ends(&mut self, cpu: Cpu, at: Nanos) {
        self.gaps = self.gaps.saturating_sub(1);
        self.whole_from = self.whole_from.max(at);
        self.fired.retain(|(of, _), _| *of != cpu);
        self.pieces.remove(&cpu);
    }

    /// The next event; those of all CPUs in the order of time.
    pub fn take(&mut self, event: &Raw) {
        match &event.what {
            What::TimerStart { timer, function, expires } => {
                self.set(event, *timer, *function, expires.0);
            }
            What::TimerEntry { timer, function, now } => self.fired(event, *timer, *function, now.0),
            What::Waking { task, .. } => self.woken(event, task),
            What::Switch { prev, state, next } => {
                self.pieces.entry(event.cpu).or_default().begin(prev, *next, event.time);
                if prev.prio < NOT_REAL_TIME {
                    self.leaves(prev.pid as u32, *state);
                }
                if next.prio < NOT_REAL_TIME {
                    self.arrives(event, prev, next);
                }
            }
            What::Suspend => {
                self.suspends += 1;
                self.resumed = event.time;
            }
            _ => {}
        }
    }

    fn count(&mut self, what: CountedEvent, times: u64) {
        self.counts[what as usize] += times;
    }

    fn kind_of_timer(&self, function: Address) -> Option<usize> {
        self.functions.iter().find(|(known, _)| *known == function).map(|(_, kind)| *kind as usize)
    }

    fn set(&mut self, event: &Raw, timer: Address, function: Address, expiry: i64) {
        let Some(kind) = self.kind_of_timer(function) else { return };
        let set = SetTimer { timer, expiry, at: event.time, suspends: self.suspends };
        if let Some(thread) = self.threads.get_mut(&(event.pid as u32)) {
            thread.timers[kind] = Some(set);
        }
    }

    fn fired(&mut self, event: &Raw, timer: Address, function: Address, now: i64) {
        let Some(kind) = self.kind_of_timer(function) else { return };
        // The event's `now` is when the interrupt began to look at its timers: see
        // `programs::timers::fired`.
        let passed = event.time.0.wrapping_sub(now);
        let one_pass = (0..i64::from(ONE_PASS)).contains(&passed);
        let shift = if self.clocks_apart && one_pass { 0 } else { passed.wrapping_neg() };
        let fired = FiredTimer { timer, now: event.time.0.wrapping_add(shift), shift };
        self.fired.insert((event.cpu, kind), fired);
    }

    fn woken(&mut self, event: &Raw, task: &Task) {
        let Some(thread) = self.threads.get_mut(&(task.pid as u32)) else { return };
        if task.prio >= NOT_REAL_TIME {
            return;
        }
        // A waking without a switch since was one of a thread that had not slept.
        let early = thread.wake.replace(event.time).is_some();
        thread.late = None;
        let (mut spans, mut spanning, mut unmatched) = (0, 0, false);
        for kind in 0..2 {
            let Some(set) = thread.timers[kind] else { continue };
            let fired = self.fired.get(&(event.cpu, kind));
            let ours = fired.filter(|fired| fired.timer == set.timer && fired.now >= set.expiry);
            let Some(fired) = ours else {
                // The sleep is over, and with it its timer.
                if kind == 0 {
                    thread.timers[0] = None;
                    unmatched = event.time.0 >= set.expiry;
                }
                continue;
            };
            thread.timers[kind] = None;
            if set.suspends != self.suspends {
                spans += 1;
            } else if set.at < self.whole_from {
                // It may have been set anew within the gap.
                spanning += 1;
            } else {
                let late = event.time.0.wrapping_add(fired.shift).wrapping_sub(set.expiry);
                let task = self.pieces.get(&event.cpu).and_then(CpuPieces::running);
                let task = task.filter(|task| task.pid == event.pid);
                thread.late = Some((Nanos(late), Interrupted { tid: event.pid, task }));
                break;
            }
        }
        self.spanning += spanning;
        self.count(CountedEvent::Early, early.into());
        self.count(CountedEvent::Suspended, spans);
        self.count(CountedEvent::Unmatched, unmatched.into());
    }

    /// Adds a new thread if all threads are recorded.
    fn claim(&mut self, tid: u32) -> bool {
        if !self.all || self.threads.len() >= SLOTS {
            return false;
        }
        let state = ThreadState { kernel: (self.kind_of)(tid), ..ThreadState::default() };
        self.threads.insert(tid, state);
        true
    }

    fn leaves(&mut self, tid: u32, state: i64) {
        if !self.threads.contains_key(&tid) && !self.claim(tid) {
            return;
        }
        if state & i64::from(SHOWN_DEAD) != 0 {
            self.threads.remove(&tid);
            return self.count(CountedEvent::Ended, 1);
        }
        let Some(thread) = self.threads.get_mut(&tid) else { return };
        // It slept, and here it is: it ran again unseen.
        let unseen = std::mem::take(&mut thread.slept);
        if unseen {
            thread.wake = None;
        }
        let mut early = false;
        if state & i64::from(SHOWN_STATES) != 0 {
            thread.slept = true;
        } else {
            early = thread.wake.take().is_some();
        }
        self.count(CountedEvent::Unwoken, unseen.into());
        self.count(CountedEvent::Early, early.into());
    }

    fn arrives(&mut self, event: &Raw, previous: &Task, task: &Task) {
        let tid = task.pid as u32;
        let Some(thread) = self.threads.get_mut(&tid) else {
            if !self.claim(tid) {
                self.count(CountedEvent::Collisions, self.all.into());
            }
            return;
        };
        let slept = std::mem::take(&mut thread.slept);
        let (wake, kernel) = (thread.wake.take(), thread.kernel);
        let (Some(wake), Some(kernel)) = (wake, kernel) else {
            // It was preempted and resumes; or its waking was not seen, or its kind is not known.
            return self.count(CountedEvent::Unwoken, (slept || wake.is_some()).into());
        };
        if wake < self.resumed {
            return self.count(CountedEvent::Suspended, 1);
        }
        if self.gaps > 0 || wake < self.whole_from {
            self.spanning += 1;
            return;
        }
        thread.recorded = thread.recorded.wrapping_add(slept.into());
        let (late, interrupted) = thread.late.unzip();
        let sample = WakeupSample {
            cpu: event.cpu,
            holder: match previous.prio.cmp(&task.prio) {
                std::cmp::Ordering::Greater => 0,
                std::cmp::Ordering::Equal => 1,
                std::cmp::Ordering::Less => 2,
            },
            kernel,
            late,
            wait: event.time - wake,
            held: self.pieces.get(&event.cpu).and_then(|pieces| pieces.held(previous, wake)),
            at: event.time,
            victim: *task,
            previous: *previous,
            interrupted,
        };
        let chosen = thread.chosen;
        self.count(CountedEvent::Preempted, (!slept).into());
        self.count(CountedEvent::Recorded, 1);
        self.tallies.add(&sample, chosen);
    }
}
