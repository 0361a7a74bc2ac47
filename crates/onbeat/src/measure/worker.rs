//! The thread around the hot loop: everything that must be done, and verified, before the first
//! slot.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use super::barrier::ThreadBarrier;
use super::block::{BLOCK_LENGTH, CpuBuffers};
use super::cycle::{self, EndReason, LoopEnd, LoopParams};
use super::hunter::{MAX_ROUND_INTERVAL, MeasuringThread};
use super::late::LATE_QUEUE_CAPACITY;
use super::prepare::{ThreadInfo, prepare};
use super::schedule::Schedule;
use super::wake::{self, Wake};
use crate::plan::MeasurePlan;
use host::clock;
use host::rt::{self, CpuReader, Usage};
use model::error::{Exit, Failure, Result};
use model::units::Nanos;
use model::vocabulary::{SchedulePhase, WakeMechanism};

/// The loop's frames are small; what Rust and libc need around them fits as well.
const STACK: usize = 128 << 10;

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
    /// The latency from which on a wake-up is a spike.
    pub threshold: AtomicI64,
    /// The thread that is notified of an end.
    pub housekeeper: i32,
}

impl Shared {
    /// For the threads of a plan; made by the housekeeping thread.
    pub fn new(plan: &MeasurePlan, rounds: usize) -> Shared {
        Shared {
            stop: AtomicBool::new(false),
            ended: AtomicUsize::new(0),
            died: AtomicUsize::new(0),
            barrier: ThreadBarrier::new(plan.cpus.len() + 1),
            cancelled: AtomicBool::new(false),
            start_barrier: ThreadBarrier::new(plan.cpus.len()),
            start_at: AtomicI64::new(0),
            rounds,
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
struct LeaveOnPanic<'a>(&'a Shared);

impl Drop for LeaveOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.leave(1);
        }
    }
}

/// A measuring thread that is ready, and what it writes into.
pub struct ReadyThread {
    pub thread: MeasuringThread,
    pub buffers: Arc<CpuBuffers>,
}

/// Set once, before the first barrier: what the thread found and its buffers, or why it cannot
/// measure.
pub type Prepared = OnceLock<Result<(ThreadInfo, Arc<CpuBuffers>), Failure>>;

/// One measuring thread, from the housekeeping thread's side.
pub struct Worker {
    /// Empty until the first barrier.
    pub prepared: Arc<Prepared>,
    handle: JoinHandle<Option<(LoopEnd, Usage)>>,
}

impl Worker {
    /// Starts the thread for the plan's CPU number `index`.
    pub fn start(plan: &Arc<MeasurePlan>, index: usize, shared: &Arc<Shared>) -> io::Result<Worker> {
        let prepared = Arc::new(OnceLock::new());
        let (plan, shared, result) = (plan.clone(), shared.clone(), prepared.clone());
        let name = format!("onbeat/{}", plan.cpus[index].cpu);
        let builder = thread::Builder::new().name(name).stack_size(STACK);
        let main = move || Task { plan: &plan, index, shared: &shared, prepared: &result }.thread_main();
        Ok(Worker { prepared, handle: builder.spawn(main)? })
    }

    /// Wake-ups that it left out before the run.
    pub fn warmup(&self) -> u64 {
        self.prepared.get().and_then(|found| found.as_ref().ok()).map_or(0, |(info, _)| info.warmup)
    }

    /// Waits for the thread's end; none if it never ran the loop.
    pub fn join(self) -> Option<(LoopEnd, Usage)> {
        self.handle.join().ok().flatten()
    }
}

/// Starts the threads; if one fails to start, those already started are ended.
pub fn start_all(
    threads: usize,
    shared: &Shared,
    start: impl Fn(usize) -> std::io::Result<Worker>,
) -> Result<Vec<Worker>> {
    let mut workers = Vec::with_capacity(threads);
    for index in 0..threads {
        match start(index) {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                let message = format!(
                    "cannot start a measuring thread ({error}): raise the limits of processes and memory \
                    (ulimit -u, -v), or measure fewer CPUs with -a"
                );
                shared.leave(threads - index);
                shared.barrier.wait();
                return Err(cancel(shared, workers, Failure::internal(message)));
            }
        }
    }
    Ok(workers)
}

/// Ends a run that does not take place; returns why.
pub fn cancel(shared: &Shared, workers: Vec<Worker>, failure: Failure) -> Failure {
    shared.cancelled.store(true, Ordering::Release);
    shared.barrier.wait();
    for worker in workers {
        worker.join();
    }
    failure
}

/// What one measuring thread has to do.
#[derive(Clone, Copy)]
struct Task<'a> {
    plan: &'a MeasurePlan,
    /// Of its CPU in the plan.
    index: usize,
    shared: &'a Shared,
    prepared: &'a Prepared,
}

impl Task<'_> {
    fn thread_main(self) -> Option<(LoopEnd, Usage)> {
        let _leave = LeaveOnPanic(self.shared);
        match self.plan.wake {
            WakeMechanism::Nanosleep => self.run_with_schedule(wake::Nanosleep),
            WakeMechanism::Futex => self.run_with_schedule(wake::Futex::new()),
            WakeMechanism::Timerfd => self.run_with_timer(clock::TimerFd::new()),
            WakeMechanism::Signal => self.run_with_timer(rt::SignalTimer::new()),
        }
    }

    fn run_with_timer<W: Wake>(self, timer: io::Result<W>) -> Option<(LoopEnd, Usage)> {
        match timer {
            Ok(wake) => self.run_with_schedule(wake),
            Err(error) => {
                let what = format!("cannot make a timer for --wake {}", self.plan.wake.name());
                let failure = Failure::of_call(what, &error, Exit::NotSupported, "try another --wake");
                let _ = self.prepared.set(Err(failure));
                self.shared.barrier.wait();
                self.shared.barrier.wait();
                None
            }
        }
    }

    fn run_with_schedule<W: Wake>(self, wake: W) -> Option<(LoopEnd, Usage)> {
        if self.plan.phase == SchedulePhase::Dither {
            self.measure::<W, true>(wake)
        } else {
            self.measure::<W, false>(wake)
        }
    }

    fn measure<W: Wake, const DITHER: bool>(self, mut wake: W) -> Option<(LoopEnd, Usage)> {
        let Task { plan, index, shared, prepared } = self;
        let own = &plan.cpus[index];
        let cpu_reader = CpuReader::new();
        let late_capacity = if shared.rounds > 0 { LATE_QUEUE_CAPACITY } else { 0 };
        let found = prepare::<W, DITHER>(&mut wake, plan, own, &cpu_reader, late_capacity);
        let buffers = found.as_ref().ok().map(|(_, buffers)| buffers.clone());
        let _ = prepared.set(found);
        let planned = |_: &&Arc<CpuBuffers>| !shared.cancelled.load(Ordering::Acquire);
        shared.barrier.wait();
        for _ in 0..shared.rounds {
            shared.barrier.wait();
            let buffers = buffers.as_ref().filter(planned)?;
            self.calibration_round::<W, DITHER>(&mut wake, buffers, &cpu_reader);
            shared.barrier.wait();
        }
        shared.barrier.wait();
        let buffers = buffers.as_ref().filter(planned)?;
        let params = self.params();
        let schedule = Schedule::<DITHER>::new(params.start, own.interval, plan.seed ^ index as u64);
        buffers.begin(params.start);
        let before = rt::thread_usage();
        let end = cycle::run(&mut wake, schedule, &params, buffers, &cpu_reader, &shared.stop);
        let usage = used_since(&before);
        if matches!(end.ended, EndReason::Limit | EndReason::Starving) {
            shared.stop.store(true, Ordering::Relaxed);
        }
        shared.ended.fetch_add(1, Ordering::Release);
        rt::notify_housekeeper(shared.housekeeper);
        // A thread that ends unmaps its stack, which may interrupt those that still measure.
        shared.barrier.wait();
        Some((end, usage))
    }

    /// A round of the loop whose samples do not count in the run.
    fn calibration_round<W: Wake, const DITHER: bool>(
        self,
        wake: &mut W,
        buffers: &CpuBuffers,
        cpu_reader: &CpuReader,
    ) {
        let own = &self.plan.cpus[self.index];
        let start = agree_on_start(self.shared) + own.offset;
        let loops = self.shared.round_loops.load(Ordering::Acquire);
        let params = LoopParams { loops, ..LoopParams::unbounded(own.cpu, start) };
        let schedule = Schedule::<DITHER>::new(start, own.interval.min(MAX_ROUND_INTERVAL), 1);
        buffers.begin(start);
        cycle::run(wake, schedule, &params, buffers, cpu_reader, &self.shared.stop);
        self.shared.ended.fetch_add(1, Ordering::Release);
    }

    /// The parameters of the loop, from a start that all threads agree on.
    fn params(self) -> LoopParams {
        let Task { plan, index, shared, .. } = self;
        let start = agree_on_start(shared) + plan.cpus[index].offset;
        let unbounded = LoopParams::unbounded(plan.cpus[index].cpu, start);
        LoopParams {
            block_end: start + BLOCK_LENGTH,
            end: plan.duration.map_or(unbounded.end, |duration| start + duration),
            loops: plan.loops.unwrap_or(unbounded.loops),
            limit: plan.limit.unwrap_or(unbounded.limit),
            threshold: Nanos(shared.threshold.load(Ordering::Acquire)),
            ..unbounded
        }
    }
}

/// The first of the measuring threads decides once all are there: however late the housekeeping
/// thread runs, no thread is late for a start that lies ahead of the last one's arrival.
fn agree_on_start(shared: &Shared) -> Nanos {
    shared.start_barrier.wait();
    let mine = (clock::monotonic() + START_MARGIN).0;
    let agreed = shared.start_at.compare_exchange(0, mine, Ordering::AcqRel, Ordering::Acquire);
    Nanos(agreed.map_or_else(|first| first, |_| mine))
}

fn used_since(before: &Usage) -> Usage {
    let after = rt::thread_usage();
    Usage {
        minor_faults: after.minor_faults.saturating_sub(before.minor_faults),
        major_faults: after.major_faults.saturating_sub(before.major_faults),
        voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
        involuntary_switches: after.involuntary_switches.saturating_sub(before.involuntary_switches),
    }
}

#[cfg(test)]
mod tests {
    use super::super::prepare::WARMUP_LOOPS;
    use super::*;
    use crate::plan::{self, CpuChoice, MachineCpus, MeasureIntent};
    use model::units::CpuSet;
    use model::vocabulary::Policy;
    use model::vocabulary::{IdleStates, SchedulePhase};

    /// Two threads on the first CPU that this process may use, under SCHED_OTHER, without an end.
    fn two_threads() -> (Arc<MeasurePlan>, Arc<Shared>) {
        // A thread that dies notifies the housekeeper, here the thread that runs the test.
        rt::block_signals().expect("signals can be blocked");
        let here = rt::affinity().expect("an affinity");
        let first: CpuSet = here.iter().take(1).collect();
        let intent = MeasureIntent {
            cpus: CpuChoice::Only(first.clone()),
            interval: Nanos::MILLI,
            distance: Nanos(0),
            policy: Some(Policy::Other),
            priority: None,
            wake: WakeMechanism::Nanosleep,
            phase: SchedulePhase::Aligned,
            idle: Some(IdleStates::AsIs),
            duration: None,
            loops: None,
            limit: None,
            housekeeping: None,
            threads: None,
        };
        let machine = MachineCpus {
            online: here.clone(),
            inherited: here.clone(),
            permitted: here,
            ..MachineCpus::default()
        };
        let mut plan = plan::plan(&intent, &machine, 1).expect("a plan");
        plan.cpus.push(plan.cpus[0].clone());
        let shared = Shared::new(&plan, 0);
        (Arc::new(plan), Arc::new(shared))
    }

    /// Sleeps that many times, enough to get ready and to start, and dies then.
    struct Dying(u32);

    impl Wake for Dying {
        fn sleep_until(&mut self, instant: Nanos) -> wake::Sleep {
            self.0 -= 1;
            assert!(self.0 > 0, "dies, as is wanted here");
            wake::Nanosleep.sleep_until(instant)
        }
    }

    #[test]
    fn a_thread_that_dies_in_the_loop_ends_the_run_and_blocks_no_other() {
        let (plan, shared) = two_threads();
        let prepared = [Prepared::new(), Prepared::new()];
        let task = |index: usize| Task { plan: &plan, index, shared: &shared, prepared: &prepared[index] };
        let ends = thread::scope(|scope| {
            let living = scope.spawn(|| {
                let _leave = LeaveOnPanic(&shared);
                task(0).run_with_schedule(wake::Nanosleep)
            });
            let dying = scope.spawn(|| {
                let _leave = LeaveOnPanic(&shared);
                task(1).run_with_schedule(Dying(WARMUP_LOOPS as u32 + 20))
            });
            shared.barrier.wait();
            shared.barrier.wait();
            while !shared.all_have_ended(2) {
                clock::sleep_for(Nanos::MILLI);
            }
            shared.barrier.wait();
            [living.join(), dying.join()]
        });
        let living = ends[0].as_ref().expect("alive").as_ref().expect("measured").0;
        assert_eq!(living.ended, EndReason::Stopped);
        assert!(ends[1].is_err());
    }

    #[test]
    fn a_thread_that_fails_to_start_leaves_none_of_the_others_behind() {
        let (plan, shared) = two_threads();
        let refused = start_all(2, &shared, |index| match index {
            0 => Worker::start(&plan, 0, &shared),
            _ => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
        });
        let failure = refused.err().expect("refused");
        assert!(failure.message.contains("ulimit -u"), "{}", failure.message);
        // The thread that had been started has gone through the gate, and ended.
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
