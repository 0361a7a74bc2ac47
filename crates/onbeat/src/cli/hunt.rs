//! `onbeat hunt`: measures with kernel events recorded, and explains every spike.

use model::vocabulary::{Command, Ended, IntegrityKind};
use std::path::PathBuf;
use std::sync::Arc;

use super::Environment;
use super::flags::positive_span;
use super::live::Live;
use super::load_flags::{self, LoadFlags};
use super::measure_flags::MeasureFlags;
use super::outputs::Outputs;
use super::running::{PreparedRun, RunSink, exit_of, nothing_seen, prepare, unless_stopped};
use crate::alarm::{AlarmAction, Alarms};
use crate::hunt::explainer::Explainer;
use crate::hunt::follow_threads::{FollowLimits, FollowThreads};
use crate::hunt::found_spikes::FoundSpikes;
use crate::hunt::hunter::{Hunt, SpikeOptions};
use crate::hunt::placement::HousekeepingPlacement;
use crate::hunt::source;
use crate::hunt::victims::{self, Victim};
use crate::measure::start;
use crate::measure::task::WakeUps;
use bundle::document::Document;
use bundle::write::BundleWriter;
use host::{self, MachineFiles, rt};
use model::error::{Exit, Failure, Result};
use model::run::Run;
use model::text::{clean, quoted};
use model::units::{Bare, Nanos};
use report::hunt::text;
use study::page::{MAX_TRACED_SPIKES, perfetto};

/// Measure, and explain every spike: who took the time, to the nanosecond
///
/// Measures as `onbeat measure` does, with the kernel's events recorded beside it in a tracing
/// instance of its own. Every wake-up that is later than the threshold is taken apart while
/// measuring goes on: which interrupt, thread, function or other CPU took how much of it, and what
/// no event accounts for. At the end come the worst spikes and the culprits, ranked by the time
/// they took, each with what it is, what matched and what would cure it. `onbeat explain` says the
/// same again later, elsewhere, without root.
///
/// Recording costs time at each wake-up: how much is measured before the run and said. The
/// latencies of a hunt are not those of the machine: `onbeat measure` has them. Nothing stays of
/// what was armed, however the run ends.
///
/// Spans take a unit: ns us ms s m h d.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  onbeat hunt -D 60s                           spikes over a threshold that the first wake-ups give\n  onbeat hunt -a 2-3 -D 1h --over 100us        of two CPUs, with a threshold\n  onbeat hunt -D 60s --no-stacks               less cost, and more time unexplained\n  onbeat hunt -D 60s --victim jackd            a real task: all threads of that name\n  onbeat hunt -D 60s --perfetto spikes.json    open it in ui.perfetto.dev"
)]
pub struct Args {
    #[command(flatten)]
    flags: MeasureFlags,
    #[command(flatten)]
    load: LoadFlags,
    /// A wake-up this late is a spike; a bare number is in us; from the first wake-ups by default
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    over: Option<String>,
    /// What is done at a spike, at most once a minute: exec:PROGRAM ARGS, signal:NAME:PID,
    /// trace-off; may be given several times
    #[arg(long, value_name = "ACTION")]
    on_spike: Vec<String>,
    /// Take no stacks: cheaper; time with interrupts off then stays unexplained, and preemption off
    /// has no function
    #[arg(long)]
    no_stacks: bool,
    /// Follow another's threads instead of measuring: a process, a thread, or all threads of a
    /// name. From the timer or the waker of each wake-up to the switch to the thread; where it
    /// waited for a mutex without priority inheritance, from the begin of the wait. Threads that
    /// start later are not followed
    #[arg(
        long,
        value_name = "PID|COMM",
        conflicts_with_all = ["cpus", "interval", "distance", "priority", "policy", "wake", "phase", "idle", "default_system"]
    )]
    victim: Option<String>,
    /// Write the worst spikes' events and slices for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let over = args.over.as_deref().map(|text| positive_span("--over", text, Bare::Micros)).transpose()?;
    let outputs = Outputs::of(&[&args.flags.run.json, &args.perfetto], environment)?;
    let wanted = SpikeOptions { over, stacks: !args.no_stacks };
    let actions = actions(args)?;
    let host = MachineFiles::live();
    let followed = args.victim.as_deref().map(|who| victims::find(&host, who)).transpose()?;
    let PreparedRun { plan, machine, housekeeping, mut run, core_types, before, mut sink } =
        prepare(&args.flags, &args.load, Command::Hunt, environment)?;
    // If the online CPUs cannot be read, those that this process may use are recorded instead.
    let (source, names) = source::open(&machine.online)?;
    let events = sink.writer.events()?;
    let mut explainer = Explainer::new(source, names, &run, events, host::memory_kib());
    if !actions.is_empty() {
        let record = sink.writer.path().display().to_string();
        explainer.set_alarms(Alarms::new(Some(Nanos(0)), actions, record));
    }
    rt::release_code_pages(); // what made the recorder
    // The hunt owns the instance, before anything can fail.
    let (measured, found) = match followed {
        None => {
            let mut hunt = Hunt::new(explainer, wanted, plan.clone());
            (
                start::measure(plan, run, &core_types, Arc::new(WakeUps), &mut sink, Some(&mut hunt)),
                hunt.into_spikes(),
            )
        }
        Some(victims) => {
            describe(&mut run, &victims);
            sink.live = sink.live.and(Live::titled(following(&victims), environment));
            let limits = FollowLimits { duration: plan.duration, latency: plan.limit, wakeups: plan.loops };
            let placement = HousekeepingPlacement::new(
                machine.online.and(&machine.permitted),
                machine.isolated,
                housekeeping,
            );
            let mut follow = FollowThreads::new(explainer, victims, limits, &wanted, placement, &run.host);
            (follow.run(run, &host, &mut sink), follow.into_spikes())
        }
    };
    let RunSink { writer, live, loads, .. } = sink;
    drop(live);
    let mut run = match measured {
        Ok(run) => run,
        Err(failure) => {
            writer.discard();
            return Err(failure);
        }
    };
    let changes = before.changes(&run).into_iter();
    // The threads that a hunt follows do not compete with measuring threads: there are none.
    run.integrity
        .extend(changes.filter(|entry| args.victim.is_none() || entry.kind != IntegrityKind::RtCompetitor));
    load_flags::end(loads, &mut run);
    finish(args, run, &found, writer, outputs)
}

fn actions(args: &Args) -> Result<Vec<AlarmAction>> {
    let action =
        |text: &String| text.parse().map_err(|why: String| Failure::usage(format!("--on-spike: {why}")));
    args.on_spike.iter().map(action).collect()
}

fn following(victims: &[Victim]) -> String {
    let name = |victim: &Victim| format!("{} ({})", clean(&victim.comm), victim.thread);
    let shown: Vec<String> = victims.iter().take(3).map(name).collect();
    let more = if victims.len() > 3 { format!(" and {} more", victims.len() - 3) } else { String::new() };
    format!("following {}{more}", shown.join(", "))
}

/// A run without measuring threads: the victims' data takes their place.
fn describe(run: &mut Run, victims: &[Victim]) {
    let document = &mut run.plan;
    (document.interval_ns, document.distance_ns) = (None, None);
    document.cpus.clear();
    (document.wake, document.expiry, document.phase) = Default::default();
    document.idle = "as-is".into();
    document.policy = victims.iter().map(|victim| victim.policy).min().unwrap_or_default().into();
    document.priority = victims.iter().map(|victim| victim.priority).max();
    document.notes = vec![
        following(victims),
        "what the recorder adds to a wake-up is measured on onbeat's own threads: run `onbeat hunt` without --victim".into(),
    ];
}

/// Prints, writes and ends: the text even where writing fails, so that nothing measured is lost.
fn finish(
    args: &Args,
    mut run: Run,
    found: &FoundSpikes,
    writer: BundleWriter,
    mut outputs: Outputs,
) -> Result<Exit> {
    let path = writer.path().to_owned();
    let kept = writer.finish(&run, found);
    run.spikes = found.to_show(MAX_TRACED_SPIKES);
    let run = &run;
    rt::unblock_signals();
    let is_kept = kept.is_ok();
    outputs.keep(kept.map(drop));
    // Without a wake-up there is no table: the last line gives the reason.
    if outputs.prints() && (!run.follows() || run.cpus.iter().any(|cpu| cpu.cycles > 0)) {
        let render = if args.flags.run.quiet { text::brief } else { text::render };
        outputs.print(&render(run, outputs.screen.columns, outputs.screen.color));
    }
    // Any other end reports it as its error.
    if let Some(why) = nothing_seen(run).filter(|_| run.ended == Ended::Signal) {
        outputs.print(&(why + "\n"));
    }
    if is_kept {
        let shown = quoted(&path);
        outputs.print(&format!(
            "\nkept in {shown}\nthe same again, here or elsewhere: onbeat explain {shown}\nas pictures: onbeat report {shown} -o hunt.html\n"
        ));
    }
    outputs.json(&args.flags.run.json, &Document::of(run, found));
    outputs.write(&args.perfetto, || perfetto(&path, run));
    unless_stopped(exit_of(run, outputs.into_failure()))
}
