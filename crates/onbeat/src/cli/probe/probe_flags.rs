//! Flags that the probes share: those of `measure` that apply to them.

use crate::cli::flags::{keyword, positive_span, span};
use crate::cli::load_flags::LoadFlags;
use crate::cli::run_flags::{RunFlags, ThreadFlags};
use crate::cli::running::WantedRun;
use crate::plan::intent::MeasureIntent;
use model::error::Result;
use model::units::{Bare, Nanos};
use model::vocabulary::{Command, IdleStates, SchedulePhase, WakeMechanism};

/// On which CPUs, how long, with which priority, and where the result goes.
#[derive(clap::Args)]
pub struct ProbeFlags {
    #[command(flatten)]
    pub threads: ThreadFlags,
    #[command(flatten)]
    pub run: RunFlags,
    #[command(flatten)]
    pub load: LoadFlags,
}

/// What the probes of two threads have besides.
#[derive(clap::Args)]
pub struct PairFlags {
    /// Samples per CPU; the run ends early when they are complete
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    pub loops: Option<u64>,
    /// Idle states during the run [default: held]
    #[arg(long, value_name = "HOW", value_parser = keyword::<IdleStates>())]
    pub idle: Option<IdleStates>,
}

impl ProbeFlags {
    /// The intent of the flags, for a probe of this duration.
    pub fn intent(&self, duration: &str, interval: Nanos) -> Result<MeasureIntent> {
        self.threads.no_reservation("this probe")?;
        self.any_intent(duration, interval)
    }

    /// The same, with any policy.
    pub fn any_intent(&self, duration: &str, interval: Nanos) -> Result<MeasureIntent> {
        Ok(MeasureIntent {
            cpus: self.threads.cpu_choice()?,
            interval,
            distance: Nanos(0),
            policy: self.threads.policy()?,
            priority: self.threads.priority(),
            reservation: None,
            wake: WakeMechanism::Nanosleep,
            phase: SchedulePhase::Staggered,
            idle: Some(IdleStates::AsIs),
            duration: Some(positive_span("-D", duration, Bare::Seconds)?),
            loops: None,
            limit: self.run.limit()?,
            housekeeping: self.run.housekeeping()?,
            threads: None,
        })
    }

    /// The run of a probe; `title` is that of the live view.
    pub fn wanted<'a>(&'a self, intent: MeasureIntent, title: &'a str) -> Result<WantedRun<'a>> {
        Ok(WantedRun {
            intent,
            output: self.run.output.clone(),
            quiet: self.run.quiet,
            command: Command::Probe,
            title: Some(title),
            load: Some(&self.load),
            labels: self.run.labels()?,
        })
    }

    /// The intent for a probe with pairs of threads.
    pub fn pair_intent(&self, duration: &str, interval: &str, pairs: &PairFlags) -> Result<MeasureIntent> {
        let interval = span("-i", interval, Bare::Micros)?;
        let intent = self.intent(duration, interval)?;
        Ok(MeasureIntent { idle: pairs.idle, loops: pairs.loops.filter(|&loops| loops > 0), ..intent })
    }
}
