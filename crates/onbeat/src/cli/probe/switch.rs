//! `onbeat probe switch`.

use std::sync::Arc;

use super::probe_flags::{PairFlags, ProbeFlags};
use super::{finish, measured};
use crate::cli::Environment;
use crate::cli::outputs::Outputs;
use crate::cli::running::prepare_run;
use crate::plan::ProbePlan;
use crate::probe::switch::Switch;
use model::error::{Exit, Result};
use model::vocabulary::Probe;

/// Measure context switches between two threads on one CPU
///
/// Two threads of the same priority on one CPU wake each other with a futex. A sample is half of a
/// round trip: one FUTEX_WAKE, one FUTEX_WAIT, one context switch, and half a clock read; nothing
/// is subtracted. The threads make 32 round trips in a row, then both sleep to keep the average
/// rate. The first round trip after a sleep finds cold caches, and accounts for most of the largest
/// values.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat probe switch                          each CPU, 10 s\n  \
        onbeat probe switch -a 1 -p 98 -l 100000     100,000 switches on one CPU")]
pub struct Args {
    #[command(flatten)]
    flags: ProbeFlags,
    /// Duration; a bare number is in seconds
    #[arg(short = 'D', long, value_name = "SPAN", default_value = "10s", allow_hyphen_values = true)]
    duration: String,
    /// Average time between samples; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "50us", allow_hyphen_values = true)]
    interval: String,
    #[command(flatten)]
    pairs: PairFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let outputs = Outputs::of(&[&args.flags.run.json], environment)?;
    let wanted = args
        .flags
        .wanted(args.flags.pair_intent(&args.duration, &args.interval, &args.pairs)?, "switches")?;
    let prepared = prepare_run(wanted, environment, |plan, _, _| {
        plan.probe = Some(ProbePlan::of(Probe::Switch));
        Ok(())
    })?;
    let kept = measured(prepared, Arc::new(Switch), None, |_| ())?;
    finish(&args.flags.run, kept, outputs, environment)
}
