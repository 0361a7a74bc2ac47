//! `probe migrate`: more real-time threads than CPUs, which the scheduler places.
//!
//! All threads may run on all planned CPUs and have a priority each. In each round all wake up,
//! 20 us after each other and in another order each time, and compute. At any time the highest of
//! those that are ready have to run: a thread that waits while one with a lower priority runs is a
//! violation (push and pull of kernel/sched/rt.c). Each thread publishes the stretches in which it
//! ran; one that had to wait compares its wait with those of the lower threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering::*};

use super::computing::compute;
use crate::measure::shared::Shared;
use crate::measure::task::{MeasuringTask, ThreadBody, ThreadEnd};
use crate::measure::wake::{Sleep, Wake};
use host::{RereadFile, clock, rt};
use model::run::Migration;
use model::units::{Cpu, CpuSet, Nanos};

/// Delay from one thread's wake-up to the next one's in a round.
const STEP: Nanos = Nanos(20_000);

/// Time between two clock reads from which a thread may have lost its CPU.
const PAUSE: Nanos = Nanos(10_000);

/// Work of a slot of the warm-up.
const WARMING: Nanos = Nanos(1_000);

/// Number of stretches of a round that are kept; a thread that loses its CPU more often joins them.
const STRETCHES: usize = 16;

/// Maximum length of the kernel's line of a thread's times.
const LINE: usize = 128;

/// Stretches in which a thread ran in its current round.
#[derive(Default)]
struct Stretches {
    count: AtomicUsize,
    /// Start and end of each; an end before the start is of an earlier round.
    spans: [[AtomicI64; 2]; STRETCHES],
}

impl Stretches {
    fn clear(&self) {
        self.count.store(0, Release);
    }

    /// Starts a stretch.
    fn begin(&self, now: Nanos) {
        let at = self.count.load(Relaxed);
        if let Some([start, end]) = self.spans.get(at) {
            end.store(0, Release);
            start.store(now.0, Release);
            end.store(now.0, Release);
            self.count.store(at + 1, Release);
        }
    }

    /// Extends the last stretch.
    #[inline(always)]
    fn extend(&self, now: Nanos) {
        if let Some([_, end]) = self.spans.get(self.count.load(Relaxed).wrapping_sub(1)) {
            end.store(now.0, Release);
        }
    }

    /// Time within a span in which the thread ran.
    fn within(&self, from: Nanos, to: Nanos) -> Nanos {
        let spans = &self.spans[..self.count.load(Acquire).min(STRETCHES)];
        let common = spans.iter().map(|[start, end]| {
            let end = end.load(Acquire).min(to.0);
            (end - start.load(Acquire).max(from.0)).max(0)
        });
        Nanos(common.sum())
    }
}

/// A wait of a thread while one with a lower priority ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Numbers of the thread that waited and of the one that ran.
    pub thread: u32,
    pub lower: u32,
    pub waited: Nanos,
    pub at: Nanos,
}

/// Results of a thread.
#[derive(Default)]
struct Counts {
    violations: AtomicU64,
    held: AtomicU64,
    starts: AtomicU64,
    start_sum: AtomicI64,
    start_max: AtomicI64,
}

/// Threads that the scheduler places.
pub struct Migrating {
    stretches: Vec<Stretches>,
    counts: Vec<Counts>,
    /// CPU time of a thread in a round.
    work: Nanos,
    /// Wait from which the run has failed.
    over: Nanos,
    /// CPU of each thread that is bound, so that the run has to fail.
    bound: Vec<Cpu>,
    failure: OnceLock<Violation>,
}

impl Migrating {
    /// `threads` of them; `bound` has a CPU for each, or is empty.
    pub fn new(threads: usize, work: Nanos, over: Nanos, bound: Vec<Cpu>) -> Migrating {
        let stretches = (0..threads).map(|_| Stretches::default()).collect();
        let counts = (0..threads).map(|_| Counts::default()).collect();
        Migrating { stretches, counts, work, over, bound, failure: OnceLock::new() }
    }

    /// Results of each thread, for its priority.
    pub fn migration(&self, index: usize, priority: u32) -> Migration {
        let Some(of) = self.counts.get(index) else { return Migration::default() };
        let starts = of.starts.load(Acquire) as i64;
        let any = starts > 0;
        Migration {
            priority,
            violations: of.violations.load(Acquire),
            held: of.held.load(Acquire),
            mean_start_ns: any.then(|| Nanos(of.start_sum.load(Acquire) / starts)),
            max_start_ns: any.then(|| Nanos(of.start_max.load(Acquire))),
        }
    }

    pub fn failure(&self) -> Option<Violation> {
        self.failure.get().copied()
    }

    /// Longest time within a span in which a thread below `index` ran, with the thread.
    fn lower_ran(&self, index: usize, from: Nanos, to: Nanos) -> (Nanos, usize) {
        let lower = (index + 1..self.stretches.len()).map(|at| (self.stretches[at].within(from, to), at));
        lower.max().unwrap_or_default()
    }
}

impl ThreadBody for Migrating {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        let bound = self.bound.get(task.index).map(|&cpu| [cpu].into_iter().collect());
        task.run_with_schedule(MigratingThread {
            all: self,
            index: task.index,
            shared: task.shared,
            interval: task.plan.interval,
            bound,
            // Of the thread itself, which the kernel counts on its run queues.
            times: RereadFile::open("/proc/thread-self/schedstat", LINE).ok(),
            waited: Nanos(0),
            ended: Nanos(0),
        })
    }
}

/// One of the threads.
struct MigratingThread<'a> {
    all: &'a Migrating,
    index: usize,
    shared: &'a Shared,
    interval: Nanos,
    bound: Option<CpuSet>,
    times: Option<RereadFile>,
    /// Time of the round in which it waited while a lower thread ran.
    waited: Nanos,
    /// End of the round.
    ended: Nanos,
}

/// Waits of one round.
#[derive(Default)]
struct RoundWaits {
    sum: Nanos,
    longest: Nanos,
    lower: usize,
}

impl MigratingThread<'_> {
    /// Delay of this thread's wake-up in the round of that slot.
    fn delay(&self, slot: Nanos) -> Nanos {
        let threads = self.all.stretches.len() as i64;
        let round = slot.0 / self.interval.0.max(1);
        Nanos((self.index as i64 + round).rem_euclid(threads) * STEP.0)
    }

    /// Time that the thread has waited on run queues, if the kernel counts it.
    fn queued(&mut self) -> Option<Nanos> {
        let text = self.times.as_mut()?.read().ok()?;
        let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace();
        let (ran, queued): (i64, i64) = (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        (ran > 0).then_some(Nanos(queued))
    }

    /// Computes for `work`, and returns the waits of the round.
    fn compute(&self, released: Nanos, started: Nanos, work: Nanos) -> RoundWaits {
        let own = &self.all.stretches[self.index];
        let mut waits = RoundWaits::default();
        let mut note = |from, to| {
            let (waited, lower) = self.all.lower_ran(self.index, from, to);
            waits.sum = waits.sum + waited;
            if waited > waits.longest {
                (waits.longest, waits.lower) = (waited, lower);
            }
        };
        own.clear();
        own.begin(started);
        note(released, started);
        compute(work, PAUSE, |now, pause| {
            // Without a switch the thread had its CPU.
            if let Some(pause) = pause.filter(|pause| pause.switched) {
                own.begin(now);
                note(pause.from, now);
            }
            own.extend(now);
        });
        waits
    }

    /// Counts the round; `queued` is the time that the kernel counts for its waits.
    fn count(&self, waits: &RoundWaits, started: Nanos, queued: Option<Nanos>) {
        let of = &self.all.counts[self.index];
        of.starts.fetch_add(1, AcqRel);
        of.start_sum.fetch_add(started.0, AcqRel);
        of.start_max.fetch_max(started.0, AcqRel);
        if waits.sum < self.all.over {
            return;
        }
        if queued.is_some_and(|queued| queued.0 < waits.sum.0 / 2) {
            of.held.fetch_add(1, AcqRel);
            return;
        }
        of.violations.fetch_add(1, AcqRel);
        let number = |index: usize| index as u32 + 1;
        let _ = self.all.failure.set(Violation {
            thread: number(self.index),
            lower: number(waits.lower),
            waited: waits.sum,
            at: self.ended,
        });
        self.shared.stop.store(true, Relaxed);
    }
}

impl Wake for MigratingThread<'_> {
    const COUNTS_MISSED: bool = false;

    fn sleep_until(&mut self, instant: Nanos) -> Sleep {
        if let Some(cpus) = self.bound.take() {
            // It fails for a CPU that went offline, and the thread stays free.
            let _ = rt::pin(&cpus);
        }
        let counts = self.shared.start_at.load(Relaxed) != 0;
        let released = if counts { instant + self.delay(instant) } else { instant };
        let queued = if counts { self.queued() } else { None };
        if !clock::nanosleep_until(released) {
            return Sleep::Interrupted;
        }
        let started = clock::monotonic();
        if !counts {
            // What the rounds call is in memory then.
            self.queued();
            self.compute(started, started, WARMING);
            (self.waited, self.ended) = (Nanos(0), started);
            return Sleep::Full;
        }
        let waits = self.compute(released, started, self.all.work);
        self.ended = clock::monotonic();
        self.waited = waits.sum;
        let since = queued.zip(self.queued()).map(|(before, now)| now - before);
        self.count(&waits, started - released, since);
        Sleep::Full
    }

    fn now(&self, _expected: Nanos) -> Nanos {
        self.ended
    }

    fn latency(&self, _expected: Nanos, _now: Nanos) -> Nanos {
        self.waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_counts_where_a_lower_thread_ran() {
        let all = Migrating::new(3, Nanos(1), Nanos(1), Vec::new());
        let [_, middle, low] = &all.stretches[..] else { panic!("three threads") };
        middle.begin(Nanos(100));
        middle.extend(Nanos(140));
        low.begin(Nanos(110));
        low.extend(Nanos(120));
        low.begin(Nanos(150));
        low.extend(Nanos(190));
        assert_eq!(all.lower_ran(0, Nanos(90), Nanos(200)), (Nanos(50), 2));
        assert_eq!(all.lower_ran(0, Nanos(90), Nanos(125)), (Nanos(25), 1));
        assert_eq!(all.lower_ran(1, Nanos(115), Nanos(160)), (Nanos(15), 2));
        assert_eq!(all.lower_ran(2, Nanos(0), Nanos(200)).0, Nanos(0), "none is lower");
        low.clear();
        assert_eq!(all.lower_ran(1, Nanos(0), Nanos(200)).0, Nanos(0));
        // A stretch more than are kept extends the last one.
        (0..20).for_each(|at| low.begin(Nanos(at)));
        low.extend(Nanos(40));
        assert_eq!(low.within(Nanos(0), Nanos(99)), Nanos(25));
    }

    #[test]
    fn the_kernel_s_count_tells_a_wait_from_a_cpu_that_stood_still() {
        let mut plan = crate::plan::tests::any_plan();
        plan.unbind(2);
        let shared = Shared::new(&plan, 0, 0);
        let all = Migrating::new(2, Nanos(1), Nanos(1_000), Vec::new());
        let thread = MigratingThread {
            all: &all,
            index: 0,
            shared: &shared,
            interval: Nanos::MILLI,
            bound: None,
            times: None,
            waited: Nanos(0),
            ended: Nanos(7),
        };
        let waits = |ns| RoundWaits { sum: Nanos(ns), longest: Nanos(ns), lower: 1 };
        thread.count(&waits(999), Nanos(5), None);
        thread.count(&waits(5_000), Nanos(7), Some(Nanos(2_000)));
        assert_eq!((all.failure(), shared.stop.load(Relaxed)), (None, false));
        thread.count(&waits(5_000), Nanos(9), Some(Nanos(2_500)));
        let failed = Violation { thread: 1, lower: 2, waited: Nanos(5_000), at: Nanos(7) };
        assert_eq!((all.failure(), shared.stop.load(Relaxed)), (Some(failed), true));
        let of = all.migration(0, 80);
        assert_eq!((of.violations, of.held, of.mean_start_ns), (1, 1, Some(Nanos(7))));
        assert_eq!(all.migration(1, 79).max_start_ns, None);
        let slots = (0..4).map(|slot| thread.delay(Nanos(slot * Nanos::MILLI.0)).0 / STEP.0);
        assert_eq!(slots.collect::<Vec<_>>(), [0, 1, 0, 1]);
    }
}
