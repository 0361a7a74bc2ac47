//! The flags that the probes share: those of `measure`, as far as they mean something here.

use std::path::PathBuf;

use crate::cli::flags::{cpu_list, keyword, positive_span, span};
use crate::cli::measure_flags::cpu_choice;
use crate::plan::intent::{CpuChoice, MeasureIntent};
use model::error::Result;
use model::units::{Bare, Nanos};
use model::vocabulary::{IdleStates, Policy, SchedulePhase, WakeMechanism};

/// On which CPUs, how long, with which priority, and where the result goes.
#[derive(clap::Args)]
pub struct ProbeFlags {
    /// CPUs to measure, like 0-3,8; `!0` leaves CPU 0 out; all by default
    #[arg(short = 'a', long = "affinity", value_name = "CPUS")]
    #[arg(num_args = 0..=1, default_missing_value = "all")]
    pub cpus: Option<String>,
    /// Priority, 1 to 99; 0 is SCHED_OTHER
    #[arg(short, long, value_name = "N")]
    pub priority: Option<u32>,
    /// Scheduling policy
    #[arg(long, value_name = "POLICY", ignore_case = true, value_parser = keyword::<Policy>())]
    pub policy: Option<Policy>,
    /// Stop at a sample this long, with exit code 3; a bare number is in us
    #[arg(short, long = "breaktrace", value_name = "SPAN", allow_hyphen_values = true)]
    breaktrace: Option<String>,
    /// CPUs for onbeat's own thread; off the measured ones by default, where there are others
    #[arg(long, visible_alias = "mainaffinity", value_name = "CPUS")]
    housekeeping: Option<String>,
    /// The folder to keep the run in; by default under ~/.local/state/onbeat/runs
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// No progress, and of the result the numbers without the remarks
    #[arg(short, long)]
    pub quiet: bool,
    /// Write run.json there too; `-` is standard output, which then holds nothing else
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What the probes of two threads have besides.
#[derive(clap::Args)]
pub struct PairFlags {
    /// How many samples per CPU, if they are enough before the time is over
    #[arg(short, long, value_name = "N")]
    pub loops: Option<u64>,
    /// Idle states during the run [default: held]
    #[arg(long, value_name = "HOW", value_parser = keyword::<IdleStates>())]
    pub idle: Option<IdleStates>,
}

impl ProbeFlags {
    /// The flags as intent, of a probe that lasts so long.
    pub fn intent(&self, duration: &str, interval: Nanos) -> Result<MeasureIntent> {
        Ok(MeasureIntent {
            cpus: self.cpu_choice()?,
            interval,
            distance: Nanos(0),
            policy: self.policy,
            priority: self.priority,
            wake: WakeMechanism::Nanosleep,
            phase: SchedulePhase::Staggered,
            idle: Some(IdleStates::AsIs),
            duration: Some(positive_span("-D", duration, Bare::Seconds)?),
            loops: None,
            limit: self.breaktrace.as_deref().map(|text| span("-b", text, Bare::Micros)).transpose()?,
            housekeeping: self
                .housekeeping
                .as_deref()
                .map(|text| cpu_list("--housekeeping", text))
                .transpose()?,
            threads: None,
        })
    }

    /// The same of a probe of two threads.
    pub fn pair_intent(&self, duration: &str, interval: &str, pairs: &PairFlags) -> Result<MeasureIntent> {
        let interval = span("-i", interval, Bare::Micros)?;
        let intent = self.intent(duration, interval)?;
        Ok(MeasureIntent { idle: pairs.idle, loops: pairs.loops.filter(|&loops| loops > 0), ..intent })
    }

    fn cpu_choice(&self) -> Result<CpuChoice> {
        cpu_choice(self.cpus.as_deref())
    }
}
