//! Preparation of a measuring thread, with each step verified, and its result.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::block::{CpuBuffers, DrainedBlock};
use super::cycle::{self, LoopParams};
use super::reserve::reserve;
use super::schedule::Schedule;
use super::wake::{self, Sleep, Wake};
use crate::plan::{CpuPlan, MeasurePlan};
use host::clock;
use host::rt::{self, CpuReader};
use model::error::{Exit, Failure, Result};
use model::units::{Cpu, CpuSet, Nanos};
use model::vocabulary::Policy;

/// Number of warm-up cycles of the loop, which do not count.
pub const WARMUP_LOOPS: u64 = 20;

/// Maximum interval of the warm-up's slots: a long interval must not make a long warm-up.
const MAX_WARMUP_INTERVAL: Nanos = Nanos(5_000_000);

/// Length and number of the trials that measure a cycle's cost where it matters, and the maximum
/// number of cycles of each.
const TRIAL_LENGTH: Nanos = Nanos(10_000_000);
const TRIALS: u64 = 5;
const MAX_TRIAL_LOOPS: i64 = 500;

/// Findings of a thread during its preparation.
#[derive(Clone, Debug)]
pub struct ThreadInfo {
    pub thread: i32,
    /// Error that led to SCHED_OTHER instead of the planned policy.
    pub policy_refused: Option<Arc<io::Error>>,
    /// Error number if the loop's memory is not locked.
    pub lock_refused: Option<i32>,
    /// Cost of a clock read.
    pub clock_read: Nanos,
    /// Cost of a cycle of the loop without its sleep.
    pub loop_cost: Nanos,
    /// CPU time of the thread per cycle, including its sleep.
    pub cycle: Nanos,
    /// Number of wake-ups before the run, which do not count.
    pub warmup: u64,
}

/// Pins, sets the policy, touches, locks, warms up; each step verified.
pub fn prepare<W: Wake, const DITHER: bool>(
    wake: &mut W,
    plan: &MeasurePlan,
    own: &CpuPlan,
    cpu_reader: &CpuReader,
    late_capacity: usize,
    stop: &AtomicBool,
) -> Result<(ThreadInfo, Arc<CpuBuffers>)> {
    let policy_refused = take_planned_place(plan, own)?;
    probe_sleep(wake, plan)?;
    let (buffers, lock_refused) = make_buffers(late_capacity);
    cycle::prefault::<W, DITHER>();
    let clock_read = clock::clock_read_cost();
    let loop_cost = loop_cost(own, &buffers, cpu_reader);
    let (cycle, warmup) = cycle_cost::<W, DITHER>(wake, own, &buffers, cpu_reader, stop);
    let thread = rt::thread_id();
    Ok((ThreadInfo { thread, policy_refused, lock_refused, clock_read, loop_cost, cycle, warmup }, buffers))
}

/// Puts the calling thread on its CPUs, with the plan's policy.
fn take_planned_place(plan: &MeasurePlan, own: &CpuPlan) -> Result<Option<Arc<io::Error>>> {
    if own.thread == 0 {
        bind(own.cpu)?;
    } else {
        let remedy = "choose other CPUs with -a, or run without a system call filter";
        let failed = |error| Failure::of_call("cannot let a thread move", &error, Exit::NotSupported, remedy);
        rt::pin(&plan.measured()).map_err(failed)?;
    }
    match &plan.reservation {
        Some(reservation) => reserve(plan, own, reservation).map(|()| None),
        None => take_policy(plan.policy, plan.priority_of(own)),
    }
}

/// Puts the calling thread on its CPU, with the plan's policy; returns the error if that policy was
/// refused and SCHED_OTHER is in effect.
pub fn take_place(plan: &MeasurePlan, cpu: Cpu) -> Result<Option<Arc<io::Error>>> {
    bind(cpu)?;
    take_policy(plan.policy, plan.priority)
}

fn bind(cpu: Cpu) -> Result<()> {
    let only: CpuSet = [cpu].into_iter().collect();
    let pinned = rt::pin(&only).and_then(|()| rt::affinity());
    match pinned {
        Ok(set) if set == only && rt::current_cpu() == cpu => Ok(()),
        Ok(set) => Err(Failure::not_supported(format!(
            "requested CPU {cpu} but got {set}: choose other CPUs with -a"
        ))),
        Err(error) => {
            let what = format!("cannot pin a thread to CPU {cpu}");
            let remedy = "choose other CPUs with -a, or run without a system call filter";
            Err(Failure::of_call(what, &error, Exit::NotSupported, remedy))
        }
    }
}

/// Sets the policy of the calling thread; returns the error if it was refused and SCHED_OTHER is in
/// effect.
fn take_policy(policy: Policy, priority: u32) -> Result<Option<Arc<io::Error>>> {
    let failed = |what: &'static str, remedy: &'static str| {
        move |error| Failure::of_call(what, &error, Exit::NotSupported, remedy)
    };
    let outside = "run without a system call filter";
    rt::set_minimum_timer_slack().map_err(failed("cannot set the timer slack", outside))?;
    let policy_refused = rt::set_policy(policy, priority).err().map(Arc::new);
    if policy_refused.is_some() {
        // Not the inherited policy: the policy in the run's report must be true. Leaving SCHED_IDLE
        // takes as much privilege as a lower nice value (sched(7)).
        let remedy =
            "start onbeat without SCHED_IDLE (chrt --idle), or as root, or without a system call filter";
        rt::set_policy(Policy::Other, 0).map_err(failed("cannot set SCHED_OTHER", remedy))?;
    }
    Ok(policy_refused)
}

/// Allocates and locks the memory that the loop writes; returns the error number of a failed lock.
///
/// Called by the measuring thread after it was pinned, so that the pages are on its memory node.
pub fn make_buffers(late_capacity: usize) -> (Arc<CpuBuffers>, Option<i32>) {
    let buffers = Arc::new(CpuBuffers::new(late_capacity));
    rt::prefault_stack();
    let own_pages = [rt::lock_pages(&*buffers), rt::lock_pages(buffers.late.pages())];
    let mut locked = buffers.pages().map(rt::lock_pages).chain(own_pages);
    let lock_refused = locked.find_map(|lock| lock.err()).map(|error| error.raw_os_error().unwrap_or(0));
    drop(locked);
    (buffers, lock_refused)
}

/// Sleeps once: if the kernel refused the system call, the loop would spin.
fn probe_sleep<W: Wake>(wake: &mut W, plan: &MeasurePlan) -> Result<()> {
    // A stray signal may end one sleep early, but hardly three.
    let slept = (0..3).any(|_| wake.sleep_until(clock::monotonic() + Nanos::MILLI) == Sleep::Full);
    let refused = || match plan.probe {
        None => {
            format!("this kernel does not support --wake {}: try another", plan.wake.name())
        }
        Some(_) => "two threads cannot signal each other here: try another mechanism".to_owned(),
    };
    if slept { Ok(()) } else { Err(Failure::not_supported(refused())) }
}

/// Warms up; returns the CPU time per cycle and the number of wake-ups used.
///
/// Warm-up cycles cost more than those of the run, which find everything in the caches: if they
/// take a large part of the interval, several trials follow, and the cheapest counts.
fn cycle_cost<W: Wake, const DITHER: bool>(
    wake: &mut W,
    own: &CpuPlan,
    buffers: &CpuBuffers,
    cpu_reader: &CpuReader,
    stop: &AtomicBool,
) -> (Nanos, u64) {
    let first = warm_up::<W, DITHER>(wake, own, buffers, cpu_reader, stop);
    if first.0 < own.interval.0 / 4 {
        return (first, WARMUP_LOOPS);
    }
    let loops = (TRIAL_LENGTH.0 / own.interval.0.max(1)).clamp(WARMUP_LOOPS as i64, MAX_TRIAL_LOOPS) as u64;
    let mut least = first;
    for _ in 0..TRIALS {
        let start = clock::monotonic();
        let params = LoopParams { loops, ..LoopParams::unbounded(own.cpu, start) };
        buffers.begin(start);
        let schedule = Schedule::<DITHER>::new(start, own.interval.min(MAX_WARMUP_INTERVAL), 1);
        let end = cycle::run(wake, schedule, &params, buffers, cpu_reader, stop);
        least = least.min(Nanos(end.used.0 / loops as i64));
    }
    (least, WARMUP_LOOPS + TRIALS * loops)
}

/// Runs the loop on slots that do not count; the first slots and a block's end lie in the past, so
/// that each branch has run once before the measurement. Returns the CPU time per cycle.
fn warm_up<W: Wake, const DITHER: bool>(
    wake: &mut W,
    own: &CpuPlan,
    buffers: &CpuBuffers,
    cpu_reader: &CpuReader,
    stop: &AtomicBool,
) -> Nanos {
    let interval = Nanos(own.interval.0.min(MAX_WARMUP_INTERVAL.0));
    let late = Nanos(clock::monotonic().0 - interval.0 * 7 / 2);
    let unbounded = LoopParams::unbounded(own.cpu, late);
    let params = LoopParams { block_end: late, loops: WARMUP_LOOPS, ..unbounded };
    buffers.begin(late);
    let schedule = Schedule::<DITHER>::new(late, interval, 1);
    let end = cycle::run(wake, schedule, &params, buffers, cpu_reader, stop);
    // The same call as the housekeeping thread makes, with the kernel's part of it.
    buffers.take(&mut DrainedBlock::default());
    Nanos(end.used.0 / WARMUP_LOOPS as i64)
}

fn loop_cost(own: &CpuPlan, buffers: &CpuBuffers, cpu_reader: &CpuReader) -> Nanos {
    const LOOPS: u64 = 2_000;
    let params = LoopParams { loops: LOOPS, ..LoopParams::unbounded(own.cpu, Nanos(0)) };
    buffers.begin(Nanos(0));
    let start = clock::monotonic();
    let schedule = Schedule::<false>::new(Nanos(0), Nanos(1_000), 0);
    cycle::run(&mut wake::NoSleep, schedule, &params, buffers, cpu_reader, &AtomicBool::new(false));
    Nanos((clock::monotonic().0 - start.0) / LOOPS as i64)
}
