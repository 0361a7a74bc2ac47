//! `onbeat probe`: measurements of delays that a timer does not show.

mod deadline;
mod hw;
mod ipc;
mod irq;
mod irq_outside;
mod irq_sources;
mod migrate;
mod net;
mod net_serve;
mod pi;
mod probe_flags;
mod spin;
mod switch;

pub use net::no_namespaces;

use std::path::PathBuf;
use std::sync::Arc;

use super::Environment;
use super::load_flags;
use super::outputs::Outputs;
use super::run_flags::RunFlags;
use super::run_text::run_text;
use super::running::{PreparedRun, RunSink, exit_of, unless_stopped};
use crate::measure::hunter::Hunter;
use crate::measure::integrity::entry;
use crate::measure::start;
use crate::measure::task::ThreadBody;
use crate::probe::gap_list::GapList;
use crate::probe::traced::{GapReader, TracedGaps};
use host::rt;
use model::error::{Exit, Failure, Result};
use model::run::Run;
use model::text::quoted;
use model::units::Nanos;
use model::vocabulary::IntegrityKind;
use report::last_lines::RunPlace;

/// Measure latencies that no timer shows: gaps, signalling, context switches
///
/// A wake-up only shows delays at the moment of the wake-up. `spin` sees everything that takes a
/// CPU away, `ipc` measures signalling from one thread to another, `switch` the cost of a context
/// switch; `pi` tests that the kernel resolves priority inversions, `migrate` that it runs the
/// threads with the highest priorities; `deadline` measures the jobs of SCHED_DEADLINE threads,
/// `net` round trips of packets, `irq` the way from a hardware event to a thread, and `hw` finds what
/// firmware and hardware take. Runs are stored as
/// bundles, which `onbeat report`, `bounds` and `compare` read like those of `measure`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat probe spin -a 1 -D 30s                everything that takes time from CPU 1\n  \
        onbeat probe spin -a 1 -p 1 --over 20us      as seen by a real-time task\n  \
        onbeat probe ipc futex pipe -a 0-1           on one CPU, and between two\n  \
        onbeat probe switch -a 1                     context switches between two threads\n  \
        onbeat probe pi                              priority inheritance on each CPU\n  \
        onbeat probe migrate                         more real-time threads than CPUs\n  \
        onbeat probe deadline                        jobs of SCHED_DEADLINE threads\n  \
        onbeat probe net                             packets between two network namespaces\n  \
        onbeat probe irq                             from an interrupt to the thread\n  \
        onbeat probe hw                              what firmware and hardware take")]
pub struct Args {
    #[command(subcommand)]
    command: ProbeCommand,
}

#[derive(clap::Subcommand)]
enum ProbeCommand {
    Spin(spin::Args),
    Ipc(ipc::Args),
    Switch(switch::Args),
    Pi(pi::Args),
    Migrate(migrate::Args),
    Deadline(deadline::Args),
    Net(net::Args),
    Hw(hw::Args),
    Irq(irq::Args),
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    match &args.command {
        ProbeCommand::Spin(args) => spin::run(args, environment),
        ProbeCommand::Ipc(args) => ipc::run(args, environment),
        ProbeCommand::Switch(args) => switch::run(args, environment),
        ProbeCommand::Pi(args) => pi::run(args, environment),
        ProbeCommand::Migrate(args) => migrate::run(args, environment),
        ProbeCommand::Deadline(args) => deadline::run(args, environment),
        ProbeCommand::Net(args) => net::run(args, environment),
        ProbeCommand::Hw(args) => hw::run(args, environment),
        ProbeCommand::Irq(args) => irq::run(args, environment),
    }
}

/// Prints the run with its answer, writes and ends.
fn finish(flags: &RunFlags, kept: KeptRun, outputs: Outputs, environment: &Environment) -> Result<Exit> {
    finish_unless(flags, kept, outputs, environment, None)
}

/// Like [`finish`]; ends with the failure of the run, if there is one.
fn finish_unless(
    flags: &RunFlags,
    kept: KeptRun,
    mut outputs: Outputs,
    environment: &Environment,
    failure: Option<Failure>,
) -> Result<Exit> {
    let KeptRun { run, path, kept } = kept;
    rt::unblock_signals();
    outputs.keep(kept);
    if outputs.prints() {
        let (path, program) = (quoted(&path), environment.program(&path));
        let place = RunPlace { path: &path, newest: flags.output.is_none(), fresh: true, program };
        outputs.print(&run_text(&run, Some(place), flags.detail(), outputs.screen));
    }
    outputs.json(&flags.json, &run);
    unless_stopped(exit_of(&run, outputs.into_failure().or(failure)))
}

/// Run with its bundle.
struct KeptRun {
    run: Run,
    /// Path of its bundle.
    path: PathBuf,
    /// Error if the bundle could not be written in full.
    kept: Result<()>,
}

/// Measures, and writes the bundle; `complete` adds results of the probe at the end of the run.
fn measured(
    prepared: PreparedRun,
    body: Arc<dyn ThreadBody>,
    hunter: Option<&mut dyn Hunter>,
    complete: impl FnOnce(&mut Run),
) -> Result<KeptRun> {
    let PreparedRun { plan, run, core_types, before, mut sink, machine, .. } = prepared;
    let spins = hunter.is_some();
    let measured = start::measure(plan, run, &core_types, body, &mut sink, hunter);
    rt::release_code_pages(); // that of the measuring
    let RunSink { writer, live, loads, .. } = sink;
    drop(live);
    // The next measurement chooses among the CPUs that onbeat was started on.
    let _ = rt::pin(&machine.inherited);
    let mut run = match measured {
        Ok(run) => run,
        Err(failure) => {
            writer.discard();
            return Err(failure);
        }
    };
    load_flags::end(loads, &mut run);
    run.integrity.extend(before.changes(&run));
    complete(&mut run);
    for entry in run.integrity.iter_mut().filter(|entry| spins && entry.kind == IntegrityKind::Throttled) {
        // A thread that never sleeps is meant to show it.
        entry.invalidates = false;
    }
    let path = writer.path().to_owned();
    let kept = writer.finish(&run, &run.spikes).map(drop);
    Ok(KeptRun { run, path, kept })
}

/// Measures with a tracer of the kernel, which has no measuring threads of onbeat's.
fn traced<R: GapReader>(
    prepared: PreparedRun,
    reader: R,
    over: Nanos,
    gaps: &mut GapList,
    complete: impl FnOnce(&mut Run),
) -> Result<KeptRun> {
    let body = Arc::new(TracedGaps::new(reader, over));
    let results = body.clone();
    measured(prepared, body, Some(gaps), move |run| {
        // They are about measuring threads, which sleep here.
        let of_threads = [IntegrityKind::PageFault, IntegrityKind::RtCompetitor];
        run.integrity.retain(|entry| !of_threads.iter().any(|kind| entry.kind == *kind));
        if results.failed() {
            let detail = "the tracer could not be started or read: gaps may be missing".to_owned();
            run.integrity.push(entry(IntegrityKind::Tracing, None, true, detail));
        }
        complete(run);
    })
}
