//! Start and end of a run; unmet requirements are refused before the measuring threads start.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::cost;
use super::housekeeper::Housekeeper;
use super::hunter::{Hunter, MeasuringThread};
use super::integrity::entry;
use super::prepare::ThreadInfo;
use super::rounds::rounds;
use super::shared::Shared;
use super::sink::Sink;
use super::task::ThreadBody;
use super::total::Total;
use super::worker::{ReadyThread, Worker, cancel, start_all};
use crate::plan::{CpuPlan, MeasurePlan, expiry};
use facts::policy_refusal::{PolicyRefusal, WantedPolicy, causes_of_errno};
use facts::policy_rights::{BudgetSettings, read_policy_rights};
use host::{self, HeldFile, MachineFiles, clock, rt};
use model::error::{Exit, Failure, Result, meaning_of, reason, run_with};
use model::run::{CpuRun, Run};
use model::units::Nanos;
use model::vocabulary::Policy;
use model::vocabulary::{IdleStates, IntegrityKind, Probe};

/// Runs the plan with one thread per CPU that executes `body`. `run` comes with the plan, the host
/// and the findings before the start filled in.
///
/// Fails if a thread cannot be set up as planned; once slots count, it always returns the results.
pub fn measure(
    plan: MeasurePlan,
    mut run: Run,
    core_types: &[String],
    body: Arc<dyn ThreadBody>,
    sink: &mut dyn Sink,
    mut hunter: Option<&mut dyn Hunter>,
) -> Result<Run> {
    become_housekeeper(&plan)?;
    let _held = hold_idle(&plan, &mut run)?;
    rt::release_code_pages(); // what prepared the run
    let plan = Arc::new(plan);
    let wanted = hunter.as_ref().map_or((0, 0), |hunter| (hunter.rounds(), hunter.late_capacity()));
    let shared = Arc::new(Shared::new(&plan, wanted.0, wanted.1));
    let workers = start_all(plan.cpus.len(), &shared, |index| Worker::start(&plan, index, &shared, &body))?;
    shared.barrier.wait();
    let threads = match collect_ready(&plan, &workers, &mut run).and_then(unless_interrupted) {
        Ok(threads) => threads,
        Err(failure) => return Err(cancel(&shared, workers, failure)),
    };
    lock_program(&mut run);
    // The start is not agreed on yet: if the run is killed early, its blocks show it.
    let nothing = |(index, own): (usize, &CpuPlan)| {
        let mut cpu = plan.blank_cpu(index);
        Total::of_plan(&plan, own).fill(&mut cpu);
        CpuRun { t0_mono_ns: None, ..cpu }
    };
    run.cpus = plan.cpus.iter().enumerate().map(nothing).collect();
    let mut signalled = false;
    if let Some(hunter) = &mut hunter {
        match run_rounds(&shared, &plan, &threads, &mut run, &mut **hunter) {
            Ok(early) => signalled = early,
            Err(failure) => return Err(cancel(&shared, workers, failure)),
        }
    }
    if let Err(failure) = sink.checkpoint(&run) {
        let message = failure.message + "; nothing was measured";
        return Err(cancel(&shared, workers, Failure::internal(message)));
    }
    let mut housekeeper = Housekeeper::new(&plan, threads, run, core_types, &workers);
    shared.start_at.store(0, Ordering::Release);
    shared.barrier.wait();
    housekeeper.begin(agreed_start(&shared, plan.cpus.len()), &plan);
    signalled |= housekeeper.run(&shared, sink, &mut hunter);
    shared.barrier.wait();
    let ends: Vec<_> = workers.into_iter().map(Worker::join).collect();
    Ok(housekeeper.finish(ends, signalled, sink, &mut hunter))
}

/// Makes the calling thread the housekeeping thread: it handles signals, under SCHED_OTHER on its
/// CPUs.
fn become_housekeeper(plan: &MeasurePlan) -> Result<()> {
    fn failed(what: &str) -> impl Fn(std::io::Error) -> Failure + '_ {
        move |error| {
            let remedy = run_with("CAP_SYS_NICE") + ", or without a system call filter";
            Failure::of_call(what, &error, Exit::Internal, &remedy)
        }
    }
    rt::disable_heap_trimming();
    rt::block_signals().map_err(failed("cannot block signals"))?;
    // onbeat's thread must not run at real-time priority, whatever policy it was started with.
    rt::leave_real_time().map_err(failed("cannot set SCHED_OTHER"))?;
    rt::pin(&plan.housekeeping).map_err(failed("cannot move the housekeeping thread"))
}

fn lock_program(run: &mut Run) {
    if let Err(error) = rt::lock_resident_pages() {
        let detail = format!(
            "onbeat's memory is not locked ({}): {}, or raise the limit of locked memory",
            reason(&error),
            run_with("CAP_IPC_LOCK")
        );
        run.integrity.push(entry(IntegrityKind::MemoryLock, None, false, detail));
    }
}

/// Time of slot 0 of the first CPU, on which the measuring threads agreed; the present time if all
/// of them died before that.
fn agreed_start(shared: &Shared, threads: usize) -> Nanos {
    loop {
        match shared.start_at.load(Ordering::Acquire) {
            0 if shared.all_have_ended(threads) => return clock::monotonic(),
            0 => clock::sleep_for(Nanos::MILLI),
            start_at => return Nanos(start_at),
        }
    }
}

/// Fails after a signal: before the first sample there is no result to keep.
fn unless_interrupted<T>(ready: T) -> Result<T> {
    if rt::stop_pending() {
        Err(Failure {
            exit: Exit::Interrupted,
            message: "interrupted before the first wake-up: nothing to store".into(),
        })
    } else {
        Ok(ready)
    }
}

/// Runs the rounds, and arms for the run; true if a signal came during them.
fn run_rounds(
    shared: &Shared,
    plan: &MeasurePlan,
    threads: &[ReadyThread],
    run: &mut Run,
    hunter: &mut dyn Hunter,
) -> Result<bool> {
    let Some(costs) = rounds(shared, threads, hunter)? else { return Ok(true) };
    cost::refuse_lockup(plan, effective_policy(run), &costs, "a recorded wake-up")?;
    shared.threshold.store(hunter.arm(run)?.0, Ordering::Release);
    Ok(false)
}

/// Holds /dev/cpu_dma_latency at 0, unless the plan leaves the idle states unchanged.
fn hold_idle(plan: &MeasurePlan, run: &mut Run) -> Result<Option<HeldFile>> {
    if plan.idle == IdleStates::AsIs {
        return Ok(None);
    }
    let error = match hold_idle_device() {
        Ok(held) => return Ok(Some(held)),
        Err(error) => error,
    };
    if plan.idle_explicit {
        let message = format!(
            "cannot hold /dev/cpu_dma_latency ({}): {}, or use --idle as-is",
            reason(&error),
            run_with("CAP_DAC_OVERRIDE")
        );
        let exit = meaning_of(&error).map_or(Exit::NotSupported, |(exit, _)| exit);
        return Err(Failure { exit, message });
    }
    run.plan.idle = "as-is".into();
    let detail =
        format!("/dev/cpu_dma_latency could not be held ({}): idle states are unchanged", reason(&error));
    run.integrity.push(entry(IntegrityKind::Privilege, None, false, detail));
    Ok(None)
}

/// Requests a wake-up latency of 0 for as long as the file is held.
///
/// Source: the kernel's Documentation/power/pm_qos_interface.rst.
pub fn hold_idle_device() -> std::io::Result<HeldFile> {
    host::write_and_hold("/dev/cpu_dma_latency", &0i32.to_ne_bytes())
}

/// Ready threads, if all of them can measure; their findings are noted in the run.
fn collect_ready(plan: &MeasurePlan, workers: &[Worker], run: &mut Run) -> Result<Vec<ReadyThread>> {
    let mut threads = Vec::with_capacity(workers.len());
    let mut found: Vec<ThreadInfo> = Vec::with_capacity(workers.len());
    for (worker, own) in workers.iter().zip(&plan.cpus) {
        match worker.prepared.get() {
            Some(Ok((info, buffers))) => {
                let thread = MeasuringThread { cpu: own.cpu, id: info.thread };
                threads.push(ReadyThread { thread, buffers: buffers.clone() });
                found.push(info.clone());
            }
            Some(Err(failure)) => return Err(failure.clone()),
            None => return Err(Failure::internal(format!("the thread of CPU {} died", own.cpu))),
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
        run.integrity.push(entry(IntegrityKind::MemoryLock, None, false, unlocked(errno)));
    }
    Ok(threads)
}

/// Remark on memory that could not be locked, for this error number.
pub fn unlocked(errno: i32) -> String {
    let error = std::io::Error::from_raw_os_error(errno);
    format!(
        "the loop's memory is not locked ({}): {}, or raise the limit of locked memory",
        reason(&error),
        run_with("CAP_IPC_LOCK")
    )
}

/// Effective policy of the measuring threads.
fn effective_policy(run: &Run) -> Policy {
    run.plan.policy.known().unwrap_or(Policy::Other)
}

/// Notes a nice value, which is kept and has an effect under SCHED_OTHER.
fn note_nice(run: &mut Run) {
    let nice = rt::nice().unwrap_or(0);
    if effective_policy(run) == Policy::Other && nice != 0 {
        run.plan
            .notes
            .push(format!("the measuring threads have nice value {nice}, inherited from the caller"));
    }
}

fn note_policy_refused(plan: &MeasurePlan, error: &std::io::Error, run: &mut Run) -> Result<()> {
    let wanted = format!("SCHED_{} with priority {}", plan.policy.name().to_uppercase(), plan.priority);
    let causes = causes_of(plan.priority, error).words();
    if plan.policy_explicit {
        // For any reason, a requested policy that cannot be set is reported as not permitted, as
        // scripts expect.
        let needs_it = plan.probe.as_ref().is_some_and(|probe| probe.probe == Probe::Pi);
        let otherwise = if needs_it { "" } else { "; -p 0 measures under SCHED_OTHER" };
        return Err(Failure::not_permitted(format!(
            "cannot set {wanted} ({}): {causes}{otherwise}",
            reason(error)
        )));
    }
    run.plan.policy = Policy::Other.into();
    run.plan.priority = Some(0);
    if plan.probe.is_none() {
        let preempt = run.host.preempt.known().unwrap_or_default();
        run.plan.expiry = expiry(preempt, plan.wake, Policy::Other).into();
    }
    let detail = format!(
        "{wanted} was refused ({}): measured under SCHED_OTHER, which tells little about real-time tasks; \
         {causes}",
        reason(error)
    );
    run.integrity.push(entry(IntegrityKind::Privilege, None, false, detail));
    Ok(())
}

/// Causes of a refused policy with this priority, from reads alone.
pub fn causes_of(priority: u32, error: &std::io::Error) -> PolicyRefusal {
    let machine = MachineFiles::live();
    let settings = BudgetSettings::of(&facts::gather(&machine));
    let rights = read_policy_rights(&machine, "/proc/self");
    causes_of_errno(&rights, &settings, WantedPolicy::Priority(priority), error.raw_os_error())
}
