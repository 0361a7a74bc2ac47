//! The thread around the hot loop: everything that must be done, and verified, before the first slot.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};

use super::block::{BLOCK, Lane};
use super::cycle::{self, Course, End, Ended};
use super::gate::Gate;
use super::hunter::{ROOM, ROUND_INTERVAL};
use super::ready::{Ready, prepare};
use super::schedule::Schedule;
use super::wake::{self, Wake};
use crate::plan::{CpuPlan, Mechanism, Plan};
use host::clock;
use host::rt::{self, CpuReader, Usage};
use model::error::{Exit, Trouble};
use model::text::Keyword;
use model::units::Nanos;

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
    pub gone: AtomicUsize,
    /// Passed by everybody when all are ready, when the run begins, and when it is over.
    pub gate: Gate,
    /// Up before the second passage if the run does not take place.
    pub called_off: AtomicBool,
    /// Passed by the measuring threads alone, before they agree on the start.
    pub start: Gate,
    /// When slot 0 of the first CPU is; 0 until the threads have agreed.
    pub go: AtomicI64,
    /// Rounds before the run, whose samples do not count; each is passed at its begin and at its end by everybody.
    pub rounds: usize,
    /// Wake-ups of the round that begins.
    pub round_loops: AtomicU64,
    /// The latency from which on a wake-up is a spike.
    pub over: AtomicI64,
    /// The thread to tell of an end.
    pub housekeeper: i32,
}

impl Shared {
    /// Whether so many threads have ended, one way or the other.
    pub fn all_have_ended(&self, threads: usize) -> bool {
        self.ended.load(Ordering::Acquire) + self.gone.load(Ordering::Acquire) >= threads
    }

    /// So many threads are gone: the run ends, and none of the others waits for them.
    pub fn leave(&self, threads: usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.gone.fetch_add(threads, Ordering::Release);
        self.start.leave(threads);
        self.gate.leave(threads);
        rt::tell(self.housekeeper);
    }
}

/// Lets the others go on where a measuring thread dies: in builds in which a panic is the end of its thread alone.
struct Departure<'a>(&'a Shared);

impl Drop for Departure<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.leave(1);
        }
    }
}

/// Set once, before the first gate: what the thread found and its blocks, or why it cannot measure.
pub type Found = OnceLock<Result<(Ready, Arc<Lane>), Trouble>>;

/// One measuring thread, from the housekeeping thread's side.
pub struct Worker {
    /// Empty until the first gate.
    pub ready: Arc<Found>,
    handle: JoinHandle<Option<(End, Usage)>>,
}

impl Worker {
    /// Starts the thread for the plan's CPU number `index`.
    pub fn start(plan: &Arc<Plan>, index: usize, shared: &Arc<Shared>) -> io::Result<Worker> {
        let ready = Arc::new(OnceLock::new());
        let (plan, shared, found) = (plan.clone(), shared.clone(), ready.clone());
        let name = format!("onbeat/{}", plan.cpus[index].cpu);
        let builder = thread::Builder::new().name(name).stack_size(STACK);
        let handle = builder.spawn(move || live(&plan, index, &shared, &found))?;
        Ok(Worker { ready, handle })
    }

    /// Wake-ups that it left out before the run.
    pub fn warmup(&self) -> u64 {
        self.ready.get().and_then(|found| found.as_ref().ok()).map_or(0, |(ready, _)| ready.warmup)
    }

    /// Waits for the thread's end; none if it never ran the loop.
    pub fn join(self) -> Option<(End, Usage)> {
        self.handle.join().ok().flatten()
    }
}

fn live(plan: &Plan, index: usize, shared: &Shared, found: &Found) -> Option<(End, Usage)> {
    let _departure = Departure(shared);
    match plan.wake {
        Mechanism::Nanosleep => with_phase(wake::Nanosleep, plan, index, shared, found),
        Mechanism::Futex => with_phase(wake::Futex::new(), plan, index, shared, found),
        Mechanism::Timerfd => with_made(clock::TimerFd::new(), plan, index, shared, found),
        Mechanism::Signal => with_made(rt::SignalTimer::new(), plan, index, shared, found),
    }
}

fn with_made<W: Wake>(
    wake: io::Result<W>,
    plan: &Plan,
    index: usize,
    shared: &Shared,
    found: &Found,
) -> Option<(End, Usage)> {
    match wake {
        Ok(wake) => with_phase(wake, plan, index, shared, found),
        Err(error) => {
            let what = format!("cannot make a timer for --wake {}", plan.wake.name());
            let _ = found.set(Err(Trouble::of_call(what, &error, Exit::NotSupported, "try another --wake")));
            shared.gate.wait();
            shared.gate.wait();
            None
        }
    }
}

fn with_phase<W: Wake>(
    wake: W,
    plan: &Plan,
    index: usize,
    shared: &Shared,
    found: &Found,
) -> Option<(End, Usage)> {
    if plan.phase.dithers() {
        measure::<W, true>(wake, plan, index, shared, found)
    } else {
        measure::<W, false>(wake, plan, index, shared, found)
    }
}

fn measure<W: Wake, const DITHER: bool>(
    mut wake: W,
    plan: &Plan,
    index: usize,
    shared: &Shared,
    found: &Found,
) -> Option<(End, Usage)> {
    let own = &plan.cpus[index];
    let place = CpuReader::new();
    let room = if shared.rounds > 0 { ROOM } else { 0 };
    let lane = match prepare::<W, DITHER>(&mut wake, plan, own, &place, room) {
        Ok((ready, lane)) => {
            let _ = found.set(Ok((ready, lane.clone())));
            Some(lane)
        }
        Err(what) => {
            let _ = found.set(Err(what));
            None
        }
    };
    shared.gate.wait();
    for _ in 0..shared.rounds {
        shared.gate.wait();
        let here = lane.as_ref().filter(|_| !shared.called_off.load(Ordering::Acquire))?;
        rehearse::<W, DITHER>(&mut wake, own, &course(plan, index, shared), here, &place, shared);
        shared.gate.wait();
    }
    shared.gate.wait();
    let lane = lane.filter(|_| !shared.called_off.load(Ordering::Acquire))?;
    let course = course(plan, index, shared);
    let schedule = Schedule::<DITHER>::new(course.start, own.interval, plan.seed ^ index as u64);
    lane.begin(course.start);
    let before = rt::thread_usage();
    let end = cycle::run(&mut wake, schedule, &course, &lane, &place, &shared.stop);
    let after = rt::thread_usage();
    let used = Usage {
        minor_faults: after.minor_faults.saturating_sub(before.minor_faults),
        major_faults: after.major_faults.saturating_sub(before.major_faults),
        voluntary_switches: after.voluntary_switches.saturating_sub(before.voluntary_switches),
        involuntary_switches: after.involuntary_switches.saturating_sub(before.involuntary_switches),
    };
    if matches!(end.ended, Ended::Limit | Ended::Starving) {
        shared.stop.store(true, Ordering::Relaxed);
    }
    shared.ended.fetch_add(1, Ordering::Release);
    rt::tell(shared.housekeeper);
    // A thread that ends unmaps its stack, which may interrupt those that still measure.
    shared.gate.wait();
    Some((end, used))
}

/// A round of the loop whose samples do not count in the run.
fn rehearse<W: Wake, const DITHER: bool>(
    wake: &mut W,
    own: &CpuPlan,
    course: &Course,
    lane: &Lane,
    place: &CpuReader,
    shared: &Shared,
) {
    let never = Nanos(i64::MAX);
    let loops = shared.round_loops.load(Ordering::Acquire);
    let course = Course { loops, end: never, block_end: never, limit: never, over: never, ..*course };
    let interval = own.interval.min(ROUND_INTERVAL);
    let schedule = Schedule::<DITHER>::new(course.start, interval, 1);
    lane.begin(course.start);
    cycle::run(wake, schedule, &course, lane, place, &shared.stop);
    shared.ended.fetch_add(1, Ordering::Release);
}

/// The first of the measuring threads decides once all are there: whatever the housekeeping thread does meanwhile, nobody
/// comes late to a start that lies ahead of the last one's arrival.
fn agree_on_start(shared: &Shared) -> Nanos {
    shared.start.wait();
    let mine = (clock::monotonic() + START_MARGIN).0;
    let agreed = shared.go.compare_exchange(0, mine, Ordering::AcqRel, Ordering::Acquire);
    Nanos(agreed.map_or_else(|first| first, |_| mine))
}

/// The loop's course for the plan's CPU number `index`, from a start that all threads agree on.
fn course(plan: &Plan, index: usize, shared: &Shared) -> Course {
    let never = Nanos(i64::MAX);
    let start = agree_on_start(shared) + plan.cpus[index].offset;
    Course {
        cpu: plan.cpus[index].cpu,
        start,
        block_end: start + BLOCK,
        end: plan.duration.map_or(never, |duration| start + duration),
        loops: plan.loops.unwrap_or(u64::MAX),
        limit: plan.limit.unwrap_or(never),
        over: Nanos(shared.over.load(Ordering::Acquire)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ready::WARMUP;
    use super::*;
    use crate::plan::{self, CpuChoice, Idle, Intent, Machine, Phase};
    use model::units::{CpuSet, Policy};

    /// Two threads on the first CPU that this process may use, under SCHED_OTHER, without an end.
    fn two_threads() -> (Arc<Plan>, Arc<Shared>) {
        // A thread that dies tells the housekeeper, here the thread that runs the test.
        rt::block_signals().expect("signals can be blocked");
        let here = rt::affinity().expect("an affinity");
        let first: CpuSet = here.iter().take(1).collect();
        let intent = Intent {
            cpus: CpuChoice::Only(first.clone()),
            interval: Nanos::MILLI,
            distance: Nanos(0),
            policy: Some(Policy::Other),
            priority: None,
            wake: Mechanism::Nanosleep,
            phase: Phase::Aligned,
            idle: Some(Idle::AsIs),
            duration: None,
            loops: None,
            limit: None,
            housekeeping: None,
            threads: None,
        };
        let machine =
            Machine { online: here.clone(), inherited: here.clone(), permitted: here, ..Machine::default() };
        let mut plan = plan::plan(&intent, &machine, 1).expect("a plan");
        plan.cpus.push(plan.cpus[0].clone());
        let shared = super::super::start::share(&plan, 0);
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
        let found = [Found::new(), Found::new()];
        let ends = thread::scope(|scope| {
            let living = scope.spawn(|| {
                let _departure = Departure(&shared);
                with_phase(wake::Nanosleep, &plan, 0, &shared, &found[0])
            });
            let dying = scope.spawn(|| {
                let _departure = Departure(&shared);
                with_phase(Dying(WARMUP as u32 + 20), &plan, 1, &shared, &found[1])
            });
            shared.gate.wait();
            shared.gate.wait();
            while !shared.all_have_ended(2) {
                clock::pause(Nanos::MILLI);
            }
            shared.gate.wait();
            [living.join(), dying.join()]
        });
        let living = ends[0].as_ref().expect("alive").as_ref().expect("measured").0;
        assert_eq!(living.ended, Ended::Stopped);
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
