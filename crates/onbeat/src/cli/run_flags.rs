//! Flags that `measure`, `hunt` and the probes share.

use std::path::PathBuf;
use std::str::FromStr;

use super::flags::{cpu_list, keyword, labels, span};
use super::outputs::remark;
use super::run_text::Detail;
use crate::plan::intent::CpuChoice;
use model::error::{Failure, Result};
use model::labels::Labels;
use model::reservation::Reservation;
use model::units::{Bare, CpuSet, Nanos};
use model::vocabulary::Policy;

/// CPUs and scheduling policy.
#[derive(clap::Args)]
pub struct ThreadFlags {
    /// CPUs to measure, like 0-3,8; `!0` excludes CPU 0; all by default
    #[arg(short = 'a', long = "affinity", alias = "cpus", value_name = "CPUS")]
    #[arg(num_args = 0..=1, default_missing_value = "all")]
    #[arg(help_heading = "Measurement")]
    pub cpus: Option<String>,
    /// Priority, 1 to 99; 0 is SCHED_OTHER; 80 by default where it is permitted
    #[arg(short, long, short_alias = 'P', value_name = "N", allow_negative_numbers = true)]
    #[arg(help_heading = "Measurement")]
    priority: Option<ThreadPriority>,
    /// Scheduling policy
    #[arg(long, value_name = "POLICY", ignore_case = true, value_parser = keyword::<Policy>())]
    #[arg(help_heading = "Measurement")]
    policy: Option<Policy>,
}

/// Priority, or policy and priority in the form of rtla's -P: `f:95`, `r:95`, `o:0`, `d:1ms:10ms`.
#[derive(Clone, Copy)]
struct ThreadPriority {
    policy: Option<Policy>,
    priority: u32,
    reservation: Option<Reservation>,
}

impl FromStr for ThreadPriority {
    type Err = &'static str;

    fn from_str(text: &str) -> std::result::Result<ThreadPriority, &'static str> {
        let (policy, number) = match text.split_once(':') {
            None => (None, text),
            Some(("f", number)) => (Some(Policy::Fifo), number),
            Some(("r", number)) => (Some(Policy::Rr), number),
            Some(("o", "0")) => (Some(Policy::Other), "0"),
            Some(("o", _)) => return Err("nice values are not supported: expected o:0"),
            Some(("d", spans)) => {
                let reservation = Some(Reservation::parse(spans)?);
                return Ok(ThreadPriority { policy: Some(Policy::Deadline), priority: 0, reservation });
            }
            Some(_) => {
                return Err("expected a priority, or one with its policy as f:N, r:N, o:0, d:RUNTIME:PERIOD");
            }
        };
        let priority = number.parse().map_err(|_| "expected a whole number, not below 0")?;
        Ok(ThreadPriority { policy, priority, reservation: None })
    }
}

/// Limit of a run, onbeat's own CPUs, and the outputs.
#[derive(clap::Args)]
pub struct RunFlags {
    /// Stop at a sample of this length or more, with exit code 3; a bare number is in us
    #[arg(short, long = "breaktrace", value_name = "SPAN", allow_hyphen_values = true)]
    #[arg(help_heading = "Stop condition")]
    breaktrace: Option<String>,
    /// CPUs for onbeat's own thread; by default unmeasured CPUs, if there are any
    #[arg(long, visible_alias = "mainaffinity", alias = "house-keeping", value_name = "CPUS")]
    #[arg(help_heading = "Measurement")]
    housekeeping: Option<String>,
    /// Folder for the run; by default under ~/.local/state/onbeat/runs
    #[arg(short, long, value_name = "DIR")]
    #[arg(help_heading = "Output")]
    pub output: Option<PathBuf>,
    /// Label of the run, as build=123; may be given several times, at most 16
    #[arg(long, value_name = "LABEL")]
    #[arg(help_heading = "Output")]
    label: Vec<String>,
    /// Print only the table, the answer, and the folder of the run: no progress, no details
    #[arg(short, long)]
    #[arg(help_heading = "Output")]
    pub quiet: bool,
    /// Also print all conditions, the cost of measuring, and the recorder's statistics
    #[arg(short, long, conflicts_with = "quiet")]
    #[arg(help_heading = "Output")]
    verbose: bool,
    /// Also write run.json to this file; `-` is standard output, which then holds nothing else
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = "Output")]
    pub json: Option<PathBuf>,
}

impl ThreadFlags {
    /// CPUs of `-a`.
    pub fn cpu_choice(&self) -> Result<CpuChoice> {
        match self.cpus.as_deref().map(str::trim) {
            None | Some("all") => Ok(CpuChoice::All),
            Some(text) => match text.strip_prefix('!') {
                Some(left_out) => cpu_list("-a", left_out).map(CpuChoice::AllBut),
                None => cpu_list("-a", text).map(CpuChoice::Only),
            },
        }
    }

    /// Policy of `--policy`, or of a `-p` that has one.
    ///
    /// # Errors
    /// Wrong usage: they differ.
    pub fn policy(&self) -> Result<Option<Policy>> {
        match (self.policy, self.priority.and_then(|both| both.policy)) {
            (Some(one), Some(other)) if one != other => Err(Failure::usage(format!(
                "--policy {} contradicts the policy of -p: remove one of them",
                one.name()
            ))),
            (one, other) => Ok(one.or(other)),
        }
    }

    /// Parameters of SCHED_DEADLINE.
    pub fn reservation(&self) -> Option<Reservation> {
        self.priority.and_then(|both| both.reservation)
    }

    /// Refuses SCHED_DEADLINE, for commands whose threads need a priority.
    pub fn no_reservation(&self, command: &str) -> Result<Option<Reservation>> {
        match self.reservation() {
            None => Ok(None),
            Some(_) => Err(Failure::usage(format!(
                "-P d:RUNTIME:PERIOD is for measure, hunt and probe deadline: give {command} a priority with \
                 -p"
            ))),
        }
    }

    pub fn priority(&self) -> Option<u32> {
        self.priority.map(|both| both.priority)
    }

    /// Prints a line for rtla's form of a priority, with that of onbeat.
    pub fn mention_policy(&self) {
        let Some(ThreadPriority { policy: Some(policy), priority, reservation: None }) = self.priority else {
            return;
        };
        let of = if policy == Policy::Rr { "--policy rr " } else { "" };
        let letter = &policy.name()[..1];
        remark(&format!("onbeat: rtla's {letter}:{priority} means {of}-p {priority}"));
    }
}

impl RunFlags {
    /// Amount of output.
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
