//! The thread around the hot loop: everything that must be done, and verified, before the first slot.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, JoinHandle};

use super::block::{BLOCK, Lane, Taken};
use super::cycle::{self, Course, End};
use super::hunter::{ROOM, ROUND_INTERVAL};
use super::schedule::Schedule;
use super::wake::{self, Wake};
use crate::error::{Exit, Outcome, Trouble};
use crate::host::clock;
use crate::host::rt::{self, CpuReader, Usage};
use crate::plan::{CpuPlan, Mechanism, Plan};
use crate::units::{CpuSet, Nanos, Policy};

/// The loop's frames are small; what Rust and libc need around them fits as well.
const STACK: usize = 128 << 10;

/// Turns of the loop that are run before it counts.
pub const WARMUP: u64 = 20;

/// No warm-up slot takes longer, so that a long interval does not make a long warm-up.
const WARMUP_INTERVAL: Nanos = Nanos(5_000_000);

/// From the agreement on the start to slot 0.
const START_MARGIN: Nanos = Nanos(20_000_000);

/// What all threads of a run share.
pub struct Shared {
    /// Up when the loops are to end.
    pub stop: AtomicBool,
    /// Threads that have ended.
    pub ended: AtomicUsize,
    /// Passed by everybody when all are ready, when the run begins, and when it is over.
    pub gate: Barrier,
    /// Up before the second passage if the run does not take place.
    pub called_off: AtomicBool,
    /// Passed by the measuring threads alone, to agree on the start.
    pub start: Barrier,
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

/// What a thread found out while getting ready.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The thread's id.
    pub thread: i32,
    /// Why the policy is SCHED_OTHER instead of the planned one.
    pub policy_refused: Option<Arc<io::Error>>,
    /// Why the loop's memory is not locked.
    pub lock_refused: Option<i32>,
    /// Cost of a clock read.
    pub clock_read: Nanos,
    /// Cost of a turn of the loop without its sleep.
    pub turn: Nanos,
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

    /// Waits for the thread's end; none if it never ran the loop.
    pub fn join(self) -> Option<(End, Usage)> {
        self.handle.join().ok().flatten()
    }
}

fn live(plan: &Plan, index: usize, shared: &Shared, found: &Found) -> Option<(End, Usage)> {
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
    if end.ended == cycle::Ended::Limit {
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

/// The first of the measuring threads decides: whatever the housekeeping thread does meanwhile, nobody
/// comes late to a start that lies ahead of the last one's arrival.
fn agree_on_start(shared: &Shared) -> Nanos {
    if shared.start.wait().is_leader() {
        shared.go.store((clock::monotonic() + START_MARGIN).0, Ordering::Release);
    }
    shared.start.wait();
    Nanos(shared.go.load(Ordering::Acquire))
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

/// Pins, sets the policy, touches, locks, warms up; each step verified.
fn prepare<W: Wake, const DITHER: bool>(
    wake: &mut W,
    plan: &Plan,
    own: &CpuPlan,
    place: &CpuReader,
    room: usize,
) -> Outcome<(Ready, Arc<Lane>)> {
    let only: CpuSet = [own.cpu].into_iter().collect();
    let pinned = rt::pin(&only).and_then(|()| rt::affinity());
    match pinned {
        Ok(set) if set == only && rt::current_cpu() == own.cpu => {}
        Ok(set) => {
            return Err(Trouble::not_supported(format!(
                "asked for cpu {} and got {set}: choose other CPUs with -a",
                own.cpu
            )));
        }
        Err(error) => {
            let what = format!("cannot pin a thread to cpu {}", own.cpu);
            let remedy = "choose other CPUs with -a, or run outside a filter of system calls";
            return Err(Trouble::of_call(what, &error, Exit::NotSupported, remedy));
        }
    }
    let failed = |what: &'static str| {
        let remedy = "run outside a filter of system calls";
        move |error| Trouble::of_call(what, &error, Exit::NotSupported, remedy)
    };
    rt::set_least_timer_slack().map_err(failed("cannot set the timer slack"))?;
    let policy_refused = rt::set_policy(plan.policy, plan.priority).err().map(Arc::new);
    if policy_refused.is_some() {
        // Not whatever policy the thread inherited: what the run says must be so.
        rt::set_policy(Policy::Other, 0).map_err(failed("cannot take SCHED_OTHER"))?;
    }
    probe_sleep(wake, plan)?;
    // Made by the thread itself, after it was pinned: the pages are on its memory node.
    let lane = Arc::new(Lane::new(room));
    rt::touch_stack();
    let own_pages = [rt::lock_pages(&*lane), rt::lock_pages(lane.catches.pages())];
    let mut locked = lane.pages().map(rt::lock_pages).chain(own_pages);
    let lock_refused = locked.find_map(|lock| lock.err()).map(|error| error.raw_os_error().unwrap_or(0));
    drop(locked);
    let clock_read = clock::clock_read_cost();
    let turn = turn_cost(own, &lane, place);
    warm_up::<W, DITHER>(wake, own, &lane, place);
    let thread = rt::thread_id();
    Ok((Ready { thread, policy_refused, lock_refused, clock_read, turn }, lane))
}

/// Sleeps once: a kernel that refuses the system call would have the loop spin.
fn probe_sleep<W: Wake>(wake: &mut W, plan: &Plan) -> Outcome<()> {
    // A stray signal may end one sleep early, and hardly three.
    let slept = (0..3).any(|_| wake.sleep_until(clock::monotonic() + Nanos::MILLI));
    let refused =
        || format!("this kernel does not let a thread sleep by --wake {}: try another", plan.wake.name());
    if slept { Ok(()) } else { Err(Trouble::not_supported(refused())) }
}

/// Runs the loop itself on slots that do not count, the first of them in the past and with a block's
/// end behind it, so that each of its branches has run once before it matters.
fn warm_up<W: Wake, const DITHER: bool>(wake: &mut W, own: &CpuPlan, lane: &Lane, place: &CpuReader) {
    let interval = Nanos(own.interval.0.min(WARMUP_INTERVAL.0));
    let late = Nanos(clock::monotonic().0 - interval.0 * 7 / 2);
    let never = Nanos(i64::MAX);
    let course = Course {
        cpu: own.cpu,
        start: late,
        block_end: late,
        end: never,
        loops: WARMUP,
        limit: never,
        over: never,
    };
    lane.begin(late);
    let schedule = Schedule::<DITHER>::new(late, interval, 1);
    cycle::run(wake, schedule, &course, lane, place, &AtomicBool::new(false));
    // What the housekeeping thread does with a block, the kernel's part of it included.
    lane.take(&mut Taken::default());
}

fn turn_cost(own: &CpuPlan, lane: &Lane, place: &CpuReader) -> Nanos {
    const TURNS: u64 = 2_000;
    let never = Nanos(i64::MAX);
    let course = Course {
        cpu: own.cpu,
        start: Nanos(0),
        block_end: never,
        end: never,
        loops: TURNS,
        limit: never,
        over: never,
    };
    lane.begin(Nanos(0));
    let start = clock::monotonic();
    let schedule = Schedule::<false>::new(Nanos(0), Nanos(1_000), 0);
    cycle::run(&mut wake::Idle, schedule, &course, lane, place, &AtomicBool::new(false));
    Nanos((clock::monotonic().0 - start.0) / TURNS as i64)
}
