//! `onbeat probe switch`.

use std::sync::Arc;

use super::probe_flags::{PairFlags, ProbeFlags};
use super::{KeptRun, measured};
use crate::cli::Environment;
use crate::cli::outputs::Outputs;
use crate::cli::running::{WantedRun, exit_of, prepare_run, unless_stopped};
use crate::plan::ProbePlan;
use crate::probe::switch::Switch;
use host::rt;
use model::error::{Exit, Result};
use model::text::quoted;
use model::vocabulary::{Command, Probe};
use report::run::table;

/// Measure a switch between two threads on one CPU
///
/// Two threads of one priority on a CPU hand over to each other by a futex. A sample is half of the
/// way there and back: one FUTEX_WAKE, one FUTEX_WAIT, one switch, and half a read of the clock;
/// nothing is subtracted. 32 round trips follow each other, then both sleep until their time on
/// average is up: the first of each 32 finds the caches as the sleep left them, and is most of the
/// largest values.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat probe switch                          each CPU, 10 s\n  \
        onbeat probe switch -a 1 -p 98 -l 100000     100,000 hand-overs on one CPU")]
pub struct Args {
    #[command(flatten)]
    flags: ProbeFlags,
    /// How long; a bare number is in seconds
    #[arg(short = 'D', long, value_name = "SPAN", default_value = "10s", allow_hyphen_values = true)]
    duration: String,
    /// How far apart samples are on average; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "50us", allow_hyphen_values = true)]
    interval: String,
    #[command(flatten)]
    pairs: PairFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let outputs = Outputs::of(&[&args.flags.run.json], environment)?;
    let wanted = WantedRun {
        intent: args.flags.pair_intent(&args.duration, &args.interval, &args.pairs)?,
        output: args.flags.run.output.clone(),
        quiet: args.flags.run.quiet,
        command: Command::Probe,
        title: Some("switches"),
        load: Some(&args.flags.load),
        labels: args.flags.run.labels()?,
    };
    let prepared = prepare_run(wanted, environment, |plan, _, _| {
        plan.probe = Some(ProbePlan::of(Probe::Switch));
        Ok(())
    })?;
    let kept = measured(prepared, Arc::new(Switch), None, Vec::new)?;
    finish(args, kept, outputs)
}

fn finish(args: &Args, kept: KeptRun, mut outputs: Outputs) -> Result<Exit> {
    let KeptRun { run, path } = kept;
    rt::unblock_signals();
    let kept_in = path.as_ref().ok().map(quoted);
    outputs.keep(path.map(drop));
    if outputs.prints() {
        let render = if args.flags.run.quiet { table::brief } else { table::render };
        let mut text = render(&run, outputs.screen.columns, outputs.screen.color);
        if let Some(path) = kept_in {
            text.push_str(&format!("kept in {path}; draw it: onbeat report {path} -o switch.html\n"));
        }
        outputs.print(&text);
    }
    outputs.json(&args.flags.run.json, &run);
    unless_stopped(exit_of(&run, outputs.into_failure()))
}
