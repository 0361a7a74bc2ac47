//! The flags that `measure`, `hunt` and the probes have in common.

use std::path::PathBuf;

use super::flags::{cpu_list, keyword, labels, span};
use super::run_text::Detail;
use crate::plan::intent::CpuChoice;
use model::error::Result;
use model::labels::Labels;
use model::units::{Bare, CpuSet, Nanos};
use model::vocabulary::Policy;

/// On which CPUs, and under which policy.
#[derive(clap::Args)]
pub struct ThreadFlags {
    /// CPUs to measure, like 0-3,8; `!0` leaves CPU 0 out; all by default
    #[arg(short = 'a', long = "affinity", value_name = "CPUS")]
    #[arg(num_args = 0..=1, default_missing_value = "all")]
    #[arg(help_heading = "What is measured")]
    pub cpus: Option<String>,
    /// Priority, 1 to 99; 0 is SCHED_OTHER; 80 by default where it is permitted
    #[arg(short, long, value_name = "N", allow_negative_numbers = true)]
    #[arg(help_heading = "What is measured")]
    pub priority: Option<u32>,
    /// Scheduling policy
    #[arg(long, value_name = "POLICY", ignore_case = true, value_parser = keyword::<Policy>())]
    #[arg(help_heading = "What is measured")]
    pub policy: Option<Policy>,
}

/// When a run stops, where onbeat's own thread is, and where the result goes.
#[derive(clap::Args)]
pub struct RunFlags {
    /// Stop at a sample this long, with exit code 3; a bare number is in us
    #[arg(short, long = "breaktrace", value_name = "SPAN", allow_hyphen_values = true)]
    #[arg(help_heading = "When it stops")]
    breaktrace: Option<String>,
    /// CPUs for onbeat's own thread; off the measured ones by default, where there are others
    #[arg(long, visible_alias = "mainaffinity", value_name = "CPUS")]
    #[arg(help_heading = "What is measured")]
    housekeeping: Option<String>,
    /// The folder to keep the run in; by default under ~/.local/state/onbeat/runs
    #[arg(short, long, value_name = "DIR")]
    #[arg(help_heading = "What it writes")]
    pub output: Option<PathBuf>,
    /// What the run belongs to, as build=123; may be given several times, at most 16
    #[arg(long, value_name = "LABEL")]
    #[arg(help_heading = "What it writes")]
    label: Vec<String>,
    /// No progress, and of the result the numbers without the remarks
    #[arg(short, long)]
    #[arg(help_heading = "What it writes")]
    pub quiet: bool,
    /// All conditions, what measuring cost, and what the recorder says of itself
    #[arg(short, long, conflicts_with = "quiet")]
    #[arg(help_heading = "What it writes")]
    verbose: bool,
    /// Write run.json there too; `-` is standard output, which then holds nothing else
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = "What it writes")]
    pub json: Option<PathBuf>,
}

impl ThreadFlags {
    /// The CPUs of `-a`.
    pub fn cpu_choice(&self) -> Result<CpuChoice> {
        match self.cpus.as_deref().map(str::trim) {
            None | Some("all") => Ok(CpuChoice::All),
            Some(text) => match text.strip_prefix('!') {
                Some(left_out) => cpu_list("-a", left_out).map(CpuChoice::AllBut),
                None => cpu_list("-a", text).map(CpuChoice::Only),
            },
        }
    }
}

impl RunFlags {
    /// How much of the result is printed.
    pub fn detail(&self) -> Detail {
        Detail::of(self.quiet, self.verbose)
    }

    pub fn limit(&self) -> Result<Option<Nanos>> {
        self.breaktrace.as_deref().map(|text| span("-b", text, Bare::Micros)).transpose()
    }

    pub fn labels(&self) -> Result<Labels> {
        labels(&self.label)
    }

    pub fn housekeeping(&self) -> Result<Option<CpuSet>> {
        self.housekeeping.as_deref().map(|text| cpu_list("--housekeeping", text)).transpose()
    }
}
