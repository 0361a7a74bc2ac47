//! `onbeat probe irq`.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::irq_outside;
use super::irq_sources::{ChosenInterrupt, choose};
use super::probe_flags::{PairFlags, ProbeFlags};
use super::{KeptRun, finish_unless, measured};
use crate::cli::Environment;
use crate::cli::outputs::Outputs;
use crate::cli::running::{PreparedRun, prepare_run};
use crate::hunt::source;
use crate::plan::{CpuChoice, MeasureIntent, ProbePlan};
use crate::probe::irq::{InterruptNames, Responding, Stimulus, TIME_LIMIT, UNANSWERED};
use crate::probe::response_paths::ResponsePaths;
use facts::irqs::Irq;
use host::rt;
use model::error::{Exit, Failure, Result, reason};
use model::run::Run;
use model::units::CpuSet;
use model::vocabulary::{Ended, Probe};
use trace::interrupt_path::WatchedInterrupt;

/// Measure from a hardware event through its interrupt to the thread
///
/// By default each thread waits for a timer of its CPU, which every machine has. --irq names an
/// interrupt of a device: with --read the thread causes it by reads of that device, without it the
/// events come from outside and are only observed. --gpio writes one line of a GPIO chip and waits
/// for another one that is wired to it, or pulls a line of a simulated chip (gpio-sim), which
/// interrupts the CPU of its writer only. The kernel's events divide each response: to the entry of
/// the interrupt's handler, in the handler, in its thread or a softirq, from the wake-up to the
/// switch, and from the switch to the thread. Takes tracefs.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat probe irq -a 1                                a timer's interrupt on CPU 1\n  \
        onbeat probe irq --irq nvme0q1 --read /dev/nvme0n1   reads of a disk\n  \
        onbeat probe irq --irq eth0 -D 60s                   packets that arrive\n  \
        onbeat probe irq --gpio gpiochip0:17,27 -a 2         line 17 is wired to line 27\n  \
        onbeat probe irq --gpio gpiochip1:0 -a 2             line 0 of gpio-sim")]
pub struct Args {
    #[command(flatten)]
    flags: ProbeFlags,
    /// Duration; a bare number is in seconds
    #[arg(short = 'D', long, value_name = "SPAN", default_value = "10s", allow_hyphen_values = true)]
    duration: String,
    /// Time between the events that onbeat causes; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "1000us", allow_hyphen_values = true)]
    interval: String,
    /// Interrupt of a device, by its number or the name of its handler
    #[arg(long, value_name = "NAME|NUMBER", conflicts_with = "gpio")]
    irq: Option<String>,
    /// Block or character device whose reads cause the interrupt
    #[arg(long, value_name = "DEVICE", requires = "irq")]
    read: Option<PathBuf>,
    /// GPIO chip with the line that is written and the one that is awaited; one line of a simulated
    /// chip
    #[arg(long, value_name = "CHIP:OUT,IN")]
    gpio: Option<String>,
    #[command(flatten)]
    pairs: PairFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let outputs = Outputs::of(&[&args.flags.run.json], environment)?;
    let intent = args.flags.pair_intent(&args.duration, &args.interval, &args.pairs)?;
    let chosen = choose(args.gpio.as_deref(), args.irq.as_deref(), args.read.as_deref())?;
    let intent = place(intent, args, &chosen)?;
    let wanted = args.flags.wanted(intent, "responses to interrupts")?;
    let mut events = None;
    let prepared = prepare_run(wanted, environment, |plan, machine, _| {
        if !matches!(chosen, ChosenInterrupt::Timer) {
            plan.cpus.truncate(1);
        }
        plan.notes.push(chosen.note());
        plan.probe = Some(ProbePlan { kind: chosen.kind().name().to_owned(), ..ProbePlan::of(Probe::Irq) });
        events = Some(source::open(&machine.online)?.0);
        Ok(())
    })?;
    let Some(events) = events else { return Err(Failure::internal("no source of events: report this")) };
    let (line, names) = (chosen.line(), chosen.names());
    let stimuli = match chosen {
        ChosenInterrupt::Outside(_) => {
            let (kept, failure) = irq_outside::measure(prepared, events, line, names)?;
            return finish_unless(&args.flags.run, kept, outputs, environment, failure);
        }
        ChosenInterrupt::Timer => prepared.plan.cpus.iter().map(|_| Stimulus::Timer).collect(),
        ChosenInterrupt::Read { device, .. } => vec![Stimulus::Read(device)],
        ChosenInterrupt::Gpio { output, input, .. } => vec![Stimulus::Gpio { output, input }],
    };
    let (kept, failure) = respond(prepared, stimuli, events, line, names)?;
    finish_unless(&args.flags.run, kept, outputs, environment, failure)
}

/// Runs the threads that wait for the events.
fn respond(
    prepared: PreparedRun,
    stimuli: Vec<Stimulus>,
    events: Box<dyn source::EventSource + Send>,
    line: WatchedInterrupt,
    names: InterruptNames,
) -> Result<(KeptRun, Option<Failure>)> {
    let body = Arc::new(Responding::new(stimuli));
    let results = body.clone();
    let mut paths = ResponsePaths::new(events, line, names, body.spans());
    let kept = measured(prepared, body, Some(&mut paths), |run| {
        if results.failed().is_some() || is_unanswered(run) {
            run.ended = Ended::Error.into();
        }
    })?;
    let failure = failure(&kept.run, results.failed());
    Ok((kept, failure))
}

fn is_unanswered(run: &Run) -> bool {
    run.cpus.iter().filter_map(|cpu| cpu.responses.as_ref()).any(|of| of.unanswered >= UNANSWERED)
}

/// Failure of the run.
fn failure(run: &Run, failed: Option<i32>) -> Option<Failure> {
    if let Some(number) = failed {
        let error = io::Error::from_raw_os_error(number);
        return Some(Failure::internal(format!(
            "cannot wait for events ({}): results up to then are stored; check the device",
            reason(&error)
        )));
    }
    let inconclusive = |message: String| Some(Failure { exit: Exit::Inconclusive, message });
    let none = run.samples().is_none_or(|samples| samples == 0);
    if is_unanswered(run) || (none && run.ended == Ended::Error) {
        return inconclusive(format!(
            "{UNANSWERED} requests in sequence had no event within {TIME_LIMIT}: the run was ended; check \
             the wire between the lines"
        ));
    }
    if none && run.ended != Ended::Signal {
        inconclusive("no event was measured: increase -D".into())
    } else {
        None
    }
}

/// One thread, on the CPU that takes the interrupt, if the events are not those of timers.
fn place(intent: MeasureIntent, args: &Args, chosen: &ChosenInterrupt) -> Result<MeasureIntent> {
    if let (false, CpuChoice::Only(cpus)) = (matches!(chosen, ChosenInterrupt::Timer), &intent.cpus)
        && cpus.len() > 1
    {
        return Err(Failure::usage(format!(
            "invalid -a {cpus}: expected one CPU, because one thread waits for the events"
        )));
    }
    if args.flags.threads.cpus.is_some() {
        return Ok(intent);
    }
    let allowed = rt::affinity().unwrap_or_default();
    let of = |irq: &Irq| {
        let taken = irq.effective.known().or(irq.allowed.known()).cloned().unwrap_or_default();
        taken.iter().find(|cpu| allowed.0.contains(cpu)).map(|cpu| [cpu].into_iter().collect::<CpuSet>())
    };
    let own = match chosen {
        ChosenInterrupt::Read { irq, .. } | ChosenInterrupt::Outside(irq) => of(irq),
        _ => None,
    };
    Ok(MeasureIntent { cpus: own.map_or(intent.cpus.clone(), CpuChoice::Only), ..intent })
}
