//! Parameters of a cure, from the flags and the machine, before its first run.

use super::Args;
use crate::cli::Environment;
use crate::cli::condition_flags::{require_kernel, run_length};
use crate::cli::flags::positive_span;
use experiment::cure::{around, long_run};
use model::cure::{CurePlan, CureRun};
use model::error::{Failure, Result};
use model::experiment::CountedUnit;
use model::units::{Bare, CpuSet, Nanos};
use study::tuning::boot_id;

/// Fixed parameters.
pub struct ChosenCure {
    pub plan: CurePlan,
    pub cpus: CpuSet,
}

/// Parameters from the flags.
pub fn chosen(args: &Args, environment: &Environment) -> Result<ChosenCure> {
    let (conditions, cpus) = args.conditions.plan(environment)?;
    if conditions.counted() == CountedUnit::Cycles && !args.conditions.names_cpus() {
        return Err(Failure::usage(
            "-a is missing: give the CPUs of the program's real-time threads, from which other work is moved \
             away",
        ));
    }
    let plan = CurePlan {
        limit_ns: conditions.limit_ns,
        horizon_ns: positive_span("--horizon", &args.horizon, Bare::Seconds)?,
        at_most_ns: positive_span("--for", &args.at_most, Bare::Seconds)?,
        cpus: conditions.cpus,
        load: conditions.load,
        load_cpus: conditions.load_cpus,
        interval_ns: conditions.interval_ns,
        priority: conditions.priority,
        look_ns: run_length("--look", &args.look)?,
        hunt_ns: run_length("--hunt", &args.hunt)?,
        segment_ns: conditions.segment_ns,
        settle_ns: conditions.settle_ns,
        settle_trial_ns: conditions.settle_trial_ns,
        seed: conditions.seed,
        yes: args.yes,
        victim: conditions.victim,
        program: conditions.program,
    };
    require_time(&plan)?;
    Ok(ChosenCure { plan, cpus })
}

/// Refuses a time that is too short: a clean run of less than three horizons supports nothing.
fn require_time(plan: &CurePlan) -> Result<()> {
    let around = Nanos(plan.look_ns.0.saturating_add(2 * around(plan.counted()).0));
    let least = Nanos(long_run(plan.horizon_ns).0.saturating_add(around.0));
    if plan.at_most_ns >= least {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "invalid --for: {} is too short. A horizon of {} needs a clean run of {}, {} in total; increase \
         --for or reduce --horizon",
        plan.at_most_ns.spoken(),
        plan.horizon_ns.spoken(),
        long_run(plan.horizon_ns).spoken(),
        least.spoken()
    )))
}

/// Parameters from a record, all of them unchanged.
pub fn resumed(record: &CureRun) -> Result<ChosenCure> {
    let other = |what: &str| Failure::usage(format!("--resume: {what}: start a new cure"));
    require_kernel(&record.kernel, "start a new cure")?;
    // Kept changes do not outlast a boot.
    if record.boot != boot_id()? && record.kept_changes() > 0 {
        return Err(other("the machine was rebooted, and the proven changes are no longer in force"));
    }
    if record.held {
        return Err(other("it has ended, and the limit holds"));
    }
    let cpus = CpuSet::parse(&record.plan.cpus).map_err(|_| other("its record has no CPUs"))?;
    Ok(ChosenCure { plan: record.plan.clone(), cpus })
}
