//! `onbeat probe deadline`.

use std::sync::Arc;

use super::probe_flags::{PairFlags, ProbeFlags};
use super::{finish_unless, measured};
use crate::cli::Environment;
use crate::cli::flags::positive_span;
use crate::cli::outputs::Outputs;
use crate::cli::run_flags::ThreadFlags;
use crate::cli::running::prepare_run;
use crate::measure::reserve::{try_reservation, why_refused};
use crate::plan::intent::MeasureIntent;
use crate::plan::{CpuChoice, MeasurePlan, ProbePlan};
use crate::probe::deadline::Jobs;
use host::rt;
use model::error::{Exit, Failure, Result};
use model::reservation::Reservation;
use model::run::Run;
use model::units::{Bare, CpuSet, Nanos};
use model::vocabulary::{Ended, Policy, Probe};

/// Default parameters of the threads: a tenth of each CPU.
const DEFAULT: Reservation =
    Reservation { runtime: Nanos(1_000_000), deadline: Nanos(10_000_000), period: Nanos(10_000_000) };

/// Longest work of a job, which a mistake must not make endless.
const LONGEST: Nanos = Nanos::SECOND;

/// Measure the jobs of SCHED_DEADLINE threads: lateness, overruns, throttling
///
/// One thread per CPU has a runtime, a deadline and a period (-P), and computes for --work in each
/// period. The samples are the times from the start of a period to the first instruction of its
/// job. Per thread are counted: jobs that ended after their deadline, jobs with more CPU time than
/// the runtime, and the pauses in jobs: throttled by the kernel, preempted by another thread, or
/// without a switch (interrupts, firmware, a hypervisor). The kernel's own reports of overruns are
/// counted for all threads together.
///
/// The kernel accepts a SCHED_DEADLINE thread that is bound to a CPU only in a partition of that
/// CPU alone (`onbeat isolate create`), or without admission control. Without -a, where it is not
/// accepted, the threads may run on all CPUs, and their CPU is not known. cyclicdeadline and
/// deadline_test of rt-tests measure the same.
#[derive(clap::Args)]
#[command(mut_arg("priority", |arg| arg
    .value_name("d:SPANS")
    .help("d:RUNTIME:PERIOD or d:RUNTIME:DEADLINE:PERIOD; bare numbers are in us [default: d:1ms:10ms]")))]
#[command(after_help = "Examples:\n  \
        onbeat probe deadline                        1 ms in each 10 ms, a thread per CPU\n  \
        onbeat probe deadline -P d:200us:1ms:2ms     with a deadline before the end of the period\n  \
        onbeat probe deadline --work 2ms             more than the runtime: throttled")]
pub struct Args {
    #[command(flatten)]
    flags: ProbeFlags,
    /// Duration; a bare number is in seconds
    #[arg(short = 'D', long, value_name = "SPAN", default_value = "10s", allow_hyphen_values = true)]
    duration: String,
    /// CPU time of each job; half of the runtime by default; a bare number is in us
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    work: Option<String>,
    #[command(flatten)]
    pairs: PairFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let outputs = Outputs::of(&[&args.flags.run.json], environment)?;
    let reservation = reservation(&args.flags.threads)?;
    let work = work(args.work.as_deref(), &reservation)?;
    let intent = MeasureIntent {
        policy: Some(Policy::Deadline),
        priority: None,
        reservation: Some(reservation),
        loops: args.pairs.loops.filter(|&loops| loops > 0),
        idle: args.pairs.idle,
        ..args.flags.any_intent(&args.duration, reservation.period)?
    };
    let free = intent.cpus == CpuChoice::All;
    let wanted = args.flags.wanted(intent, "jobs")?;
    let counted = rt::count_overruns();
    let mut threads = 0;
    let prepared = prepare_run(wanted, environment, |plan, _, _| {
        let kind = place(plan, &reservation, free)?.to_owned();
        threads = plan.cpus.len();
        plan.probe = Some(ProbePlan { kind, work: Some(work), ..ProbePlan::of(Probe::Deadline) });
        Ok(())
    })?;
    let body = Arc::new(Jobs::new(threads, reservation, work));
    let results = body.clone();
    let kept = measured(prepared, body, None, move |run| fill(run, &results, counted))?;
    let failure = nothing_measured(&kept.run);
    finish_unless(&args.flags.run, kept, outputs, environment, failure)
}

/// Parameters of -P, or the default ones.
fn reservation(flags: &ThreadFlags) -> Result<Reservation> {
    let of = flags.reservation();
    let other = flags.policy()?.is_some_and(|policy| policy != Policy::Deadline);
    if other || (of.is_none() && flags.priority().is_some()) {
        return Err(Failure::usage(
            "probe deadline runs SCHED_DEADLINE threads, which have no priority: expected -P \
             d:RUNTIME:PERIOD",
        ));
    }
    Ok(of.unwrap_or(DEFAULT))
}

/// Work of a job, half of the runtime by default.
fn work(text: Option<&str>, of: &Reservation) -> Result<Nanos> {
    let Some(text) = text else { return Ok(Nanos(of.runtime.0 / 2)) };
    match positive_span("--work", text, Bare::Micros)? {
        work if work <= LONGEST => Ok(work),
        work => Err(Failure::usage(format!("invalid --work {work}: expected at most {LONGEST}"))),
    }
}

/// Decides whether the threads are bound to their CPUs; refuses what the kernel would refuse.
fn place(plan: &mut MeasurePlan, wanted: &Reservation, free: bool) -> Result<&'static str> {
    let cpus = plan.measured();
    let bound = plan.cpus.iter().try_for_each(|own| {
        let only: CpuSet = [own.cpu].into_iter().collect();
        try_reservation(&only, wanted).map_err(|error| (own.cpu, error))
    });
    match bound {
        Ok(()) => return Ok("bound"),
        Err((cpu, error)) if !free || error.raw_os_error() != Some(libc::EPERM) => {
            return Err(why_refused(&cpus, Some(cpu), wanted, &error));
        }
        Err(_) => {}
    }
    try_reservation(&cpus, wanted).map_err(|error| why_refused(&cpus, None, wanted, &error))?;
    plan.unbind(plan.cpus.len() as u32);
    plan.notes.push(
        "the kernel accepts no SCHED_DEADLINE thread that is bound to one CPU of several: the threads may \
         run on all, and their CPU is not known; `onbeat isolate create CPU` makes a partition of one CPU"
            .to_owned(),
    );
    Ok("free")
}

/// Adds the counts of each thread, and the kernel's reports.
fn fill(run: &mut Run, body: &Jobs, counted: bool) {
    for (index, cpu) in run.cpus.iter_mut().enumerate() {
        cpu.deadline = Some(body.jobs(index));
    }
    run.overrun_signals = counted.then(|| body.reports());
}

fn nothing_measured(run: &Run) -> Option<Failure> {
    let none = run.samples().is_none_or(|samples| samples == 0);
    (none && run.ended != Ended::Signal)
        .then(|| Failure { exit: Exit::Inconclusive, message: "no job was measured: increase -D".to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_is_half_of_the_runtime_or_as_given() {
        assert_eq!(work(None, &DEFAULT).ok(), Some(Nanos(500_000)));
        assert_eq!(work(Some("3ms"), &DEFAULT).ok(), Some(Nanos(3_000_000)));
        for text in ["0", "2s", "-1", "x"] {
            assert_eq!(
                work(Some(text), &DEFAULT).map_err(|failure| failure.exit),
                Err(Exit::Usage),
                "{text}"
            );
        }
    }
}
