//! Conditions that all runs of an experiment share, in `prove` and in `cure`: their flags, and
//! their values on this machine.

use std::path::Path;

use super::Environment;
use super::flags::{cpu_list, limit, positive_span, span};
use super::load_flags::{LoadFlags, existing};
use ::load::spec;
use experiment::design::{SETTLE, usual};
use experiment::settling::TRIAL;
use host::{MachineFiles, random_u64, rt};
use model::error::{Exit, Failure, Result};
use model::experiment::ExperimentPlan;
use model::text::quoted;
use model::units::{Bare, CpuSet, Nanos};

/// Conditions of the measurement.
#[derive(clap::Args)]
pub struct ConditionFlags {
    /// Latency that wake-ups must not reach, or a rate, whose period is the limit; a bare number is
    /// in us
    #[arg(short, long, value_name = "SPAN|RATE", allow_hyphen_values = true)]
    pub limit: Option<String>,
    /// CPUs to measure, like 2-3; all by default
    #[arg(short = 'a', long = "affinity", value_name = "CPUS")]
    cpus: Option<String>,
    /// Interval of the measuring threads; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "1ms")]
    interval: String,
    /// Priority of the measuring threads, 1 to 99; 80 by default where it is permitted
    #[arg(short, long, value_name = "N")]
    priority: Option<u32>,
    #[command(flatten)]
    load: LoadFlags,
    /// Length of each run of a pair; by default the time in which ten wake-ups are late without the
    /// change, 10 s to 60 s
    #[arg(long, value_name = "SPAN")]
    segment: Option<String>,
    /// Time skipped after each switch, until the change has settled; by default chosen from two
    /// runs after a switch in each direction, 2 s to 20 s
    #[arg(long, value_name = "SPAN")]
    settle: Option<String>,
    /// Seed for the order of the runs; drawn and printed by default
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Count late cycles of another program's threads instead of wake-ups of measuring threads;
    /// --limit is their deadline. Give a process, a thread, or a name for all threads of that name,
    /// as for `onbeat hunt`
    #[arg(long, value_name = "PID|COMM", help_heading = "Another program")]
    #[arg(conflicts_with_all = ["interval", "priority"])]
    victim: Option<String>,
    /// Program to start for each run and follow until its end, with its arguments
    #[arg(last = true, value_name = "PROGRAM")]
    #[arg(conflicts_with_all = ["victim", "interval", "priority"])]
    program: Vec<String>,
}

impl ConditionFlags {
    /// The limit, which is required.
    pub fn limit(&self) -> Result<Nanos> {
        let Some(text) = &self.limit else {
            return Err(Failure::usage("--limit is missing: give the latency that wake-ups must not reach"));
        };
        limit(text)
    }

    /// True if CPUs are given.
    pub fn names_cpus(&self) -> bool {
        self.cpus.is_some()
    }

    /// Plan without a change, and the measured CPUs.
    pub fn plan(&self, environment: &Environment) -> Result<(ExperimentPlan, CpuSet)> {
        let limit_ns = self.limit()?;
        let permitted = rt::affinity().map_err(|error| {
            let what = "cannot read the CPUs of this process";
            Failure::of_call(what, &error, Exit::Internal, "give CPUs with -a")
        })?;
        let cpus = match self.cpus.as_deref() {
            Some(text) => cpu_list("-a", text)?,
            None => permitted.clone(),
        };
        if let Some(other) = cpus.without(&permitted).iter().next() {
            return Err(Failure::usage(format!(
                "invalid -a: CPU {other} is offline or not permitted to this process; choose from {permitted}"
            )));
        }
        let load_cpus = self.load_cpus(&permitted, &cpus, environment)?;
        let segment = self.segment.as_deref().map(|text| run_length("--segment", text)).transpose()?;
        let settle = self.settle.as_deref().map(|text| span("--settle", text, Bare::Seconds)).transpose()?;
        let plan = ExperimentPlan {
            limit_ns,
            seed: self.seed.unwrap_or_else(|| random_u64() >> 32),
            segment_ns: segment.unwrap_or_default(),
            settle_ns: settle.unwrap_or(SETTLE),
            settle_trial_ns: if settle.is_some() { Nanos(0) } else { TRIAL },
            cpus: cpus.to_string(),
            load: self.load.loads.join(","),
            load_cpus: load_cpus.map_or_else(String::new, |cpus| cpus.to_string()),
            interval_ns: positive_span("-i", &self.interval, Bare::Micros)?,
            priority: self.priority,
            victim: self.victim.clone().unwrap_or_default(),
            program: self.program.clone(),
            ..usual()
        };
        Ok((plan, cpus))
    }

    /// CPUs of the load; none without a load.
    fn load_cpus(
        &self,
        permitted: &CpuSet,
        measured: &CpuSet,
        environment: &Environment,
    ) -> Result<Option<CpuSet>> {
        if self.load.loads.is_empty() {
            return Ok(None);
        }
        let specs =
            spec::parse(&self.load.loads).map_err(|what| Failure::usage(format!("--load: {what}")))?;
        let cpus = self.load.cpus()?.unwrap_or_else(|| permitted.without(measured));
        if cpus.is_empty() {
            return Err(Failure::usage(
                "all CPUs are measured, so no CPU is left for the load: give CPUs with --load-cpus, or \
                 measure fewer with -a",
            ));
        }
        ::load::running::plan(specs, &cpus, &existing(&environment.runs()))?;
        Ok(Some(cpus))
    }
}

/// Length of a run, at least two blocks: a shorter one has no halves.
pub fn run_length(flag: &str, text: &str) -> Result<Nanos> {
    let length = positive_span(flag, text, Bare::Seconds)?;
    if length >= Nanos(2 * Nanos::SECOND.0) {
        Ok(length)
    } else {
        Err(Failure::usage(format!("invalid {flag}: expected 2s or more")))
    }
}

/// Fails if a CPU of the measurement or of the load is offline: further runs would be refused or
/// spoiled.
///
/// # Errors
/// Inconclusive: one is off.
pub fn require_online(measured: &CpuSet, load: &str) -> Result<()> {
    let files = MachineFiles::live();
    let read = files.read_text("/sys/devices/system/cpu/online");
    let Some(online) = read.known().and_then(|text| CpuSet::parse(text.trim()).ok()) else { return Ok(()) };
    let used = measured.or(&CpuSet::parse(load).unwrap_or_default());
    used.without(&online).iter().next().map_or(Ok(()), |cpu| {
        Err(Failure {
            exit: Exit::Inconclusive,
            message: format!(
                "CPU {cpu} went offline during the run: bring it online, then continue with --resume"
            ),
        })
    })
}

/// Refuses to resume on another kernel than the one at the beginning.
pub fn require_kernel(begun: &str, remedy: &str) -> Result<()> {
    let kernel = host::release();
    if begun == kernel {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "--resume: it was started on kernel {}, and this is {}: {remedy}",
        quoted(Path::new(begun)),
        quoted(Path::new(&kernel))
    )))
}
