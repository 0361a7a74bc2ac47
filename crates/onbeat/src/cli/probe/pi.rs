//! `onbeat probe pi`.

use std::sync::Arc;

use super::probe_flags::{PairFlags, ProbeFlags};
use super::{finish_unless, measured};
use crate::cli::Environment;
use crate::cli::flags::{keyword, positive_span};
use crate::cli::outputs::Outputs;
use crate::cli::running::prepare_run;
use crate::measure::integrity::entry;
use crate::plan::{MeasurePlan, ProbePlan};
use crate::probe::pi::{GroupFailure, GroupLock, PriorityInheritance, TIME_LIMIT};
use host::ipc::{PiFutex, PlainFutex, SharedPiFutex};
use model::error::{Exit, Failure, Result};
use model::run::{Integrity, Run};
use model::units::{Bare, Nanos};
use model::vocabulary::{Ended, IntegrityKind, Policy, Probe};

/// Longest time for which the medium thread may compute: it keeps ordinary threads off the CPU.
const LONGEST: Nanos = Nanos(50_000_000);

/// The lowest priority of the high thread that leaves two below it.
const LOWEST: u32 = 3;

model::keywords! {
    /// Lock of the three threads.
    pub enum MutexKind {
        /// with priority inheritance
        Pi = "pi",
        /// with priority inheritance, in memory that processes can share
        Shared = "shared",
        /// without: the run has to fail, which shows that a failure is found
        Plain = "plain",
    }
}

/// Test that the kernel resolves priority inversions: mutexes with priority inheritance
///
/// On each CPU a thread of low priority takes a mutex, a thread of high priority waits for it, and
/// a thread of medium priority would compute for --compute. With priority inheritance the low
/// thread runs at the high one's priority until it releases the mutex. The samples are the times
/// for which the high thread waited. If the medium thread computes while the high one waits, or the
/// high one does not get the mutex within a second, the test has failed: the run ends at once, with
/// exit code 3. pi_stress and pip_stress (--mutex shared) of rt-tests test the same, without times.
/// The threads sleep between inversions, and compute for a limited time, so that a failure does not
/// stop the machine.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat probe pi                              each CPU, 10 s, 1000 inversions a second\n  \
        onbeat probe pi -a 1 -l 100000 -i 100us      100,000 inversions on one CPU\n  \
        onbeat probe pi --mutex plain                a lock without inheritance: exit code 3")]
pub struct Args {
    #[command(flatten)]
    flags: ProbeFlags,
    /// Duration; a bare number is in seconds
    #[arg(short = 'D', long, value_name = "SPAN", default_value = "10s", allow_hyphen_values = true)]
    duration: String,
    /// Time between inversions; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "1000us", allow_hyphen_values = true)]
    interval: String,
    /// Time for which the medium thread computes in an unresolved inversion, at most 50ms; a bare
    /// number is in us
    #[arg(long, value_name = "SPAN", default_value = "2ms", allow_hyphen_values = true)]
    compute: String,
    /// Kind of mutex
    #[arg(long, value_name = "KIND", default_value = "pi", value_parser = keyword::<MutexKind>())]
    mutex: MutexKind,
    #[command(flatten)]
    pairs: PairFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let outputs = Outputs::of(&[&args.flags.run.json], environment)?;
    let compute = positive_span("--compute", &args.compute, Bare::Micros)?;
    if compute > LONGEST {
        return Err(Failure::usage(format!(
            "invalid --compute {compute}: at most {LONGEST}, because an unresolved inversion keeps ordinary \
             threads off the CPU for that time"
        )));
    }
    let wanted = args.flags.wanted(
        args.flags.pair_intent(&args.duration, &args.interval, &args.pairs)?,
        "priority inversions",
    )?;
    let mut made = Vec::new();
    let prepared = prepare_run(wanted, environment, |plan, _, _| {
        need_priorities(plan)?;
        made = locks(args.mutex, plan.cpus.len())?;
        let kind = args.mutex.name().to_owned();
        plan.probe = Some(ProbePlan { kind, ..ProbePlan::of(Probe::Pi) });
        Ok(())
    })?;
    let body = Arc::new(PriorityInheritance::new(made, compute));
    let results = body.clone();
    let kept = measured(prepared, body.clone(), None, move |run| fill(run, &results))?;
    let failure = failure(&kept.run, &body, args.mutex);
    finish_unless(&args.flags.run, kept, outputs, environment, failure)
}

/// A lock per CPU.
fn locks(kind: MutexKind, count: usize) -> Result<Vec<GroupLock>> {
    let lock = |_| {
        Ok(match kind {
            MutexKind::Pi => GroupLock::Inheriting(PiFutex::default()),
            MutexKind::Shared => GroupLock::Shared(SharedPiFutex::new()?),
            MutexKind::Plain => GroupLock::Plain(PlainFutex::default()),
        })
    };
    let made: std::io::Result<Vec<GroupLock>> = (0..count).map(lock).collect();
    made.map_err(|error| {
        let what = "cannot create a mutex in shared memory";
        Failure::of_call(what, &error, Exit::Internal, "use --mutex pi")
    })
}

/// Ensures that the threads have three real-time priorities.
fn need_priorities(plan: &mut MeasurePlan) -> Result<()> {
    if plan.policy == Policy::Other || plan.priority < LOWEST {
        return Err(Failure::usage(format!(
            "invalid -p {}: the three threads need real-time priorities, the high one at least {LOWEST}; \
             give -p {LOWEST} or more",
            plan.priority
        )));
    }
    // Without them there is no inversion.
    plan.policy_explicit = true;
    Ok(())
}

/// Adds the counts of each CPU, and the failures.
fn fill(run: &mut Run, body: &PriorityInheritance) {
    for (cpu, inversions) in run.cpus.iter_mut().zip(body.inversions()) {
        cpu.inversions = Some(inversions);
    }
    let failures: Vec<Integrity> = body.failures().map(|(at, failure)| entry_of(run, at, failure)).collect();
    if !failures.is_empty() {
        run.ended = Ended::Error.into();
    }
    run.integrity.extend(failures);
}

fn entry_of(run: &Run, at: usize, failure: GroupFailure) -> Integrity {
    let cpu = run.cpus.get(at).and_then(|cpu| cpu.cpu);
    let kind = match failure {
        GroupFailure::Unresolved { .. } | GroupFailure::NotReleased { .. } => IntegrityKind::Scheduler,
        GroupFailure::NoTime | GroupFailure::Call(_) => IntegrityKind::Thread,
    };
    entry(kind, cpu, true, words(failure))
}

fn words(failure: GroupFailure) -> String {
    match failure {
        GroupFailure::Unresolved { waited } => format!(
            "a priority inversion was not resolved: the medium thread computed while the high one waited \
             {waited} for the low one's mutex"
        ),
        GroupFailure::NotReleased { waited } => {
            format!(
                "a priority inversion was not resolved: the high thread did not get the mutex in {waited}"
            )
        }
        GroupFailure::NoTime => format!(
            "its threads had no CPU time for {TIME_LIMIT}, so that no inversion could be made: another \
             real-time thread keeps the CPU"
        ),
        GroupFailure::Call(number) => {
            format!("its threads could not use the mutex ({})", std::io::Error::from_raw_os_error(number))
        }
    }
}

/// Failure of the run: of an inversion first.
fn failure(run: &Run, body: &PriorityInheritance, mutex: MutexKind) -> Option<Failure> {
    let failures: Vec<(usize, GroupFailure)> = body.failures().collect();
    let unresolved = |(_, failure): &&(usize, GroupFailure)| {
        matches!(failure, GroupFailure::Unresolved { .. } | GroupFailure::NotReleased { .. })
    };
    let cpu = |at: usize| run.cpus.get(at).map_or_else(String::new, |cpu| format!("{}: ", cpu.name()));
    if let Some(&(at, failure)) = failures.iter().find(unresolved) {
        let remedy = match mutex {
            MutexKind::Pi | MutexKind::Shared => "report this to the supplier of the kernel, with the bundle",
            MutexKind::Plain => "as expected without inheritance, use --mutex pi",
        };
        let message = format!("{}{}; {remedy}", cpu(at), words(failure));
        return Some(Failure { exit: Exit::Limit, message });
    }
    if let Some(&(at, failure)) = failures.first() {
        let message = format!("{}{}; choose other CPUs with -a, or a higher -p", cpu(at), words(failure));
        return Some(Failure { exit: Exit::Inconclusive, message });
    }
    let made: u64 = body.inversions().map(|inversions| inversions.made).sum();
    (made == 0 && run.ended != Ended::Signal).then(|| Failure {
        exit: Exit::Inconclusive,
        message: "no priority inversion was made: increase -D".to_owned(),
    })
}
