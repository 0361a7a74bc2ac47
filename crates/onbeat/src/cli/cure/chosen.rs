//! What the flags and the machine decide about a cure before its first run.

use std::path::Path;

use super::Args;
use crate::cli::Environment;
use crate::cli::flags::{cpu_list, limit, positive_span, span};
use crate::cli::prove::chosen::{load_cpus, segment_length};
use experiment::cure::{AROUND, long_run};
use host::{random_u64, rt};
use model::cure::{CurePlan, CureRun};
use model::error::{Exit, Failure, Result};
use model::text::quoted;
use model::units::{Bare, CpuSet, Nanos};
use study::tuning::boot_id;

/// What is fixed.
pub struct ChosenCure {
    pub plan: CurePlan,
    pub cpus: CpuSet,
}

/// From the flags.
pub fn chosen(args: &Args, environment: &Environment) -> Result<ChosenCure> {
    let Some(limit_text) = &args.limit else {
        return Err(Failure::usage("--limit is missing: name the latency that wake-ups are not to reach"));
    };
    let limit_ns = limit(limit_text)?;
    let permitted = rt::affinity().map_err(|error| {
        let what = "this process's CPUs cannot be read";
        Failure::of_call(what, &error, Exit::Internal, "name some with -a")
    })?;
    let cpus = match args.cpus.as_deref() {
        Some(text) => cpu_list("-a", text)?,
        None => permitted.clone(),
    };
    if let Some(other) = cpus.without(&permitted).iter().next() {
        return Err(Failure::usage(format!(
            "-a: CPU {other} is off or not permitted to this process: name some of {permitted}"
        )));
    }
    let load_cpus = load_cpus(&args.load, &permitted, &cpus, environment)?;
    let segment = args.segment.as_deref().map(|text| segment_length("--segment", text)).transpose()?;
    let plan = CurePlan {
        limit_ns,
        horizon_ns: positive_span("--horizon", &args.horizon, Bare::Seconds)?,
        at_most_ns: positive_span("--for", &args.at_most, Bare::Seconds)?,
        cpus: cpus.to_string(),
        load: args.load.loads.join(","),
        load_cpus: load_cpus.map_or_else(String::new, |cpus| cpus.to_string()),
        interval_ns: positive_span("-i", &args.interval, Bare::Micros)?,
        priority: args.priority,
        look_ns: segment_length("--look", &args.look)?,
        hunt_ns: segment_length("--hunt", &args.hunt)?,
        segment_ns: segment.unwrap_or_default(),
        settle_ns: span("--settle", &args.settle, Bare::Seconds)?,
        seed: args.seed.unwrap_or_else(|| random_u64() >> 32),
        yes: args.yes,
    };
    require_time(&plan)?;
    Ok(ChosenCure { plan, cpus })
}

/// A clean run of less than three horizons supports nothing of one.
fn require_time(plan: &CurePlan) -> Result<()> {
    let around = Nanos(plan.look_ns.0.saturating_add(2 * AROUND.0));
    let least = Nanos(long_run(plan.horizon_ns).0.saturating_add(around.0));
    if plan.at_most_ns >= least {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--for: {} is too short: a horizon of {} takes {} of clean running, {} in all: ask for more time, or \
         for a shorter --horizon",
        plan.at_most_ns.spoken(),
        plan.horizon_ns.spoken(),
        long_run(plan.horizon_ns).spoken(),
        least.spoken()
    )))
}

/// From a record: everything that is fixed stays.
pub fn resumed(record: &CureRun) -> Result<ChosenCure> {
    let other = |what: &str| Failure::usage(format!("--resume: {what}: begin a cure of its own"));
    let kernel = host::release();
    if record.kernel != kernel {
        return Err(other(&format!(
            "it was begun on kernel {}, and this is {}",
            quoted(Path::new(&record.kernel)),
            quoted(Path::new(&kernel))
        )));
    }
    // Nothing that was kept outlasts a boot.
    if record.boot != boot_id()? && record.kept() > 0 {
        return Err(other("the machine was booted since, and nothing of what was kept is in force"));
    }
    if record.held {
        return Err(other("it has ended, and the limit is held"));
    }
    let cpus = CpuSet::parse(&record.plan.cpus).map_err(|_| other("its record names no CPUs"))?;
    Ok(ChosenCure { plan: record.plan.clone(), cpus })
}
