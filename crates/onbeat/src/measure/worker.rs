//! The thread around the hot loop: everything that must be done, and verified, before the first slot.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use super::barrier::ThreadBarrier;
use super::block::{BLOCK_LENGTH, CpuBuffers};
use super::cycle::{self, EndReason, LoopEnd, LoopParams};
use super::hunter::{LATE_QUEUE_CAPACITY, MAX_ROUND_INTERVAL};
use super::prepare::{ThreadInfo, prepare};
use super::schedule::Schedule;
use super::wake::{self, Wake};
use crate::plan::{CpuPlan, MeasurePlan};
use host::clock;
use host::rt::{self, CpuReader, Usage};
use model::error::{Exit, Trouble};
use model::units::Nanos;
use model::vocabulary::{SchedulePhase, WakeMechanism};

/// The loop's frames are small; what Rust and libc need around them fits as well.
const STACK: usize = 128 << 10;

/// From the agreement on the start to slot 0.
const START_MARGIN: Nanos = Nanos(20_000_000);

/// What all threads of a run share.
pub struct Shared {
    /// Up when the loops are to end.
    pub stop: AtomicBool,
    /// Threads that have ended.
    pub ended: AtomicUsize,
    /// Threads that died, or were never there: nobody waits for them.
    pub died: AtomicUsize,
    /// Passed by everybody when all are ready, when the run begins, and when it is over.
    pub barrier: ThreadBarrier,
    /// Up before the second passage if the run does not take place.
    pub cancelled: AtomicBool,
    /// Passed by the measuring threads alone, before they agree on the start.
    pub start_barrier: ThreadBarrier,
    /// When slot 0 of the first CPU is; 0 until the threads have agreed.
    pub start_at: AtomicI64,
    /// Rounds before the run, whose samples do not count; each is passed at its begin and at its end by everybody.
    pub rounds: usize,
    /// Wake-ups of the round that begins.
    pub round_loops: AtomicU64,
    /// The latency from which on a wake-up is a spike.
    pub threshold: AtomicI64,
    /// The thread to tell of an end.
    pub housekeeper: i32,
}

impl Shared {
    /// Whether so many threads have ended, one way or the other.
    pub fn all_have_ended(&self, threads: usize) -> bool {
        self.ended.load(Ordering::Acquire) + self.died.load(Ordering::Acquire) >= threads
    }

    /// So many threads are gone: the run ends, and none of the others waits for them.
    pub fn leave(&self, threads: usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.died.fetch_add(threads, Ordering::Release);
        self.start_barrier.leave(threads);
        self.barrier.leave(threads);
        rt::notify_housekeeper(self.housekeeper);
    }
}

/// Lets the others go on where a measuring thread dies: in builds in which a panic is the end of its thread alone.
struct LeaveOnPanic<'a>(&'a Shared);

impl Drop for LeaveOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.leave(1);
        }
    }
}

/// Set once, before the first barrier: what the thread found and its blocks, or why it cannot measure.
pub type Prepared = OnceLock<Result<(ThreadInfo, Arc<CpuBuffers>), Trouble>>;

/// One measuring thread, from the housekeeping thread's side.
pub struct Worker {
    /// Empty until the first gate.
    pub ready: Arc<Prepared>,
    handle: JoinHandle<Option<(LoopEnd, Usage)>>,
}

impl Worker {
    /// Starts the thread for the plan's CPU number `index`.
    pub fn start(plan: &Arc<MeasurePlan>, index: usize, shared: &Arc<Shared>) -> io::Result<Worker> {
        let ready = Arc::new(OnceLock::new());
        let (plan, shared, prepared) = (plan.clone(), shared.clone(), ready.clone());
        let name = format!("onbeat/{}", plan.cpus[index].cpu);
        let builder = thread::Builder::new().name(name).stack_size(STACK);
        let handle = builder.spawn(move || thread_main(&plan, index, &shared, &prepared))?;
        Ok(Worker { ready, handle })
    }

    /// Wake-ups that it left out before the run.
    pub fn warmup(&self) -> u64 {
        self.ready.get().and_then(|found| found.as_ref().ok()).map_or(0, |(ready, _)| ready.warmup)
    }

    /// Waits for the thread's end; none if it never ran the loop.
    pub fn join(self) -> Option<(LoopEnd, Usage)> {
        self.handle.join().ok().flatten()
    }
}

fn thread_main(
    plan: &MeasurePlan,
    index: usize,
    shared: &Shared,
    prepared: &Prepared,
) -> Option<(LoopEnd, Usage)> {
    let _leave = LeaveOnPanic(shared);
    match plan.wake {
        WakeMechanism::Nanosleep => run_with_schedule(wake::Nanosleep, plan, index, shared, prepared),
        WakeMechanism::Futex => run_with_schedule(wake::Futex::new(), plan, index, shared, prepared),
        WakeMechanism::Timerfd => run_with_timer(clock::TimerFd::new(), plan, index, shared, prepared),
        WakeMechanism::Signal => run_with_timer(rt::SignalTimer::new(), plan, index, shared, prepared),
    }
}

fn run_with_timer<W: Wake>(
    wake: io::Result<W>,
    plan: &MeasurePlan,
    index: usize,
    shared: &Shared,
    prepared: &Prepared,
) -> Option<(LoopEnd, Usage)> {
    match wake {
        Ok(wake) => run_with_schedule(wake, plan, index, shared, prepared),
        Err(error) => {
            let what = format!("cannot make a timer for --wake {}", plan.wake.name());
            let _ =
                prepared.set(Err(Trouble::of_call(what, &error, Exit::NotSupported, "try another --wake")));
            shared.barrier.wait();
            shared.barrier.wait();
            None
        }
    }
}

fn run_with_schedule<W: Wake>(
    wake: W,
    plan: &MeasurePlan,
    index: usize,
    shared: &Shared,
    prepared: &Prepared,
) -> Option<(LoopEnd, Usage)> {
    if plan.phase == SchedulePhase::Dither {
        measure::<W, true>(wake, plan, index, shared, prepared)
    } else {
        measure::<W, false>(wake, plan, index, shared, prepared)
    }
}

fn measure<W: Wake, const DITHER: bool>(
    mut wake: W,
    plan: &MeasurePlan,
    index: usize,
    shared: &Shared,
    prepared: &Prepared,
) -> Option<(LoopEnd, Usage)> {
    let own = &plan.cpus[index];
    let cpu_reader = CpuReader::new();
    let late_capacity = if shared.rounds > 0 { LATE_QUEUE_CAPACITY } else { 0 };
    let buffers = match prepare::<W, DITHER>(&mut wake, plan, own, &cpu_reader, late_capacity) {
        Ok((ready, buffers)) => {
            let _ = prepared.set(Ok((ready, buffers.clone())));
            Some(buffers)
        }
        Err(what) => {
            let _ = prepared.set(Err(what));
            None
        }
    };
    shared.barrier.wait();
    for _ in 0..shared.rounds {
        shared.barrier.wait();
        let here = buffers.as_ref().filter(|_| !shared.cancelled.load(Ordering::Acquire))?;
        calibration_round::<W, DITHER>(
            &mut wake,
            own,
            &params(plan, index, shared),
            here,
            &cpu_reader,
            shared,
        );
        shared.barrier.wait();
    }
    shared.barrier.wait();
    let buffers = buffers.filter(|_| !shared.cancelled.load(Ordering::Acquire))?;
    let params = params(plan, index, shared);
    let schedule = Schedule::<DITHER>::new(params.start, own.interval, plan.seed ^ index as u64);
    buffers.begin(params.start);
    let before = rt::thread_usage();
    let end = cycle::run(&mut wake, schedule, &params, &buffers, &cpu_reader, &shared.stop);
    let after = rt::thread_usage();
    let used = Usage {
        minor_faults: after.minor_faults.saturating_sub(before.minor_faults),
        major_faults: after.major_faults.saturating_sub(before.major_faults),
        voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
        involuntary_switches: after.involuntary_switches.saturating_sub(before.involuntary_switches),
    };
    if matches!(end.ended, EndReason::Limit | EndReason::Starving) {
        shared.stop.store(true, Ordering::Relaxed);
    }
    shared.ended.fetch_add(1, Ordering::Release);
    rt::notify_housekeeper(shared.housekeeper);
    // A thread that ends unmaps its stack, which may interrupt those that still measure.
    shared.barrier.wait();
    Some((end, used))
}

/// A round of the loop whose samples do not count in the run.
fn calibration_round<W: Wake, const DITHER: bool>(
    wake: &mut W,
    own: &CpuPlan,
    params: &LoopParams,
    buffers: &CpuBuffers,
    cpu_reader: &CpuReader,
    shared: &Shared,
) {
    let never = Nanos(i64::MAX);
    let loops = shared.round_loops.load(Ordering::Acquire);
    let params =
        LoopParams { loops, end: never, block_end: never, limit: never, threshold: never, ..*params };
    let interval = own.interval.min(MAX_ROUND_INTERVAL);
    let schedule = Schedule::<DITHER>::new(params.start, interval, 1);
    buffers.begin(params.start);
    cycle::run(wake, schedule, &params, buffers, cpu_reader, &shared.stop);
    shared.ended.fetch_add(1, Ordering::Release);
}

/// The first of the measuring threads decides once all are there: whatever the housekeeping thread does meanwhile, nobody
/// comes late to a start that lies ahead of the last one's arrival.
fn agree_on_start(shared: &Shared) -> Nanos {
    shared.start_barrier.wait();
    let mine = (clock::monotonic() + START_MARGIN).0;
    let agreed = shared.start_at.compare_exchange(0, mine, Ordering::AcqRel, Ordering::Acquire);
    Nanos(agreed.map_or_else(|first| first, |_| mine))
}

/// The parameters of the loop for the plan's CPU number `index`, from a start that all threads agree on.
fn params(plan: &MeasurePlan, index: usize, shared: &Shared) -> LoopParams {
    let never = Nanos(i64::MAX);
    let start = agree_on_start(shared) + plan.cpus[index].offset;
    LoopParams {
        cpu: plan.cpus[index].cpu,
        start,
        block_end: start + BLOCK_LENGTH,
        end: plan.duration.map_or(never, |duration| start + duration),
        loops: plan.loops.unwrap_or(u64::MAX),
        limit: plan.limit.unwrap_or(never),
        threshold: Nanos(shared.threshold.load(Ordering::Acquire)),
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
        // A thread that dies tells the housekeeper, here the thread that runs the test.
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
        let shared = super::super::start::shared_state(&plan, 0);
        (Arc::new(plan), Arc::new(shared))
    }

    /// Sleeps as often as it takes to get ready and to begin, and dies then.
    struct Dying(u32);

    impl Wake for Dying {
        fn sleep_until(&mut self, instant: Nanos) -> bool {
            self.0 -= 1;
            assert!(self.0 > 0, "dies, as is wanted here");
            clock::nanosleep_until(instant)
        }
    }

    #[test]
    fn a_thread_that_dies_in_the_loop_ends_the_run_and_holds_up_nobody() {
        let (plan, shared) = two_threads();
        let prepared = [Prepared::new(), Prepared::new()];
        let ends = thread::scope(|scope| {
            let living = scope.spawn(|| {
                let _leave = LeaveOnPanic(&shared);
                run_with_schedule(wake::Nanosleep, &plan, 0, &shared, &prepared[0])
            });
            let dying = scope.spawn(|| {
                let _leave = LeaveOnPanic(&shared);
                run_with_schedule(Dying(WARMUP_LOOPS as u32 + 20), &plan, 1, &shared, &prepared[1])
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
    fn a_thread_that_cannot_be_had_leaves_none_of_the_others_behind() {
        let (plan, shared) = two_threads();
        let refused = super::super::start::start_all(2, &shared, |index| match index {
            0 => Worker::start(&plan, 0, &shared),
            _ => Err(io::Error::from_raw_os_error(libc::EAGAIN)),
        });
        let trouble = refused.err().expect("refused");
        assert!(trouble.message.contains("ulimit -u"), "{}", trouble.message);
        // The thread that had been started has gone through the gate, and ended.
        assert_eq!(Arc::strong_count(&shared), 1);
    }
}
