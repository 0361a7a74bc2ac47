//! `onbeat measure`: makes an intent of flags and a plan for the machine, runs it, prints a table.

use std::path::PathBuf;
use std::sync::Arc;

use super::Environment;
use super::load_flags::{self, LoadFlags};
use super::measure_flags::MeasureFlags;
use super::outputs::Outputs;
use super::run_text::run_text;
use super::running::{PreparedRun, RunSink, exit_of, prepare, unless_stopped};
use crate::measure::start;
use crate::measure::task::WakeUps;
use bundle::foreign;
use bundle::write::BundleWriter;
use host::rt;
use model::error::{Exit, Result};
use model::run::Run;
use model::text::quoted;
use model::vocabulary::Command;
use report::last_lines::RunPlace;

/// Measure the wake-up latency of each CPU
///
/// One pinned real-time thread per CPU sleeps until each slot of an absolute schedule and records
/// how late it wakes. Slots that pass while a thread is delayed are counted as missed, never
/// silently skipped. Nothing is traced, and no setting outlasts the run. The run is stored as a
/// bundle, which `onbeat report` draws. Flags have cyclictest's letters and meanings where
/// cyclictest has them.
///
/// Spans take a unit: ns us ms s m h d.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat measure -D 10s                    every CPU, 1 ms, SCHED_FIFO 80\n  onbeat measure -a 2-3 -i 200 -D 12h -q   two CPUs overnight\n  onbeat measure -D 5m -b 100us            exit code 3 at a wake-up 100 us late\n  onbeat measure -D 1m -a 1 --load mem     with a load on the other CPUs\n  onbeat measure -D 1m --wake timerfd      latency of a task that waits on a timerfd"
)]
pub struct Args {
    #[command(flatten)]
    flags: MeasureFlags,
    #[command(flatten)]
    load: LoadFlags,
    /// Write JSON in cyclictest's format
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = "Output")]
    rt_tests_json: Option<PathBuf>,
    /// Write a histogram in the text format of cyclictest -H
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = "Output")]
    hist: Option<PathBuf>,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let outputs = Outputs::of(&[&args.flags.run.json, &args.rt_tests_json, &args.hist], environment)?;
    let PreparedRun { plan, run, core_types, before, mut sink, .. } =
        prepare(&args.flags, &args.load, Command::Measure, environment, |_| Ok(()))?;
    let measured = start::measure(plan, run, &core_types, Arc::new(WakeUps), &mut sink, None);
    rt::release_code_pages(); // that of the measuring
    let RunSink { writer, live, loads, .. } = sink;
    drop(live);
    let mut run = match measured {
        Ok(run) => run,
        Err(failure) => {
            writer.discard();
            return Err(failure);
        }
    };
    run.integrity.extend(before.changes(&run));
    load_flags::end(loads, &mut run);
    finish(args, environment, &run, writer, outputs)
}

/// Prints, writes and ends; prints even if a write fails, so that no measurement is lost.
fn finish(
    args: &Args,
    environment: &Environment,
    run: &Run,
    writer: BundleWriter,
    mut outputs: Outputs,
) -> Result<Exit> {
    rt::release_code_pages(); // what looked at the machine again
    let path = writer.path().to_owned();
    let kept = writer.finish(run, &run.spikes);
    // The results are safe: Ctrl-C may end anything that takes too long from here on.
    rt::unblock_signals();
    outputs.keep(kept.map(drop));
    if outputs.prints() {
        let (path, program) = (quoted(&path), environment.program(&path));
        let place = RunPlace { path: &path, newest: args.flags.run.output.is_none(), fresh: true, program };
        outputs.print(&run_text(run, Some(place), args.flags.run.detail(), outputs.screen_now(environment)));
    }
    outputs.json(&args.flags.run.json, run);
    let context = super::context_of(run, environment, &host::node_name());
    outputs.write(&args.rt_tests_json, || foreign::cyclictest_json::write(run, &context));
    outputs.write(&args.hist, || foreign::cyclictest_hist::write(run));
    unless_stopped(exit_of(run, outputs.into_failure()))
}
