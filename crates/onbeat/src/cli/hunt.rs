//! `onbeat hunt`: measures with kernel events recorded, and explains every spike.

use model::vocabulary::{Command, Ended, HuntSource, IntegrityKind};
use std::ffi::OsString;
use std::path::PathBuf;

use super::Environment;
use super::flags::{keyword, positive_span};
use super::hunt_source::{self, RunningTimerlat};
use super::load_flags::{self, LoadFlags};
use super::measure_flags::MeasureFlags;
use super::outputs::{Outputs, remark};
use super::program;
use super::run_text::run_text;
use super::running::{PreparedRun, RunSink, exit_of, nothing_seen, prepare, unless_stopped};
use super::target::FollowTarget;
use crate::alarm::{AlarmAction, Alarms};
use crate::check::source::in_namespace;
use crate::hunt::culprit_threads::{self, ClockOffsets};
use crate::hunt::explainer::Explainer;
use crate::hunt::follow_threads::FollowThreads;
use crate::hunt::followed_spikes::{FollowLimits, FollowOptions};
use crate::hunt::found_spikes::FoundSpikes;
use crate::hunt::hunter::{Hunt, SpikeOptions};
use crate::hunt::placement::HousekeepingPlacement;
use crate::hunt::source;
use crate::hunt::victims;
use bundle::document::Document;
use bundle::write::BundleWriter;
use host::{self, MachineFiles, clock, rt};
use model::error::{Exit, Failure, Result};
use model::run::{ProgramRun, Run};
use model::text::quoted;
use model::units::{Bare, CpuSet, Nanos};
use report::hunt::typical::InvolvedRun;
use report::last_lines::RunPlace;
use study::page::{MAX_TRACED_SPIKES, perfetto};

/// Measure while tracing the kernel, and explain every latency spike
///
/// Measures like `onbeat measure`, while a private tracing instance records the kernel's events.
/// Every wake-up later than the threshold is explained while the measurement continues: which
/// interrupt, thread, function or other CPU took how much of the time, and how much no event
/// accounts for. At the end it prints the worst spikes, and the culprits ranked by the time they
/// took, each with a description, the evidence and the remedies. `onbeat explain` prints the same
/// later, on any machine, without root.
///
/// For another program, started with `--` or already running, the trace shows how late its
/// real-time threads ran and how long each of their cycles took, from its release to the sleep for
/// the next one. A cycle later than its deadline is explained in the same way.
///
/// Recording costs time at each wake-up; the cost is measured before the run and printed. For
/// latencies without this cost, use `onbeat measure`. All tracing is removed, however the run ends.
///
/// Spans take a unit: ns us ms s m h d.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat hunt -D 60s                      spikes over an automatic threshold\n  onbeat hunt -a 2-3 -D 1h --over 100us   two CPUs, over this threshold\n  onbeat hunt -- ./robot --arg            the real-time threads of a program\n  onbeat hunt --deadline 1ms -- ./robot   cycles that took longer\n  onbeat hunt -D 60s --no-stacks          less cost, more time unexplained\n  onbeat hunt -D 60s --victim jackd       all threads of that name\n  onbeat hunt -D 60s --perfetto x.json    for ui.perfetto.dev"
)]
pub struct Args {
    #[command(flatten)]
    flags: MeasureFlags,
    #[command(flatten)]
    load: LoadFlags,
    /// Threads whose wake-ups are measured
    #[arg(long, value_name = "SOURCE", value_parser = keyword::<HuntSource>(), default_value = "loop")]
    #[arg(help_heading = "Measurement", conflicts_with_all = ["victim", "program"])]
    source: HuntSource,
    /// Measure the same CPUs with the kernel's timerlat tracer as well, and show where both
    /// disagree
    #[arg(long, help_heading = "Measurement", conflicts_with_all = ["source", "victim", "program"])]
    cross_check: bool,
    /// Threshold from which a wake-up is a spike; a bare number is in us; determined from the first
    /// wake-ups by default
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    #[arg(help_heading = "Spikes")]
    over: Option<String>,
    /// Action at a spike, at most once a minute: exec:PROGRAM ARGS, signal:NAME:PID, trace-off; may
    /// be given several times; a program still running at the end is ended, with all processes that
    /// it started, daemons included
    #[arg(long, value_name = "ACTION")]
    #[arg(help_heading = "Spikes")]
    on_spike: Vec<String>,
    /// Record no stacks. This costs less, but time with interrupts off stays unexplained, and time
    /// with preemption off has no function
    #[arg(long)]
    #[arg(help_heading = "Spikes")]
    no_stacks: bool,
    /// Follow another program's threads instead of measuring: the real-time threads of a process,
    /// by number or name, a thread, or all threads of a name. At least one must be running; threads
    /// of that name that start later are followed as well, with -D even after the last one has
    /// ended. A wake-up counts from its timer or waker to the switch to the thread, a cycle to the
    /// thread's sleep for the next one
    #[arg(
        long,
        value_name = "PID|COMM",
        conflicts_with_all = ["cpus", "interval", "distance", "priority", "policy", "wake", "phase", "idle", "default_system"]
    )]
    #[arg(help_heading = "Another program")]
    victim: Option<String>,
    /// Deadline of a followed thread's cycle; a bare number is in us; by default the period of each
    /// thread
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    #[arg(help_heading = "Another program")]
    deadline: Option<String>,
    /// Record the system calls of followed threads, for SPAN or the whole run: their time in late
    /// cycles, and the lock that was waited for. This slows down every system call of all
    /// processes, by an amount that is measured and printed
    #[arg(long, value_name = "SPAN", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    #[arg(help_heading = "Another program")]
    syscalls: Option<String>,
    /// User to run the program as; by default the caller
    #[arg(long, value_name = "NAME", requires = "program")]
    #[arg(help_heading = "Another program")]
    user: Option<String>,
    /// Exit code to return: that of the hunt, or the program's, which is 128 plus the signal's
    /// number if a signal ended it
    #[arg(long, value_name = "WHOSE", default_value = "onbeat", requires = "program")]
    #[arg(value_parser = ["onbeat", "program"])]
    #[arg(help_heading = "Another program")]
    exit_code: String,
    /// Write the events and slices of the worst spikes for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    #[arg(help_heading = "Output")]
    perfetto: Option<PathBuf>,
    /// Program to start and follow until it ends, with its arguments
    #[arg(
        last = true,
        value_name = "PROGRAM",
        conflicts_with_all = ["victim", "cpus", "interval", "distance", "priority", "policy"],
        conflicts_with_all = ["wake", "phase", "idle", "default_system"]
    )]
    program: Vec<OsString>,
}

pub fn run(args: &Args, environment: &Environment) -> Result<u8> {
    let span = |flag: &str, text: &Option<String>| {
        text.as_deref().map(|text| positive_span(flag, text, Bare::Micros)).transpose()
    };
    let (over, deadline) = (span("--over", &args.over)?, span("--deadline", &args.deadline)?);
    args.flags.check_end()?;
    let syscalls = syscalls(args)?;
    let follows = args.victim.is_some() || !args.program.is_empty();
    let host = MachineFiles::live();
    check_following(&host, follows, deadline, syscalls)?;
    let mut outputs = Outputs::of(&[&args.flags.run.json, &args.perfetto], environment)?;
    let actions = actions(args)?;
    let found = args.victim.as_deref().map(|who| victims::find(&host, who)).transpose()?;
    // The program inherits the caller's state: this process has changed nothing yet.
    let program = program::choose(&args.program, args.user.as_deref())?;
    let tracing = hunt_source::find(args.source, args.cross_check)?;
    let PreparedRun { plan, machine, housekeeping, mut run, core_types, before, mut sink } =
        prepare(&args.flags, &args.load, Command::Hunt, environment, |plan| {
            hunt_source::adjust(args.source, args.cross_check, plan)
        })?;
    // If the online CPUs cannot be read, those that this process may use are recorded instead.
    let (source, names) = source::open(&machine.online)?;
    let events = sink.writer.events()?;
    let mut explainer = Explainer::new(source, names, &run, events, host::memory_kib());
    if !actions.is_empty() {
        let record = sink.writer.path().display().to_string();
        explainer.set_alarms(Alarms::new(Some(Nanos(0)), actions, record));
    }
    let no_cpus = CpuSet::default();
    let timerlat = RunningTimerlat::start(tracing, args.source, &plan, environment, &no_cpus)?;
    rt::release_code_pages(); // what made the recorder
    // The hunt owns the instance before anything can fail.
    let (measured, found) = if follows {
        let target = FollowTarget::of(found, program);
        target.describe(&mut run);
        sink.live = target.live(sink.live.take(), environment);
        let limits = FollowLimits { duration: plan.duration, latency: plan.limit, wakeups: plan.loops };
        let options = FollowOptions { over, deadline, stacks: !args.no_stacks, syscalls };
        let placement = HousekeepingPlacement::new(
            machine.online.and(&machine.permitted),
            machine.isolated,
            housekeeping,
        );
        let FollowTarget { family, program, .. } = target;
        let mut follow =
            FollowThreads::new(explainer, family, program, limits, options, placement, &run.host);
        (follow.run(run, &host, &mut sink), follow.into_spikes())
    } else {
        let wanted = SpikeOptions { over, stacks: !args.no_stacks };
        let hunt = Hunt::new(explainer, wanted, plan.clone());
        hunt_source::measure(timerlat.as_ref(), plan, run, &core_types, &mut sink, hunt)
    };
    let restored = RunningTimerlat::end(timerlat);
    let RunSink { writer, live, loads, .. } = sink;
    drop(live);
    let mut run = match measured {
        Ok(run) => run,
        Err(failure) => {
            writer.discard();
            return Err(failure);
        }
    };
    outputs.keep(restored);
    let changes = before.changes(&run).into_iter();
    // The threads that a hunt follows do not compete with measuring threads: there are none.
    run.integrity.extend(changes.filter(|entry| !follows || entry.kind != IntegrityKind::RtCompetitor));
    load_flags::end(loads, &mut run);
    // With -q as well: the action was requested.
    found.actions.iter().for_each(|line| remark(&format!("onbeat: {line}")));
    let its_own = run.program.as_ref().filter(|_| args.exit_code == "program").and_then(exit_code);
    whose(its_own, finish(args, environment, run, &found, writer, outputs))
}

/// Refuses options for followed threads without any, and following in a PID namespace.
fn check_following(
    host: &MachineFiles,
    follows: bool,
    deadline: Option<Nanos>,
    syscalls: Option<Nanos>,
) -> Result<()> {
    if !follows && (deadline.is_some() || syscalls.is_some()) {
        let flag = if syscalls.is_some() { "--syscalls" } else { "--deadline" };
        return Err(Failure::usage(format!(
            "{flag} applies to followed threads: add --victim PID, or -- and a program"
        )));
    }
    if follows && in_namespace(host) {
        return Err(Failure::not_permitted(
            "onbeat is in a PID namespace (a container), where threads have other numbers than in the kernel's events: run it outside the container, with --victim and the program's PID there",
        ));
    }
    Ok(())
}

/// Duration of the recording of system calls, if they are recorded.
fn syscalls(args: &Args) -> Result<Option<Nanos>> {
    match args.syscalls.as_deref() {
        None => Ok(None),
        Some("") => Ok(Some(Nanos(i64::MAX))),
        Some(span) => positive_span("--syscalls", span, Bare::Seconds).map(Some),
    }
}

/// Exit code of the program, if that is requested; a failure is reported all the same.
fn whose(its_own: Option<u8>, ended: Result<Exit>) -> Result<u8> {
    match (its_own, ended) {
        (Some(code), Ok(_)) => Ok(code),
        (Some(code), Err(failure)) => {
            remark(&format!("onbeat: {}", failure.message));
            Ok(code)
        }
        (None, ended) => ended.map(|exit| exit as u8),
    }
}

/// Exit code of a program that has ended, as shells compute it.
fn exit_code(program: &ProgramRun) -> Option<u8> {
    let code = program.exit_code.or_else(|| Some(128 + program.signal?))?;
    Some((code & 0xff) as u8)
}

fn actions(args: &Args) -> Result<Vec<AlarmAction>> {
    let action =
        |text: &String| text.parse().map_err(|why: String| Failure::usage(format!("--on-spike: {why}")));
    let actions: Vec<AlarmAction> = args.on_spike.iter().map(action).collect::<Result<_>>()?;
    actions.iter().try_for_each(|action| action.check("--on-spike"))?;
    Ok(actions)
}

/// Looks up the culprits, if /proc uses the same thread IDs as the events.
fn find_culprits(run: &mut Run) {
    let host = MachineFiles::live();
    if !in_namespace(&host) {
        let offsets = ClockOffsets { boot: clock::boot_offset(), wall: clock::wall_offset() };
        culprit_threads::find(run, &host, offsets);
    }
}

/// Prints, writes and ends; prints even if a write fails, so that no measurement is lost.
fn finish(
    args: &Args,
    environment: &Environment,
    mut run: Run,
    found: &FoundSpikes,
    writer: BundleWriter,
    mut outputs: Outputs,
) -> Result<Exit> {
    find_culprits(&mut run);
    let screen = outputs.screen_now(environment);
    let path = writer.path().to_owned();
    let kept = writer.finish_or(&run, found, |run| found.left_in_file(run));
    let (spikes, involved) = found.to_show(&run, MAX_TRACED_SPIKES);
    run.spikes = spikes;
    let run = &run;
    rt::unblock_signals();
    let is_kept = kept.is_ok();
    outputs.keep(kept.map(drop));
    // Without a wake-up there is no table: the last line gives the reason.
    if outputs.prints() && (!run.follows() || run.samples() != Some(0)) {
        let (path, program) = (quoted(&path), environment.program(&path));
        let place = RunPlace { path: &path, newest: args.flags.run.output.is_none(), fresh: true, program };
        let known = InvolvedRun { run, involved: involved.as_slice().into() };
        outputs.print(&run_text(known, Some(place), args.flags.run.detail(), screen));
    } else if is_kept {
        outputs.print(&format!("kept in {}\n", quoted(&path)));
    }
    // For any other end, this is reported as its error.
    if let Some(why) = nothing_seen(run).filter(|_| run.ended == Ended::Signal) {
        outputs.print(&(why + "\n"));
    }
    outputs.json(&args.flags.run.json, &Document::of(run, found));
    outputs.write(&args.perfetto, || perfetto(&path, run));
    unless_stopped(exit_of(run, outputs.into_failure()))
}
