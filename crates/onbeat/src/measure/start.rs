//! The start of a run and its end: what must be in place before the measuring threads begin, or refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};

use super::barrier::ThreadBarrier;
use super::block::CpuBuffers;
use super::cost;
use super::housekeeper::Housekeeper;
use super::hunter::{Hunter, MeasuringThread};
use super::integrity::entry;
use super::prepare::ThreadInfo;
use super::rounds::rounds;
use super::sink::Sink;
use super::total::Total;
use super::worker::{Shared, Worker};
use crate::plan::{CpuPlan, MeasurePlan, expiry};
use host::{self, Held, clock, rt};
use model::error::{Exit, Outcome, Trouble, meaning_of, run_with};
use model::run::{CpuRun, Run};
use model::units::Nanos;
use model::vocabulary::Policy;
use model::vocabulary::{IdleStates, IntegrityKind};

/// Runs the plan. `run` comes with the plan, the host and what was found before the start filled in.
///
/// Refuses when a thread cannot be had as planned; once slots count, it always returns what was measured.
pub fn measure(
    plan: MeasurePlan,
    mut run: Run,
    core_types: &[String],
    sink: &mut dyn Sink,
    mut hunter: Option<&mut dyn Hunter>,
) -> Outcome<Run> {
    fn failed(what: &str) -> impl Fn(std::io::Error) -> Trouble + '_ {
        move |error| {
            let remedy = run_with("CAP_SYS_NICE") + ", or outside a filter of system calls";
            Trouble::of_call(what, &error, Exit::Internal, &remedy)
        }
    }
    rt::disable_heap_trimming();
    rt::block_signals().map_err(failed("cannot block signals"))?;
    // Whatever onbeat was started with, its own thread must not go before anybody.
    rt::leave_real_time().map_err(failed("cannot take SCHED_OTHER"))?;
    rt::pin(&plan.housekeeping).map_err(failed("cannot move the housekeeping thread"))?;
    let _held = hold_idle(&plan, &mut run)?;
    rt::release_code_pages(); // what prepared the run
    let plan = Arc::new(plan);
    let shared = Arc::new(shared_state(&plan, hunter.as_ref().map_or(0, |hunter| hunter.rounds())));
    let workers = start_all(plan.cpus.len(), &shared, |index| Worker::start(&plan, index, &shared))?;
    shared.barrier.wait();
    let buffers = match collect_ready(&plan, &workers, &mut run).and_then(unless_interrupted) {
        Ok(buffers) => buffers,
        Err(trouble) => return Err(cancel(&shared, workers, trouble)),
    };
    if let Err(error) = rt::lock_resident_pages() {
        let detail = format!(
            "the program's own pages are not locked ({error}): {}, or raise the limit of locked memory",
            run_with("CAP_IPC_LOCK")
        );
        run.integrity.push(entry(IntegrityKind::MemoryLock, None, false, detail));
    }
    // The start is not agreed on yet: should the run be killed early, its blocks tell.
    let nothing = |own: &CpuPlan| {
        let total = Total::new(own.cpu, String::new(), own.interval, Nanos(0), 0);
        CpuRun { t0_mono_ns: None, ..total.document() }
    };
    run.cpus = plan.cpus.iter().map(nothing).collect();
    let mut signalled = false;
    if let Some(hunter) = &mut hunter {
        match run_rounds(&shared, &plan, &buffers, &mut run, &mut **hunter) {
            Ok(early) => signalled = early,
            Err(trouble) => return Err(cancel(&shared, workers, trouble)),
        }
    }
    if let Err(what) = sink.checkpoint(&run) {
        return Err(cancel(&shared, workers, Trouble::internal(what)));
    }
    let warmups: Vec<u64> = workers.iter().map(Worker::warmup).collect();
    let mut housekeeper = Housekeeper::new(&plan, buffers, run, core_types, &warmups);
    shared.start_at.store(0, Ordering::Release);
    shared.barrier.wait();
    let go = loop {
        match shared.start_at.load(Ordering::Acquire) {
            0 if shared.all_have_ended(plan.cpus.len()) => break clock::monotonic(),
            0 => clock::sleep_for(Nanos::MILLI),
            go => break Nanos(go),
        }
    };
    housekeeper.begin(go, &plan);
    signalled |= housekeeper.run(&shared, sink, &mut hunter);
    shared.barrier.wait();
    let ends: Vec<_> = workers.into_iter().map(Worker::join).collect();
    housekeeper.finish(ends, signalled, sink, &mut hunter)
}

pub(super) fn shared_state(plan: &MeasurePlan, rounds: usize) -> Shared {
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

/// Starts the threads; where one cannot be had, those that were started end again.
pub(super) fn start_all(
    threads: usize,
    shared: &Shared,
    start: impl Fn(usize) -> std::io::Result<Worker>,
) -> Outcome<Vec<Worker>> {
    let mut workers = Vec::with_capacity(threads);
    for index in 0..threads {
        match start(index) {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                let message = format!(
                    "cannot start a measuring thread ({error}): raise the limits of processes and memory (ulimit -u, -v), or measure fewer CPUs with -a"
                );
                shared.leave(threads - index);
                shared.barrier.wait();
                return Err(cancel(shared, workers, Trouble::internal(message)));
            }
        }
    }
    Ok(workers)
}

/// A signal that came before anything was measured leaves nothing to keep.
fn unless_interrupted<T>(ready: T) -> Outcome<T> {
    match rt::stop_pending() {
        false => Ok(ready),
        true => Err(Trouble {
            exit: Exit::Interrupted,
            message: "interrupted before the first wake-up: there is nothing to keep".into(),
        }),
    }
}

/// The rounds, and what they led to; true if a signal came meanwhile.
fn run_rounds(
    shared: &Shared,
    plan: &MeasurePlan,
    buffers: &[(i32, Arc<CpuBuffers>)],
    run: &mut Run,
    hunter: &mut dyn Hunter,
) -> Outcome<bool> {
    let threads = plan.cpus.iter().zip(buffers);
    let threads: Vec<_> =
        threads.map(|(own, buffers)| MeasuringThread { cpu: own.cpu, thread: buffers.0 }).collect();
    let Some(costs) = rounds(shared, buffers, &threads, hunter)? else { return Ok(true) };
    cost::refuse_lockup(plan, effective_policy(run), &costs, "a wake-up that is recorded")?;
    shared.threshold.store(hunter.arm(run)?.0, Ordering::Release);
    Ok(false)
}

fn cancel(shared: &Shared, workers: Vec<Worker>, trouble: Trouble) -> Trouble {
    shared.cancelled.store(true, Ordering::Release);
    shared.barrier.wait();
    for worker in workers {
        worker.join();
    }
    trouble
}

/// Holds /dev/cpu_dma_latency at 0, unless the plan leaves the idle states alone.
///
/// Source: the kernel's Documentation/power/pm_qos_interface.rst; closing the file ends the request.
fn hold_idle(plan: &MeasurePlan, run: &mut Run) -> Outcome<Option<Held>> {
    if plan.idle == IdleStates::AsIs {
        return Ok(None);
    }
    let error = match host::hold("/dev/cpu_dma_latency", &0i32.to_ne_bytes()) {
        Ok(held) => return Ok(Some(held)),
        Err(error) => error,
    };
    if plan.idle_explicit {
        let message = format!(
            "cannot hold /dev/cpu_dma_latency ({error}): {}, or use --idle as-is",
            run_with("CAP_DAC_OVERRIDE")
        );
        let exit = meaning_of(&error).map_or(Exit::NotSupported, |(exit, _)| exit);
        return Err(Trouble { exit, message });
    }
    run.plan.idle = "as-is".into();
    let detail =
        format!("/dev/cpu_dma_latency could not be held ({error}): idle states are as the system has them");
    run.integrity.push(entry(IntegrityKind::Privilege, None, false, detail));
    Ok(None)
}

fn collect_ready(
    plan: &MeasurePlan,
    workers: &[Worker],
    run: &mut Run,
) -> Outcome<Vec<(i32, Arc<CpuBuffers>)>> {
    let mut all = Vec::with_capacity(workers.len());
    let mut found: Vec<ThreadInfo> = Vec::with_capacity(workers.len());
    for (worker, own) in workers.iter().zip(&plan.cpus) {
        match worker.ready.get() {
            Some(Ok((ready, buffers))) => {
                all.push((ready.thread, buffers.clone()));
                found.push(ready.clone());
            }
            Some(Err(trouble)) => return Err(trouble.clone()),
            None => return Err(Trouble::internal(format!("the thread of cpu {} died", own.cpu))),
        }
    }
    run.overhead.clock_read_ns = found.iter().map(|ready| ready.clock_read).max();
    run.overhead.loop_ns = found.iter().map(|ready| ready.loop_cost).max();
    if let Some(error) = found.iter().find_map(|ready| ready.policy_refused.clone()) {
        note_policy_refused(plan, &error, run)?;
    }
    note_nice(run);
    let costs: Vec<Nanos> = found.iter().map(|ready| ready.cycle).collect();
    cost::refuse_lockup(plan, effective_policy(run), &costs, "a wake-up")?;
    if let Some(errno) = found.iter().find_map(|ready| ready.lock_refused) {
        let error = std::io::Error::from_raw_os_error(errno);
        let detail = format!(
            "the loop's memory is not locked ({error}): {}, or raise the limit of locked memory",
            run_with("CAP_IPC_LOCK")
        );
        run.integrity.push(entry(IntegrityKind::MemoryLock, None, false, detail));
    }
    Ok(all)
}

/// The policy of the measuring threads as it took effect.
fn effective_policy(run: &Run) -> Policy {
    run.plan.policy.known().unwrap_or(Policy::Other)
}

/// A nice value counts under SCHED_OTHER, and is kept.
fn note_nice(run: &mut Run) {
    let nice = rt::nice().unwrap_or(0);
    if effective_policy(run) == Policy::Other && nice != 0 {
        run.plan.notes.push(format!(
            "the measuring threads have the nice value of {nice} that onbeat was started with"
        ));
    }
}

fn note_policy_refused(plan: &MeasurePlan, error: &std::io::Error, run: &mut Run) -> Outcome<()> {
    let wanted = format!("SCHED_{} with priority {}", plan.policy.name().to_uppercase(), plan.priority);
    if plan.policy_explicit {
        // Whatever the reason: a policy that was asked for and cannot be had is not permitted, as scripts expect it.
        return Err(Trouble::not_permitted(format!(
            "{wanted} cannot be had ({error}): {}, raise the rtprio limit, or check the cgroup's cpu.rt_runtime_us and filters of system calls; -p 0 measures under SCHED_OTHER",
            run_with("CAP_SYS_NICE")
        )));
    }
    run.plan.policy = Policy::Other.into();
    run.plan.priority = Some(0);
    run.plan.expiry = expiry(run.host.preempt.known().unwrap_or_default(), plan.wake, Policy::Other).into();
    let detail = format!(
        "{wanted} was refused ({error}): measured under SCHED_OTHER, which says little about real-time tasks; {}, or raise the rtprio limit",
        run_with("CAP_SYS_NICE")
    );
    run.integrity.push(entry(IntegrityKind::Privilege, None, false, detail));
    Ok(())
}
