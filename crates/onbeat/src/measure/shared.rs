//! State shared by all threads of a run, and their agreement on its start.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use super::barrier::ThreadBarrier;
use crate::plan::MeasurePlan;
use host::{clock, rt};
use model::units::Nanos;

/// Time from the agreement on the start to slot 0.
const START_MARGIN: Nanos = Nanos(20_000_000);

/// State shared by all threads of a run.
pub struct Shared {
    /// Set when the loops are to end.
    pub stop: AtomicBool,
    /// Number of threads that have ended.
    pub ended: AtomicUsize,
    /// Number of threads that died or could not be started: the others do not wait for them.
    pub died: AtomicUsize,
    /// Passed by all threads when all are ready, when the run starts, and when it is over.
    pub barrier: ThreadBarrier,
    /// Set before the second passage if the run is cancelled.
    pub cancelled: AtomicBool,
    /// Passed by the measuring threads alone, before they agree on the start.
    pub start_barrier: ThreadBarrier,
    /// Time of slot 0 of the first CPU; 0 until the threads have agreed.
    pub start_at: AtomicI64,
    /// Rounds before the run, whose samples do not count; all threads pass the barrier at the start
    /// and the end of each.
    pub rounds: usize,
    /// Number of wake-ups of the next round.
    pub round_loops: AtomicU64,
    /// Capacity for samples that are handed over one by one.
    pub late_capacity: usize,
    /// Latency from which a wake-up is a spike.
    pub threshold: AtomicI64,
    /// Thread that is notified of an end.
    pub housekeeper: i32,
}

impl Shared {
    /// State for the threads of a plan; created by the housekeeping thread.
    pub fn new(plan: &MeasurePlan, rounds: usize, late_capacity: usize) -> Shared {
        Shared {
            stop: AtomicBool::new(false),
            ended: AtomicUsize::new(0),
            died: AtomicUsize::new(0),
            barrier: ThreadBarrier::new(plan.cpus.len() + 1),
            cancelled: AtomicBool::new(false),
            start_barrier: ThreadBarrier::new(plan.cpus.len()),
            start_at: AtomicI64::new(0),
            rounds,
            late_capacity,
            round_loops: AtomicU64::new(0),
            threshold: AtomicI64::new(i64::MAX),
            housekeeper: rt::thread_id(),
        }
    }

    /// True if that many threads have ended or died.
    pub fn all_have_ended(&self, threads: usize) -> bool {
        self.ended.load(Ordering::Acquire) + self.died.load(Ordering::Acquire) >= threads
    }

    /// Notes the death of that many threads: the run ends, and the others do not wait for them.
    pub fn leave(&self, threads: usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.died.fetch_add(threads, Ordering::Release);
        self.start_barrier.leave(threads);
        self.barrier.leave(threads);
        rt::notify_housekeeper(self.housekeeper);
    }
}

/// Releases the others if a measuring thread dies, in builds in which a panic ends one thread only.
pub struct LeaveOnPanic<'a>(pub &'a Shared);

impl Drop for LeaveOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.leave(1);
        }
    }
}

/// Returns the start, set by the first measuring thread once all have arrived. It lies after the
/// last arrival, so that a late housekeeping thread makes no thread miss it.
pub fn agree_on_start(shared: &Shared) -> Nanos {
    shared.start_barrier.wait();
    let mine = (clock::monotonic() + START_MARGIN).0;
    let agreed = shared.start_at.compare_exchange(0, mine, Ordering::AcqRel, Ordering::Acquire);
    Nanos(agreed.map_or_else(|first| first, |_| mine))
}
