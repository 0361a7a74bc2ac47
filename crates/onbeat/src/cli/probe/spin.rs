//! `onbeat probe spin`.

use std::sync::Arc;

use super::probe_flags::ProbeFlags;
use super::{finish, measured, traced};
use crate::cli::Environment;
use crate::cli::flags::{keyword, positive_span};
use crate::cli::outputs::Outputs;
use crate::cli::running::prepare_run;
use crate::cli::tracer_files::{self, OsnoiseWish};
use crate::plan::{MachineCpus, MeasureIntent, MeasurePlan, ProbePlan, SamplingWindow};
use crate::probe::gap_list::GapList;
use crate::probe::hog::Hogs;
use crate::probe::osnoise::OsnoiseTracer;
use crate::probe::spin::Spin;
use host::clock;
use model::error::{Exit, Failure, Result};
use model::run::Host;
use model::units::{Bare, Cpu, CpuSet, Nanos};
use model::vocabulary::{Policy, Probe, SchedulePhase, SpinSource};

/// Default length from which a gap counts, unless reading the clock takes too long.
const OVER: Nanos = Nanos(1_000);

/// Minimum length of a gap in reads of the clock: by default, and if the user gives one.
const READS_BY_DEFAULT: i64 = 4;
const READS_AT_LEAST: i64 = 2;

/// Sampling period of the osnoise tracer: its counts are those of the complete ones.
const PERIOD: Nanos = Nanos(100_000_000);

/// Maximum duration for a real-time thread that never sleeps and is not stopped: half of what the
/// kernel's watchdogs wait for (kernel.watchdog_thresh, 10 s by default, twice for soft lockups).
const UNTHROTTLED: Nanos = Nanos(10_000_000_000);

/// Find everything that takes a CPU away from its thread, however short
///
/// One thread per CPU reads the clock without a pause. Two reads further apart than --over are a
/// gap: something else ran there, in the kernel, in the firmware or in another machine. Every gap
/// is in the histogram, the longest 2,000 are stored with their times, and the table shows the time
/// lost in parts per million, with the interrupts that arrived during it. A periodic wake-up meets
/// such a gap only by chance; this probe sees each one.
///
/// The clock is CLOCK_MONOTONIC as a program reads it: the processor's counter, if the clocksource
/// is one. The thread runs under SCHED_OTHER unless -p is given, so that other tasks on the CPU are
/// gaps, too. With a real-time priority it keeps all other tasks off its CPU, except in the time
/// that the kernel's throttling leaves to them: one CPU stays free, and without throttling the run
/// ends after 10 s.
///
/// With --source osnoise threads of the kernel read the clock instead (SCHED_OTHER), and the result
/// also has the time taken by the hardware, NMIs, interrupts, softirqs and threads.
#[derive(clap::Args)]
#[command(mut_arg("priority", |arg| arg.help("Priority, 1 to 99; 0 is SCHED_OTHER, the default")))]
#[command(after_help = "Examples:\n  \
        onbeat probe spin                            all CPUs, 10 s, gaps of at least 1 us\n  \
        onbeat probe spin -a 2-3 -p 1 --over 20us    isolated CPUs, as seen by a real-time task\n  \
        onbeat probe spin -a 1 -b 1ms                exit code 3 at a gap of 1 ms\n  \
        onbeat probe spin --source osnoise           gaps by their sources, as the kernel counts them")]
pub struct Args {
    #[command(flatten)]
    flags: ProbeFlags,
    /// Duration; a bare number is in seconds
    #[arg(short = 'D', long, value_name = "SPAN", default_value = "10s", allow_hyphen_values = true)]
    duration: String,
    /// Source of the gaps
    #[arg(long, value_name = "SOURCE", value_parser = keyword::<SpinSource>(), default_value = "spin")]
    source: SpinSource,
    /// Shortest gap that counts; a bare number is in us [default: 1us, more if the clock is slow to
    /// read]
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    over: Option<String>,
    /// Also run a busy SCHED_OTHER thread on each measured CPU, so that throttling and the fair
    /// server, which take time from real-time tasks for other tasks, have a task to run
    #[arg(long)]
    hog: bool,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let outputs = Outputs::of(&[&args.flags.run.json], environment)?;
    let asked = args.over.as_deref().map(|text| positive_span("--over", text, Bare::Micros)).transpose()?;
    if args.source == SpinSource::Osnoise {
        return by_osnoise(args, asked.unwrap_or(OVER), outputs, environment);
    }
    let (over, note) = threshold(asked, clock::clock_read_cost())?;
    let title = format!("gaps of {over} and more");
    let wanted = args.flags.wanted(intent(args)?, &title)?;
    let prepared = prepare_run(wanted, environment, |plan, machine, facts| {
        plan.notes.extend(note);
        note_hogs(args, plan);
        plan.probe = Some(ProbePlan { over: Some(over), ..ProbePlan::of(Probe::Spin) });
        leave_a_cpu(plan, machine, args.flags.threads.cpus.is_none())?;
        refuse_without_end(plan, &facts::describe(facts))
    })?;
    let _hogs = hogs(args, &prepared.plan)?;
    let mut gaps = GapList::new(over);
    let kept = measured(prepared, Arc::new(Spin { over }), Some(&mut gaps), |_| ())?;
    finish(&args.flags.run, kept, outputs, environment)
}

/// Runs the kernel's osnoise tracer in place of onbeat's threads.
fn by_osnoise(args: &Args, over: Nanos, mut outputs: Outputs, environment: &Environment) -> Result<Exit> {
    if over.0 < Nanos::MICRO.0 {
        return Err(Failure::usage(format!(
            "invalid --over {over}: the tracer's threshold is in microseconds; give 1us or more"
        )));
    }
    let intent = intent(args)?;
    if args.flags.threads.policy()?.is_some() || args.flags.threads.priority().is_some() {
        return Err(Failure::usage(
            "invalid -p or --policy: the tracer has threads of the kernel; remove it, or use --source spin",
        ));
    }
    let over = Nanos(over.0 / Nanos::MICRO.0 * Nanos::MICRO.0);
    let tracing = OsnoiseTracer::find()?;
    let title = format!("gaps of {over} and more");
    let wanted = args.flags.wanted(intent, &title)?;
    let (no_cpus, mut armed, mut settings) = (CpuSet::default(), None, None);
    let prepared = prepare_run(wanted, environment, |plan, _, _| {
        note_hogs(args, plan);
        let kind = SpinSource::Osnoise.name().to_owned();
        plan.probe = Some(ProbePlan { over: Some(over), kind, ..ProbePlan::of(Probe::Spin) });
        let cpus: CpuSet = cpus_of(plan).collect();
        let window = Some(SamplingWindow { width: PERIOD, length: PERIOD });
        let (over, interval) = (Some(over), None);
        let wish = OsnoiseWish { cpus: &cpus, over, window, irqs_off: false, interval, workload: true };
        let files = tracer_files::of_osnoise(&tracing, &wish)?;
        settings = Some(tracer_files::set(environment, &no_cpus, "probe spin", files, "use --source spin")?);
        let tracer = OsnoiseTracer::arm(tracing, &cpus, true)?;
        plan.notes.extend(tracer.unkept.clone());
        armed = Some(tracer);
        Ok(())
    })?;
    let _hogs = hogs(args, &prepared.plan)?;
    let Some(tracer) = armed else { return Err(Failure::internal("the tracer was not armed")) };
    let (mut gaps, counts) = (GapList::new(over), tracer.reader());
    let kept = traced(prepared, tracer.reader(), over, &mut gaps, |run| counts.fill(run));
    drop((tracer, counts));
    outputs.keep(settings.map_or(Ok(()), |mut settings| settings.put_back()));
    finish(&args.flags.run, kept?, outputs, environment)
}

fn note_hogs(args: &Args, plan: &mut MeasurePlan) {
    if args.hog {
        plan.notes.push("a busy SCHED_OTHER thread runs on each measured CPU".into());
    }
}

fn hogs(args: &Args, plan: &MeasurePlan) -> Result<Option<Hogs>> {
    args.hog.then(|| Hogs::start(cpus_of(plan), latest(plan))).transpose()
}

fn cpus_of(plan: &MeasurePlan) -> impl Iterator<Item = Cpu> + '_ {
    plan.cpus.iter().map(|own| own.cpu)
}

/// Latest end of the run, including its preparation.
fn latest(plan: &MeasurePlan) -> Nanos {
    let length = plan.duration.unwrap_or_default();
    Nanos(clock::monotonic().0.saturating_add(length.0).saturating_add(60 * Nanos::SECOND.0))
}

/// Intent under SCHED_OTHER unless a policy or priority is given; all CPUs start together.
fn intent(args: &Args) -> Result<MeasureIntent> {
    let intent = args.flags.intent(&args.duration, Nanos::MILLI)?;
    let chosen = intent.policy.is_some() || intent.priority.is_some();
    let policy = if chosen { intent.policy } else { Some(Policy::Other) };
    Ok(MeasureIntent { policy, phase: SchedulePhase::Aligned, ..intent })
}

/// Length from which a gap counts, and the reason if it is not the default.
fn threshold(asked: Option<Nanos>, read: Nanos) -> Result<(Nanos, Option<String>)> {
    match asked {
        Some(over) if over.0 < read.0 * READS_AT_LEAST => Err(Failure::usage(format!(
            "invalid --over {over}: one clock read takes {read}; give {} or more, or use a faster \
             clocksource",
            Nanos(read.0 * READS_AT_LEAST)
        ))),
        Some(over) => Ok((over, None)),
        None if read.0 * READS_BY_DEFAULT <= OVER.0 => Ok((OVER, None)),
        None => {
            let over = Nanos((read.0 * READS_BY_DEFAULT + 999) / 1_000 * 1_000);
            let note = format!("gaps count from {over}, because one clock read takes {read}");
            Ok((over, Some(note)))
        }
    }
}

/// Ensures that a CPU remains for the housekeeping thread, and for a shell that could stop the
/// threads, if these have a real-time policy.
pub(super) fn leave_a_cpu(plan: &mut MeasurePlan, machine: &MachineCpus, all: bool) -> Result<()> {
    let measured: CpuSet = plan.cpus.iter().map(|own| own.cpu).collect();
    if plan.policy == Policy::Other || !plan.housekeeping.without(&measured).is_empty() {
        return Ok(());
    }
    let own = plan.housekeeping.iter().find(|&cpu| !machine.isolated.contains(cpu));
    match own.filter(|_| all && plan.cpus.len() > 1) {
        Some(left) => {
            plan.cpus.retain(|own| own.cpu != left);
            plan.housekeeping = [left].into_iter().collect();
            plan.notes.clear();
            plan.notes.push(format!("CPU {left} is reserved for onbeat's own thread and other tasks"));
            Ok(())
        }
        None => {
            let elsewhere = if measured.len() > 1 { "exclude a CPU with -a, or " } else { "" };
            Err(Failure::usage(format!(
                "SCHED_{} threads that never sleep on CPUs {measured} leave no CPU for onbeat's own thread \
                 and a shell to stop them: {elsewhere}use SCHED_OTHER with -p 0",
                plan.policy.name().to_uppercase()
            )))
        }
    }
}

/// Refuses a long run that the kernel would not stop.
pub(super) fn refuse_without_end(plan: &MeasurePlan, host: &Host) -> Result<()> {
    let throttled = host.rt_runtime_us.is_some_and(|runtime| runtime >= 0);
    let served = host.fair_server_runtime_ns.is_some_and(|runtime| runtime > 0);
    let short = plan.duration.is_some_and(|duration| duration <= UNTHROTTLED);
    if plan.policy == Policy::Other || throttled || served || short {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "real-time throttling is off (kernel.sched_rt_runtime_us), so a thread that never sleeps would keep \
         kernel threads off its CPU: use -D {UNTHROTTLED} or less, or SCHED_OTHER with -p 0"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{self, CpuChoice};
    use model::vocabulary::{IdleStates, WakeMechanism};

    fn spun(cpus: &str, online: &str, policy: Policy, seconds: i64) -> (MeasurePlan, MachineCpus) {
        let set = |text: &str| CpuSet::parse(text).expect("a list");
        let intent = MeasureIntent {
            cpus: CpuChoice::Only(set(cpus)),
            interval: Nanos::MILLI,
            distance: Nanos(0),
            policy: Some(policy),
            priority: None,
            reservation: None,
            wake: WakeMechanism::Nanosleep,
            phase: SchedulePhase::Aligned,
            idle: Some(IdleStates::AsIs),
            duration: Some(Nanos(seconds * 1_000_000_000)),
            loops: None,
            limit: None,
            housekeeping: None,
            threads: None,
        };
        let machine = MachineCpus {
            online: set(online),
            inherited: set(online),
            permitted: set(online),
            ..MachineCpus::default()
        };
        (plan::plan(&intent, &machine, 1).expect("a plan"), machine)
    }

    #[test]
    fn a_real_time_thread_that_never_sleeps_leaves_a_cpu() {
        let left = |cpus: &str, online: &str, policy, all| {
            let (mut plan, machine) = spun(cpus, online, policy, 1);
            leave_a_cpu(&mut plan, &machine, all).map(|()| {
                let measured: CpuSet = plan.cpus.iter().map(|own| own.cpu).collect();
                (measured.to_string(), plan.housekeeping.to_string())
            })
        };
        assert_eq!(left("0-3", "0-3", Policy::Other, true).expect("shares"), ("0-3".into(), "0-3".into()));
        assert_eq!(left("0-3", "0-3", Policy::Fifo, true).expect("one left"), ("1-3".into(), "0".into()));
        assert_eq!(left("1", "0-1", Policy::Fifo, false).expect("one left"), ("1".into(), "0".into()));
        for (cpus, online, all) in [("0-3", "0-3", false), ("0", "0", true), ("0", "0", false)] {
            let failure = left(cpus, online, Policy::Rr, all).expect_err("refused");
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.message.contains("-p 0"), "{}", failure.message);
            assert_eq!(failure.message.contains("-a"), cpus == "0-3", "{}", failure.message);
        }
    }

    #[test]
    fn without_throttling_it_ends_soon() {
        let host =
            |rt_runtime_us, fair| Host { rt_runtime_us, fair_server_runtime_ns: fair, ..Host::default() };
        let refused = |policy, seconds, host: &Host| {
            refuse_without_end(&spun("1", "0-1", policy, seconds).0, host).is_err()
        };
        assert!(
            refused(Policy::Fifo, 11, &host(Some(-1), None)) && refused(Policy::Fifo, 11, &host(None, None))
        );
        assert!(refused(Policy::Fifo, 11, &host(Some(-1), Some(0))));
        assert!(!refused(Policy::Fifo, 10, &host(Some(-1), None)));
        assert!(!refused(Policy::Fifo, 99, &host(Some(950_000), None)));
        assert!(!refused(Policy::Fifo, 99, &host(Some(-1), Some(50_000_000))));
        assert!(!refused(Policy::Other, 99, &host(Some(-1), None)));
    }

    #[test]
    fn a_gap_is_longer_than_reading_the_clock_takes() {
        let over = |asked: Option<i64>, read| threshold(asked.map(Nanos), Nanos(read));
        assert_eq!(over(None, 25).expect("usual"), (Nanos(1_000), None));
        let (slow, why) = over(None, 700).expect("more");
        assert!(slow == Nanos(3_000) && why.is_some_and(|why| why.contains("700 ns")));
        assert_eq!(over(Some(50), 25).expect("asked").0, Nanos(50));
        let failure = over(Some(1_000), 700).expect_err("no gap");
        assert!(failure.exit == Exit::Usage && failure.message.contains("1.40 us"), "{}", failure.message);
    }
}
