//! `probe pi`: three threads of one CPU make priority inversions, which the kernel has to resolve.
//!
//! In each slot the low thread takes a lock; the high one, which is the measuring thread, makes the
//! medium one runnable and waits for the lock. With priority inheritance the low thread runs at the
//! high one's priority until it releases the lock, and the medium one does not run before. Without
//! it the medium one computes first: for a bounded time, so that a failure ends by itself.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering::*};
use std::sync::{Arc, OnceLock};

use super::pair::{Partner, Turns};
use crate::measure::shared::Shared;
use crate::measure::task::{MeasuringTask, ThreadBody, ThreadEnd};
use crate::measure::wake::{Sleep, Wake};
use crate::plan::MeasurePlan;
use host::ipc::{FutexWord, PiFutex, PlainFutex, SharedPiFutex};
use host::{clock, rt};
use model::error::Result;
use model::run::Inversions;
use model::units::{Cpu, Nanos};

/// Longest wait for another thread of the group, beyond the time that the medium one computes.
pub const TIME_LIMIT: Nanos = Nanos::SECOND;

/// Poll interval of the high thread for the others.
const READY_POLL: Nanos = Nanos(20_000);

/// Lock of a group.
pub enum GroupLock {
    /// With priority inheritance.
    Inheriting(PiFutex),
    /// With priority inheritance, in memory that processes can share.
    Shared(SharedPiFutex),
    /// Without: an inversion lasts as long as the medium thread computes.
    Plain(PlainFutex),
}

impl GroupLock {
    fn lock_until(&self, thread: u32, latest: Nanos) -> io::Result<()> {
        match self {
            GroupLock::Inheriting(lock) => lock.lock_until(thread, latest),
            GroupLock::Shared(lock) => lock.lock_until(thread, latest),
            GroupLock::Plain(lock) => lock.lock_until(latest),
        }
    }

    fn unlock(&self, thread: u32) -> io::Result<()> {
        match self {
            GroupLock::Inheriting(lock) => lock.unlock(thread),
            GroupLock::Shared(lock) => lock.unlock(thread),
            GroupLock::Plain(lock) => {
                lock.unlock();
                Ok(())
            }
        }
    }
}

/// Reason why a group ended before the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupFailure {
    /// The medium thread computed to its end while the high one waited for the low one.
    Unresolved { waited: Nanos },
    /// The high thread did not get the lock in time.
    NotReleased { waited: Nanos },
    /// The low or the medium thread did not run in time: nothing was tested.
    NoTime,
    /// A call failed.
    Call(i32),
}

/// Threads of one CPU: their lock, their turns and the results.
pub struct InversionGroup {
    lock: GroupLock,
    /// Time for which the medium thread computes in an inversion.
    compute: Nanos,
    low: Arc<Turns>,
    medium: Arc<Turns>,
    /// 1 while the thread is to take its turn.
    low_go: FutexWord,
    medium_go: FutexWord,
    /// 1 while the low thread holds the lock in an inversion.
    held: FutexWord,
    /// True from the high thread's wait for the lock to its end.
    waiting: AtomicBool,
    /// True if the medium thread computed to its end in this inversion.
    computed: AtomicBool,
    made: AtomicU64,
    resolved: AtomicU64,
    longest_hold: AtomicI64,
    failure: OnceLock<GroupFailure>,
}

impl InversionGroup {
    fn new(lock: GroupLock, compute: Nanos) -> InversionGroup {
        InversionGroup {
            lock,
            compute,
            low: Arc::default(),
            medium: Arc::default(),
            low_go: FutexWord::default(),
            medium_go: FutexWord::default(),
            held: FutexWord::default(),
            waiting: AtomicBool::new(false),
            computed: AtomicBool::new(false),
            made: AtomicU64::new(0),
            resolved: AtomicU64::new(0),
            longest_hold: AtomicI64::new(0),
            failure: OnceLock::new(),
        }
    }

    fn inversions(&self) -> Inversions {
        Inversions {
            made: self.made.load(Acquire),
            resolved: self.resolved.load(Acquire),
            longest_hold_ns: Nanos(self.longest_hold.load(Acquire)),
        }
    }

    /// Body of the low thread.
    fn hold_in_turn(&self) -> io::Result<()> {
        let thread = rt::thread_id() as u32;
        loop {
            if !next_turn(&self.low, &self.low_go) {
                return Ok(());
            }
            // The high thread's time limit is the shorter one.
            self.lock.lock_until(thread, clock::monotonic() + TIME_LIMIT + TIME_LIMIT)?;
            self.low.begin();
            // The high thread runs from here on, until it waits for the lock.
            self.held.set(1);
            self.lock.unlock(thread)?;
            self.longest_hold.fetch_max((clock::monotonic() - self.low.began()).0, AcqRel);
        }
    }

    /// Body of the medium thread.
    fn compute_in_turn(&self) {
        while next_turn(&self.medium, &self.medium_go) {
            self.medium.begin();
            let until = self.medium.began() + self.compute;
            while self.waiting.load(Acquire) {
                if clock::monotonic() >= until {
                    self.computed.store(true, Release);
                    break;
                }
                std::hint::spin_loop();
            }
        }
    }

    /// Makes an inversion; returns the start of the wait for the lock and its end.
    #[inline(always)]
    fn invert(&self, thread: u32) -> Result<(Nanos, Nanos), GroupFailure> {
        let failed = |error: io::Error| GroupFailure::Call(error.raw_os_error().unwrap_or(libc::EIO));
        self.held.put(0);
        self.computed.store(false, Release);
        self.low_go.set(1);
        let latest = clock::monotonic() + TIME_LIMIT;
        self.held.wait_while_until(0, latest).map_err(|_| GroupFailure::NoTime)?;
        self.waiting.store(true, Release);
        self.medium_go.set(1);
        let began = clock::monotonic();
        let locked = self.lock.lock_until(thread, began + self.compute + TIME_LIMIT);
        let ended = clock::monotonic();
        self.waiting.store(false, Release);
        match locked {
            Err(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Err(GroupFailure::NotReleased { waited: ended - began });
            }
            locked => locked.and_then(|()| self.lock.unlock(thread)).map_err(failed)?,
        }
        Ok((began, ended))
    }
}

/// Waits for the thread's next turn; false if there is none.
fn next_turn(turns: &Turns, go: &FutexWord) -> bool {
    turns.set_ready();
    // A signal may end a wait early.
    while go.wait_while(0).is_err() {}
    go.put(0);
    !turns.over()
}

/// One group of threads per measured CPU.
pub struct PriorityInheritance {
    groups: Vec<Arc<InversionGroup>>,
}

impl PriorityInheritance {
    /// A group for each lock: those of the plan's CPUs, in its order.
    pub fn new(locks: Vec<GroupLock>, compute: Nanos) -> PriorityInheritance {
        let groups = locks.into_iter().map(|lock| Arc::new(InversionGroup::new(lock, compute))).collect();
        PriorityInheritance { groups }
    }

    /// Counts per CPU of the plan, in its order.
    pub fn inversions(&self) -> impl Iterator<Item = Inversions> + '_ {
        self.groups.iter().map(|group| group.inversions())
    }

    /// Failures, with the index of the CPU.
    pub fn failures(&self) -> impl Iterator<Item = (usize, GroupFailure)> + '_ {
        self.groups.iter().enumerate().filter_map(|(at, group)| Some((at, *group.failure.get()?)))
    }
}

impl ThreadBody for PriorityInheritance {
    fn run(&self, task: MeasuringTask) -> ThreadEnd {
        let group = &self.groups[task.index];
        match start_partners(group, task.plan, task.own().cpu) {
            Ok(partners) => task.run_with_schedule(HighThread {
                group,
                partners,
                thread: rt::thread_id() as u32,
                shared: task.shared,
                wait: (Nanos(0), Nanos(0)),
                unresolved_before: false,
            }),
            Err(failure) => task.refuse(failure),
        }
    }
}

/// Starts the low and the medium thread of a group, two and one below the high one's priority.
fn start_partners(group: &Arc<InversionGroup>, plan: &MeasurePlan, cpu: Cpu) -> Result<[Partner; 2]> {
    let below = |levels| MeasurePlan { priority: plan.priority.saturating_sub(levels), ..plan.clone() };
    let (held, ends) = (group.clone(), group.clone());
    let hold = move |turns: &Turns| {
        if let Err(error) = held.hold_in_turn() {
            turns.fail(&error);
        }
    };
    let low = Partner::start(&below(2), cpu, cpu, &group.low, hold, move || ends.low_go.set(1))?;
    let (computes, ends) = (group.clone(), group.clone());
    let compute = move |_: &Turns| computes.compute_in_turn();
    let medium = Partner::start(&below(1), cpu, cpu, &group.medium, compute, move || ends.medium_go.set(1))?;
    Ok([low, medium])
}

/// The measuring thread.
struct HighThread<'a> {
    group: &'a InversionGroup,
    partners: [Partner; 2],
    thread: u32,
    shared: &'a Shared,
    /// Start and end of the last wait for the lock.
    wait: (Nanos, Nanos),
    /// True if an inversion of the warm-up was not resolved. Its length must not count as the cost
    /// of a cycle, which would refuse the run instead of the kernel.
    unresolved_before: bool,
}

impl HighThread<'_> {
    /// True if samples count; those of the warm-up do not.
    fn counts(&self) -> bool {
        self.shared.start_at.load(Relaxed) != 0
    }

    /// Ends the run; a warm-up continues without inversions, and the run ends at its first slot.
    #[cold]
    fn fail(&self, failure: GroupFailure) -> Sleep {
        let _ = self.group.failure.set(failure);
        if self.counts() {
            self.shared.stop.store(true, Relaxed);
            Sleep::Interrupted
        } else {
            Sleep::Full
        }
    }

    /// Waits until the others can take their turns.
    fn wait_for_others(&self) -> Result<(), GroupFailure> {
        let until = clock::monotonic() + TIME_LIMIT;
        let InversionGroup { low, medium, .. } = self.group;
        while !(low.ready() && medium.ready()) {
            if let Some(error) = low.failed() {
                return Err(GroupFailure::Call(error.raw_os_error().unwrap_or(libc::EIO)));
            }
            if clock::monotonic() >= until {
                return Err(GroupFailure::NoTime);
            }
            clock::sleep_for(READY_POLL);
        }
        Ok(())
    }
}

impl Wake for HighThread<'_> {
    const COUNTS_MISSED: bool = false;

    #[inline(always)]
    fn sleep_until(&mut self, instant: Nanos) -> Sleep {
        if !clock::nanosleep_until(instant) {
            return Sleep::Interrupted;
        }
        if let Some(&failure) = self.group.failure.get() {
            return self.fail(failure);
        }
        if self.unresolved_before && !self.counts() {
            return Sleep::Full;
        }
        match self.wait_for_others().and_then(|()| self.group.invert(self.thread)) {
            Ok(wait) => self.wait = wait,
            Err(failure) => return self.fail(failure),
        }
        if self.counts() {
            self.group.made.fetch_add(1, Relaxed);
            if self.group.computed.load(Acquire) {
                self.fail(GroupFailure::Unresolved { waited: self.wait.1 - self.wait.0 });
            } else {
                self.group.resolved.fetch_add(1, Relaxed);
            }
        } else {
            self.unresolved_before = self.group.computed.load(Acquire);
            self.group.longest_hold.store(0, Release);
        }
        Sleep::Full
    }

    #[inline(always)]
    fn now(&self, _expected: Nanos) -> Nanos {
        self.wait.1
    }

    #[inline(always)]
    fn latency(&self, _expected: Nanos, now: Nanos) -> Nanos {
        now - self.wait.0
    }

    fn used(&self) -> Nanos {
        let own = clock::thread_cpu().unwrap_or_default();
        self.partners.iter().fold(own, |sum, partner| sum + partner.used())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets the two other threads of a group run while the high one waits.
    fn inverted(lock: GroupLock) -> Result<(Nanos, Nanos), GroupFailure> {
        let group = InversionGroup::new(lock, Nanos::MILLI);
        std::thread::scope(|scope| {
            let low = scope.spawn(|| group.hold_in_turn());
            scope.spawn(|| group.compute_in_turn());
            let wait = || {
                while !(group.low.ready() && group.medium.ready()) {
                    std::thread::yield_now();
                }
            };
            wait();
            let inversion = group.invert(rt::thread_id() as u32);
            wait();
            [&group.low, &group.medium].iter().for_each(|turns| turns.end());
            [&group.low_go, &group.medium_go].iter().for_each(|go| go.set(1));
            assert!(low.join().is_ok_and(|held| held.is_ok()));
            assert!(group.inversions().longest_hold_ns.0 > 0);
            inversion
        })
    }

    #[test]
    fn each_lock_goes_from_the_low_thread_to_the_high_one() {
        let shared = SharedPiFutex::new().expect("a page");
        for lock in [
            GroupLock::Inheriting(PiFutex::default()),
            GroupLock::Shared(shared),
            GroupLock::Plain(PlainFutex::default()),
        ] {
            let (began, ended) = inverted(lock).expect("an inversion");
            assert!(began < ended);
        }
    }

    #[test]
    fn a_medium_thread_that_is_waited_for_computes_to_its_end() {
        let group = InversionGroup::new(GroupLock::Plain(PlainFutex::default()), Nanos::MILLI);
        group.waiting.store(true, Release);
        std::thread::scope(|scope| {
            scope.spawn(|| group.compute_in_turn());
            group.medium_go.set(1);
            while !group.computed.load(Acquire) {
                std::thread::yield_now();
            }
            assert!(clock::monotonic() - group.medium.began() >= Nanos::MILLI);
            group.waiting.store(false, Release);
            group.medium.end();
            group.medium_go.set(1);
        });
    }
}
