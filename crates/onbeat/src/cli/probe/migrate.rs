//! `onbeat probe migrate`.

use std::sync::Arc;

use super::probe_flags::{PairFlags, ProbeFlags};
use super::{finish_unless, measured};
use crate::cli::Environment;
use crate::cli::flags::positive_span;
use crate::cli::outputs::Outputs;
use crate::cli::running::prepare_run;
use crate::measure::integrity::entry;
use crate::plan::intent::MeasureIntent;
use crate::plan::{MeasurePlan, ProbePlan};
use crate::probe::migrate::{Migrating, Violation};
use model::error::{Exit, Failure, Result};
use model::run::Run;
use model::text::several;
use model::units::{Bare, Cpu, Nanos};
use model::vocabulary::{Ended, IntegrityKind, Policy, Probe, SchedulePhase};

/// Share of the CPUs that the threads may take, in percent: the rest is for other threads.
const MOST_PERCENT: i64 = 80;

/// Test that the scheduler runs the highest threads: more real-time threads than CPUs
///
/// One thread more than there are CPUs, each with its own priority, may run on all chosen CPUs. In
/// each interval all wake up, 20 us after each other in another order each time, and compute for
/// --work. At any time the highest of the ready threads have to run. The samples are the times for
/// which a thread was ready to run while one with a lower priority ran, per round. If such a time
/// reaches --over, and the kernel's own count confirms that the thread waited for a CPU, the test
/// has failed: the run ends at once, with exit code 3. rt-migrate-test of rt-tests tests the same.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat probe migrate                         all CPUs, 10 s, 100 rounds a second\n  \
        onbeat probe migrate -a 2-3 --threads 6      six threads on two CPUs\n  \
        onbeat probe migrate --bound                 threads bound to CPUs: exit code 3")]
pub struct Args {
    #[command(flatten)]
    flags: ProbeFlags,
    /// Duration; a bare number is in seconds
    #[arg(short = 'D', long, value_name = "SPAN", default_value = "10s", allow_hyphen_values = true)]
    duration: String,
    /// Time between rounds; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "10ms", allow_hyphen_values = true)]
    interval: String,
    /// Threads; by default one more than there are CPUs
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// CPU time of each thread in a round; a bare number is in us
    #[arg(long, value_name = "SPAN", default_value = "2ms", allow_hyphen_values = true)]
    work: String,
    /// Time from which a wait is a failure; a bare number is in us
    #[arg(long, value_name = "SPAN", default_value = "1ms", allow_hyphen_values = true)]
    over: String,
    /// Bind the two highest threads to one CPU and the others to another: the run has to fail,
    /// which shows that a failure is found
    #[arg(long)]
    bound: bool,
    #[command(flatten)]
    pairs: PairFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let outputs = Outputs::of(&[&args.flags.run.json], environment)?;
    let work = positive_span("--work", &args.work, Bare::Micros)?;
    let over = positive_span("--over", &args.over, Bare::Micros)?;
    let intent = args.flags.pair_intent(&args.duration, &args.interval, &args.pairs)?;
    let wanted = args.flags.wanted(MeasureIntent { phase: SchedulePhase::Aligned, ..intent }, "rounds")?;
    let (mut priorities, mut bound) = (Vec::new(), Vec::new());
    let prepared = prepare_run(wanted, environment, |plan, _, _| {
        let cpus: Vec<Cpu> = plan.measured().iter().collect();
        let threads = thread_count(args.threads, cpus.len())?;
        need_time(plan, work, threads, cpus.len())?;
        need_priorities(plan, threads)?;
        plan.unbind(threads);
        if args.bound {
            bound = bound_cpus(&cpus, threads)?;
        }
        priorities = plan.cpus.iter().map(|own| plan.priority_of(own)).collect();
        let kind = if args.bound { "bound" } else { "free" }.to_owned();
        plan.probe =
            Some(ProbePlan { kind, over: Some(over), work: Some(work), ..ProbePlan::of(Probe::Migrate) });
        Ok(())
    })?;
    let body = Arc::new(Migrating::new(priorities.len(), work, over, bound));
    let (results, levels) = (body.clone(), priorities.clone());
    let kept = measured(prepared, body.clone(), None, move |run| fill(run, &results, &levels))?;
    let failure = body.failure().map(|of| failure(&kept.run, of, &priorities, args.bound));
    let failure = failure.or_else(|| nothing_tested(&kept.run));
    finish_unless(&args.flags.run, kept, outputs, environment, failure)
}

/// Number of threads, more than there are CPUs.
fn thread_count(wanted: Option<u32>, cpus: usize) -> Result<u32> {
    let least = cpus as u32 + 1;
    match wanted {
        None => Ok(least),
        Some(wanted) if wanted >= least => Ok(wanted),
        Some(wanted) => Err(Failure::usage(format!(
            "invalid --threads {wanted}: expected at least {least}, more than there are CPUs, or fewer CPUs \
             with -a"
        ))),
    }
}

/// Ensures that the threads leave time to others.
fn need_time(plan: &MeasurePlan, work: Nanos, threads: u32, cpus: usize) -> Result<()> {
    let wanted = i128::from(work.0) * i128::from(threads) * 100;
    let most = i128::from(plan.interval.0) * cpus as i128 * i128::from(MOST_PERCENT);
    if wanted <= most {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "invalid --work {work}: {} would take more than {MOST_PERCENT} % of the CPUs in an interval of {}; \
         reduce --work or --threads, or increase -i",
        several(u64::from(threads), "thread", "threads"),
        plan.interval
    )))
}

/// Ensures that each thread has a real-time priority of its own.
fn need_priorities(plan: &mut MeasurePlan, threads: u32) -> Result<()> {
    if plan.policy == Policy::Other || plan.priority < threads {
        return Err(Failure::usage(format!(
            "invalid -p {}: {threads} threads need a real-time priority each; give -p {threads} or more, at \
             most 99",
            plan.priority
        )));
    }
    // Under SCHED_OTHER no thread is higher than another.
    plan.policy_explicit = true;
    Ok(())
}

/// A CPU for each thread: the two highest share one.
fn bound_cpus(cpus: &[Cpu], threads: u32) -> Result<Vec<Cpu>> {
    let [first, second, ..] = *cpus else {
        return Err(Failure::usage("--bound needs two CPUs: choose them with -a"));
    };
    Ok((0..threads).map(|thread| if thread < 2 { first } else { second }).collect())
}

/// Adds the counts of each thread, and the violation.
fn fill(run: &mut Run, body: &Migrating, priorities: &[u32]) {
    for (index, (cpu, &priority)) in run.cpus.iter_mut().zip(priorities).enumerate() {
        cpu.migration = Some(body.migration(index, priority));
    }
    if let Some(violation) = body.failure() {
        run.ended = Ended::Error.into();
        run.integrity.push(entry(IntegrityKind::Scheduler, None, true, words(violation, priorities)));
    }
    let held: u64 = run.cpus.iter().filter_map(|cpu| cpu.migration).map(|of| of.held).sum();
    if held > 0 {
        let detail = format!(
            "{} in which a thread did not run, and did not wait on a run queue by the kernel's count: its \
             CPU was held by interrupts, firmware or a hypervisor",
            several(held, "round", "rounds")
        );
        run.integrity.push(entry(IntegrityKind::Steal, None, false, detail));
    }
}

fn words(of: Violation, priorities: &[u32]) -> String {
    let named = |number: u32| {
        let priority = priorities.get(number as usize - 1).copied().unwrap_or_default();
        format!("thread {number} (priority {priority})")
    };
    format!(
        "the scheduler did not run the highest threads: {} waited {} while {} ran",
        named(of.thread),
        of.waited,
        named(of.lower)
    )
}

fn failure(run: &Run, of: Violation, priorities: &[u32], bound: bool) -> Failure {
    let remedy = if bound {
        "as expected of bound threads, omit --bound"
    } else if matches!(run.host.virtualization.as_str(), "" | "none") {
        "report this to the supplier of the kernel, with the bundle"
    } else {
        "in a virtual machine a CPU that the host stops looks the same: repeat it with a higher --over"
    };
    Failure { exit: Exit::Limit, message: format!("{}; {remedy}", words(of, priorities)) }
}

fn nothing_tested(run: &Run) -> Option<Failure> {
    let none = run.samples().is_none_or(|samples| samples == 0);
    (none && run.ended != Ended::Signal).then(|| Failure {
        exit: Exit::Inconclusive,
        message: "no round was measured: increase -D".to_owned(),
    })
}
