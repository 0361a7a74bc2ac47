//! `onbeat hunt --source`: onbeat's own threads, or the kernel's timerlat tracer.

use std::sync::Arc;

use super::Environment;
use super::running::RunSink;
use super::step_settings::StepSettings;
use super::tracer_files::{self, OsnoiseWish};
use crate::hunt::cross_check::CrossChecked;
use crate::hunt::found_spikes::FoundSpikes;
use crate::hunt::hunter::Hunt;
use crate::hunt::timerlat::{PRIORITY, TimerlatThreads};
use crate::measure::start;
use crate::measure::task::WakeUps;
use crate::plan::MeasurePlan;
use crate::probe::timerlat::{INSTEAD, TimerlatTracer};
use host::tracefs::Tracing;
use model::error::{Failure, Result};
use model::keyword::Word;
use model::run::Run;
use model::units::{Cpu, CpuSet, Nanos};
use model::vocabulary::{HuntSource, Policy};

/// Bounds of the timers' interval (timerlat_min_period, timerlat_max_period).
const SHORTEST: Nanos = Nanos(100_000);
const LONGEST: Nanos = Nanos(1_000_000_000);

/// Tracer of a hunt that runs, and the settings of the machine that it needs.
pub struct RunningTimerlat<'a> {
    tracer: Arc<TimerlatTracer>,
    /// Threads that measure; the tracer is their witness if they are onbeat's.
    source: HuntSource,
    interval: Nanos,
    settings: StepSettings<'a>,
}

impl<'a> RunningTimerlat<'a> {
    /// Sets the machine's files of the tracer for the plan, and starts it.
    ///
    /// # Errors
    /// The settings are refused, or the tracer is.
    pub fn start(
        tracing: Option<Tracing>,
        source: HuntSource,
        plan: &MeasurePlan,
        environment: &'a Environment,
        no_cpus: &'a CpuSet,
    ) -> Result<Option<RunningTimerlat<'a>>> {
        let Some(tracing) = tracing else { return Ok(None) };
        let interval = if source == HuntSource::Loop { drifting(plan.interval) } else { plan.interval };
        let cpus: CpuSet = plan.cpus.iter().map(|own| own.cpu).collect();
        let wish = OsnoiseWish {
            cpus: &cpus,
            over: None,
            window: None,
            irqs_off: false,
            interval: Some(interval),
            workload: true,
        };
        let files = tracer_files::of_osnoise(&tracing, &wish)?;
        let settings = tracer_files::set(environment, no_cpus, "hunt", files, INSTEAD)?;
        let tracer = Arc::new(TimerlatTracer::start(tracing, &cpus)?);
        Ok(Some(RunningTimerlat { tracer, source, interval, settings }))
    }

    /// Ends the tracer, whose last user this has to be, and restores the settings.
    ///
    /// # Errors
    /// A setting could not be restored.
    pub fn end(running: Option<RunningTimerlat>) -> Result<()> {
        let Some(RunningTimerlat { tracer, mut settings, .. }) = running else { return Ok(()) };
        drop(tracer);
        settings.put_back()
    }
}

/// Opens tracefs for a source or a witness that is a tracer.
///
/// # Errors
/// The kernel has no such tracer, another program uses it, or this user may not.
pub fn find(source: HuntSource, cross_check: bool) -> Result<Option<Tracing>> {
    (cross_check || source == HuntSource::Timerlat).then(TimerlatTracer::find).transpose()
}

/// Changes the plan to that of the tracer's threads.
///
/// # Errors
/// Wrong usage: the plan has what the tracer does not.
pub fn adjust(source: HuntSource, cross_check: bool, plan: &mut MeasurePlan) -> Result<()> {
    if source == HuntSource::Loop && !cross_check {
        return Ok(());
    }
    let instead = if cross_check { "remove --cross-check" } else { "use --source loop" };
    let refused = |what: &str| Err(Failure::usage(format!("invalid {what}, or {instead}")));
    if source == HuntSource::Timerlat && (plan.policy_explicit || plan.reservation.is_some()) {
        return refused("-p or --policy: timerlat's threads have SCHED_FIFO, priority 95; remove it");
    }
    if plan.distance.0 != 0 || plan.cpus.iter().any(|own| own.thread != 0) {
        return refused("-d or -t: timerlat has one thread per CPU, all with one interval; remove it");
    }
    if !(SHORTEST..=LONGEST).contains(&plan.interval) || plan.interval.0 % Nanos::MICRO.0 != 0 {
        return refused(&format!(
            "-i {}: timerlat's interval is 100us to 1s, in whole microseconds; give another",
            plan.interval
        ));
    }
    if cross_check {
        plan.notes.push(format!(
            "the kernel's threads timerlat/N measure the same CPUs, with priority 95 and an interval of {}: \
             no two timers stay in step, and each side delays the other where they meet",
            drifting(plan.interval)
        ));
        return Ok(());
    }
    (plan.policy, plan.priority) = (Policy::Fifo, PRIORITY);
    plan.notes.push(
        "the kernel's threads timerlat/N measure, under SCHED_FIFO with priority 95; they do not return to \
         user mode, and slots that the tracer skipped follow from the times of the others"
            .to_owned(),
    );
    Ok(())
}

/// Measures from the source, and returns the hunt's spikes.
pub fn measure(
    timerlat: Option<&RunningTimerlat>,
    plan: MeasurePlan,
    mut run: Run,
    core_types: &[String],
    sink: &mut RunSink,
    mut hunt: Hunt,
) -> (Result<Run>, FoundSpikes) {
    let Some(timerlat) = timerlat else {
        let measured = start::measure(plan, run, core_types, Arc::new(WakeUps), sink, Some(&mut hunt));
        return (measured, hunt.into_spikes());
    };
    let cpus: Vec<Cpu> = plan.cpus.iter().map(|own| own.cpu).collect();
    let (tracer, interval) = (timerlat.tracer.clone(), timerlat.interval);
    if timerlat.source == HuntSource::Loop {
        let mut checked = CrossChecked::new(&mut hunt, tracer, cpus.into_iter(), interval);
        let measured = start::measure(plan, run, core_types, Arc::new(WakeUps), sink, Some(&mut checked));
        drop(checked);
        return (measured, hunt.into_spikes());
    }
    run.plan.kind = HuntSource::Timerlat.name().to_owned();
    (run.plan.wake, run.plan.phase) = (Word::default(), Word::default());
    let mut hunt = hunt.of_threads("timerlat");
    let threads = Arc::new(TimerlatThreads::new(tracer, cpus.into_iter(), interval));
    let measured = start::measure(plan, run, core_types, threads.clone(), sink, Some(&mut hunt));
    let measured = measured.map(|mut run| {
        threads.fill(&mut run);
        run
    });
    (measured, hunt.into_spikes())
}

/// Interval near to another one, so that timers of both meet at all distances: a hundredth more, in
/// whole microseconds.
fn drifting(interval: Nanos) -> Nanos {
    let micros = interval.0 / Nanos::MICRO.0;
    Nanos((micros + (micros / 100).max(1)) * Nanos::MICRO.0).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_intervals_of_a_cross_check_differ() {
        let of = |us: i64| drifting(Nanos(us * 1_000)).0 / 1_000;
        assert_eq!([of(100), of(1_000), of(2_500)], [101, 1_010, 2_525]);
        assert_eq!(drifting(LONGEST), LONGEST);
    }
}
