//! What all threads of a run share, and how they agree on its start.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use super::barrier::ThreadBarrier;
use crate::plan::MeasurePlan;
use host::{clock, rt};
use model::units::Nanos;

/// From the agreement on the start to slot 0.
const START_MARGIN: Nanos = Nanos(20_000_000);

/// What all threads of a run share.
pub struct Shared {
    /// Set when the loops are to end.
    pub stop: AtomicBool,
    /// Threads that have ended.
    pub ended: AtomicUsize,
    /// Threads that died or could not be started: none waits for them.
    pub died: AtomicUsize,
    /// Passed by all threads when all are ready, when the run starts, and when it is over.
    pub barrier: ThreadBarrier,
    /// Set before the second passage if the run does not take place.
    pub cancelled: AtomicBool,
    /// Passed by the measuring threads alone, before they agree on the start.
    pub start_barrier: ThreadBarrier,
    /// When slot 0 of the first CPU is; 0 until the threads have agreed.
    pub start_at: AtomicI64,
    /// Rounds before the run, whose samples do not count; all threads pass the barrier at the start
    /// and the end of each.
    pub rounds: usize,
    /// Wake-ups of the round that begins.
    pub round_loops: AtomicU64,
    /// Room for samples that are handed over one by one.
    pub late_capacity: usize,
    /// The latency from which on a wake-up is a spike.
    pub threshold: AtomicI64,
    /// The thread that is notified of an end.
    pub housekeeper: i32,
}

impl Shared {
    /// For the threads of a plan; made by the housekeeping thread.
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

    /// Whether that many threads have ended or died.
    pub fn all_have_ended(&self, threads: usize) -> bool {
        self.ended.load(Ordering::Acquire) + self.died.load(Ordering::Acquire) >= threads
    }

    /// That many threads died: the run ends, and none of the others waits for them.
    pub fn leave(&self, threads: usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.died.fetch_add(threads, Ordering::Release);
        self.start_barrier.leave(threads);
        self.barrier.leave(threads);
        rt::notify_housekeeper(self.housekeeper);
    }
}

/// Releases the others where a measuring thread dies: in builds in which a panic ends its thread
/// alone.
pub struct LeaveOnPanic<'a>(pub &'a Shared);

impl Drop for LeaveOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.leave(1);
        }
    }
}

/// The first of the measuring threads decides once all are there: however late the housekeeping
/// thread runs, no thread is late for a start that lies ahead of the last one's arrival.
pub fn agree_on_start(shared: &Shared) -> Nanos {
    shared.start_barrier.wait();
    let mine = (clock::monotonic() + START_MARGIN).0;
    let agreed = shared.start_at.compare_exchange(0, mine, Ordering::AcqRel, Ordering::Acquire);
    Nanos(agreed.map_or_else(|first| first, |_| mine))
}
