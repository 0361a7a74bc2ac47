//! The start of a run and its end: what must be in place before the measuring threads begin, or refused.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};

use super::block::Lane;
use super::hunter::{Hunter, Measurer};
use super::keeper::Keeper;
use super::lane::{Ready, Shared, WARMUP, Worker};
use super::rounds::rounds;
use super::sink::Sink;
use super::total::Total;
use super::watch::entry;
use crate::bundle::run::{CpuRun, Run};
use crate::error::{Exit, Outcome, Trouble, meaning_of};
use crate::host::{self, Held, clock, rt};
use crate::plan::{CpuPlan, Idle, Plan, expiry};
use crate::units::{Nanos, Policy};

/// Runs the plan. `run` comes with the plan, the host and what was found before the start filled in.
///
/// Refuses when a thread cannot be had as planned; once slots count, it always returns what was measured.
pub fn measure(
    plan: Plan,
    mut run: Run,
    core_types: &[String],
    sink: &mut dyn Sink,
    mut hunter: Option<&mut dyn Hunter>,
) -> Outcome<Run> {
    fn failed(what: &str) -> impl Fn(std::io::Error) -> Trouble + '_ {
        move |error| {
            Trouble::of_call(what, &error, Exit::Internal, "run as root, or outside a filter of system calls")
        }
    }
    rt::keep_heap();
    rt::block_signals().map_err(failed("cannot block signals"))?;
    // Whatever onbeat was started with, its own thread must not go before anybody.
    rt::set_policy(Policy::Other, 0).map_err(failed("cannot take SCHED_OTHER"))?;
    rt::pin(&plan.housekeeping).map_err(failed("cannot move the housekeeping thread"))?;
    let _held = hold_idle(&plan, &mut run)?;
    rt::forget_code(); // what prepared the run
    let plan = Arc::new(plan);
    let shared = Arc::new(share(&plan, hunter.as_ref().map_or(0, |hunter| hunter.rounds())));
    let mut workers = Vec::with_capacity(plan.cpus.len());
    for index in 0..plan.cpus.len() {
        workers
            .push(Worker::start(&plan, index, &shared).map_err(failed("cannot start a measuring thread"))?);
    }
    shared.gate.wait();
    let lanes = match everybody_ready(&plan, &workers, &mut run) {
        Ok(lanes) => lanes,
        Err(trouble) => return Err(call_off(&shared, workers, trouble)),
    };
    if let Err(error) = rt::lock_touched() {
        let detail = format!(
            "the program's own pages are not locked ({error}): run as root or raise the limit of locked memory"
        );
        run.integrity.push(entry("memory-lock", None, false, detail));
    }
    // The start is not agreed on yet: should the run be killed early, its blocks tell.
    let nothing = |own: &CpuPlan| {
        let total = Total::new(own.cpu, String::new(), own.interval, Nanos(0), WARMUP);
        CpuRun { t0_mono_ns: None, ..total.document() }
    };
    run.cpus = plan.cpus.iter().map(nothing).collect();
    if let Err(what) = sink.checkpoint(&run) {
        return Err(call_off(&shared, workers, Trouble::internal(what)));
    }
    let mut signalled = false;
    if let Some(hunter) = &mut hunter {
        match before_the_hunt(&shared, &plan, &lanes, &mut run, &mut **hunter) {
            Ok(early) => signalled = early,
            Err(trouble) => return Err(call_off(&shared, workers, trouble)),
        }
    }
    let mut keeper = Keeper::new(&plan, lanes, run, core_types);
    shared.go.store(0, Ordering::Release);
    shared.gate.wait();
    let go = loop {
        match shared.go.load(Ordering::Acquire) {
            0 => clock::pause(Nanos::MILLI),
            go => break Nanos(go),
        }
    };
    keeper.begin(go, &plan);
    signalled |= keeper.watch_over(&shared, sink, &mut hunter);
    shared.gate.wait();
    let ends: Vec<_> = workers.into_iter().map(Worker::join).collect();
    keeper.finish(ends, signalled, sink, &mut hunter)
}

fn share(plan: &Plan, rounds: usize) -> Shared {
    Shared {
        stop: AtomicBool::new(false),
        ended: AtomicUsize::new(0),
        gate: Barrier::new(plan.cpus.len() + 1),
        called_off: AtomicBool::new(false),
        start: Barrier::new(plan.cpus.len()),
        go: AtomicI64::new(0),
        rounds,
        round_loops: AtomicU64::new(0),
        over: AtomicI64::new(i64::MAX),
        housekeeper: rt::thread_id(),
    }
}

/// The rounds, and what they led to; true if a signal came meanwhile.
fn before_the_hunt(
    shared: &Shared,
    plan: &Plan,
    lanes: &[(i32, Arc<Lane>)],
    run: &mut Run,
    hunter: &mut dyn Hunter,
) -> Outcome<bool> {
    let threads = plan.cpus.iter().zip(lanes);
    let measurers: Vec<_> = threads.map(|(own, lane)| Measurer { cpu: own.cpu, thread: lane.0 }).collect();
    let signalled = rounds(shared, lanes, &measurers, hunter)?;
    shared.over.store(hunter.arm(run)?.0, Ordering::Release);
    Ok(signalled)
}

fn call_off(shared: &Shared, workers: Vec<Worker>, trouble: Trouble) -> Trouble {
    shared.called_off.store(true, Ordering::Release);
    shared.gate.wait();
    for worker in workers {
        worker.join();
    }
    trouble
}

/// Holds /dev/cpu_dma_latency at 0, unless the plan leaves the idle states alone.
///
/// Source: the kernel's Documentation/power/pm_qos_interface.rst; closing the file ends the request.
fn hold_idle(plan: &Plan, run: &mut Run) -> Outcome<Option<Held>> {
    if plan.idle == Idle::AsIs {
        return Ok(None);
    }
    let error = match host::hold("/dev/cpu_dma_latency", &0i32.to_ne_bytes()) {
        Ok(held) => return Ok(Some(held)),
        Err(error) => error,
    };
    if plan.idle_said {
        let message = format!("cannot hold /dev/cpu_dma_latency ({error}): run as root, or use --idle as-is");
        let exit = meaning_of(&error).map_or(Exit::NotSupported, |(exit, _)| exit);
        return Err(Trouble { exit, message });
    }
    run.plan.idle = "as-is".into();
    let detail =
        format!("/dev/cpu_dma_latency could not be held ({error}): idle states are as the system has them");
    run.integrity.push(entry("privilege", None, false, detail));
    Ok(None)
}

fn everybody_ready(plan: &Plan, workers: &[Worker], run: &mut Run) -> Outcome<Vec<(i32, Arc<Lane>)>> {
    let mut lanes = Vec::with_capacity(workers.len());
    let mut found: Vec<Ready> = Vec::with_capacity(workers.len());
    for (worker, own) in workers.iter().zip(&plan.cpus) {
        match worker.ready.get() {
            Some(Ok((ready, lane))) => {
                lanes.push((ready.thread, lane.clone()));
                found.push(ready.clone());
            }
            Some(Err(trouble)) => return Err(trouble.clone()),
            None => return Err(Trouble::internal(format!("the thread of cpu {} died", own.cpu))),
        }
    }
    run.overhead.clock_read_ns = found.iter().map(|ready| ready.clock_read).max();
    run.overhead.loop_ns = found.iter().map(|ready| ready.turn).max();
    if let Some(error) = found.iter().find_map(|ready| ready.policy_refused.clone()) {
        note_policy_refused(plan, &error, run)?;
    }
    if let Some(errno) = found.iter().find_map(|ready| ready.lock_refused) {
        let error = std::io::Error::from_raw_os_error(errno);
        let detail = format!(
            "the loop's memory is not locked ({error}): run as root or raise the limit of locked memory"
        );
        run.integrity.push(entry("memory-lock", None, false, detail));
    }
    Ok(lanes)
}

fn note_policy_refused(plan: &Plan, error: &std::io::Error, run: &mut Run) -> Outcome<()> {
    let wanted = format!("SCHED_{} with priority {}", plan.policy.name().to_uppercase(), plan.priority);
    if plan.policy_said {
        // Whatever the reason: a policy that was asked for and cannot be had is not permitted, as scripts expect it.
        return Err(Trouble::not_permitted(format!(
            "{wanted} cannot be had ({error}): run as root, raise the rtprio limit, or check the cgroup's cpu.rt_runtime_us and filters of system calls; -p 0 measures under SCHED_OTHER"
        )));
    }
    run.plan.policy = Policy::Other.name().into();
    run.plan.priority = Some(0);
    run.plan.expiry = expiry(&run.host.preempt, plan.wake, Policy::Other).into();
    let detail = format!(
        "{wanted} was refused ({error}): measured under SCHED_OTHER, which says little about real-time tasks; run as root or raise the rtprio limit"
    );
    run.integrity.push(entry("privilege", None, false, detail));
    Ok(())
}
