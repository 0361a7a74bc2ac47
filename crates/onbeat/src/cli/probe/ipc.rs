//! `onbeat probe ipc`.

use std::sync::Arc;

use super::probe_flags::{PairFlags, ProbeFlags};
use super::{KeptRun, measured};
use crate::cli::Environment;
use crate::cli::flags::{keyword, positive_span};
use crate::cli::outputs::{Outputs, remark};
use crate::cli::running::{WantedRun, exit_of, prepare_run, unless_stopped};
use crate::measure::integrity::entry;
use crate::plan::{MeasurePlan, ProbePlan};
use crate::probe::ipc::{ALL, BothWays, Ipc, IpcKind, IpcSetup};
use host::{ipc, rt};
use model::error::{Exit, Failure, Result};
use model::run::{Integrity, Run};
use model::text::quoted;
use model::units::{Bare, Cpu, Nanos};
use model::vocabulary::{Ended, IntegrityKind, Probe};
use report::run::hand_overs;

model::keywords! {
    /// Placement of the two threads of a pair.
    pub enum PairPlace {
        /// both on one CPU
        Same = "same",
        /// on two: the CPUs of -a two by two, the first releases, the second acquires
        Across = "across",
        /// one after the other
        Both = "both",
    }
}

/// Measure signalling between two threads: futex, pipe, queue and others
///
/// Thread B waits with the chosen mechanism; thread A reads the clock and releases it; B reads the
/// clock when it runs. This is what ptsematest (futex), pmqtest (mqueue), svsematest (semaphore)
/// and sigwaittest (signal) of rt-tests measure, but with a histogram instead of three numbers.
/// Each mechanism is measured separately, with one pair of threads per CPU, and stored as a
/// separate run. All kernel objects are removed, however the command ends.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat probe ipc -a 0-1                      all mechanisms, on one CPU and across two\n  \
        onbeat probe ipc futex pi-mutex -a 1 -D 30s  the cost of priority inheritance\n  \
        onbeat probe ipc pipe --place across -b 100us")]
pub struct Args {
    /// Mechanisms to measure; all by default
    #[arg(value_name = "KIND", help = kinds_help())]
    kinds: Vec<String>,
    #[command(flatten)]
    flags: ProbeFlags,
    /// Placement of the two threads
    #[arg(long, value_name = "WHERE", default_value = "both", value_parser = keyword::<PairPlace>())]
    place: PairPlace,
    /// Duration per mechanism and placement; a bare number is in seconds
    #[arg(short = 'D', long, value_name = "SPAN", default_value = "3s", allow_hyphen_values = true)]
    duration: String,
    /// Time between samples; a bare number is in us
    #[arg(short, long, value_name = "SPAN", default_value = "1000us", allow_hyphen_values = true)]
    interval: String,
    #[command(flatten)]
    pairs: PairFlags,
}

impl Args {
    /// True if several kinds or several places are measured.
    fn measures_several(&self) -> bool {
        self.kinds.len() != 1 || self.place == PairPlace::Both
    }
}

/// Help text with the kinds and their descriptions.
fn kinds_help() -> String {
    let line = |kind: &&IpcKind| format!("\n- {}: {}", kind.name, kind.doc);
    format!("Mechanisms to measure; all by default:{}", ALL.iter().map(line).collect::<String>())
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.flags.run.json], environment)?;
    let named: Result<Vec<&IpcKind>> = args.kinds.iter().map(|name| IpcKind::named(name)).collect();
    let mut kinds = named?;
    if let Some(twice) =
        kinds.iter().enumerate().find(|(at, kind)| kinds[..*at].iter().any(|k| k.name == kind.name))
    {
        return Err(Failure::usage(format!(
            "invalid kinds: {} is given twice; give each once",
            twice.1.name
        )));
    }
    if kinds.is_empty() {
        kinds = ALL.to_vec();
    }
    let setup = IpcSetup { own_namespace: ipc::leave_ipc_namespace() };
    let places: &[PairPlace] = match &args.place {
        PairPlace::Both => &[PairPlace::Same, PairPlace::Across],
        place => std::slice::from_ref(place),
    };
    let mut announcement = if args.measures_several() && !args.flags.run.quiet {
        Some(announcement(&args.duration, kinds.len(), places.len())?)
    } else {
        None
    };
    let mut kept: Vec<KeptRun> = Vec::new();
    let mut failure = None;
    'all: for kind in kinds {
        for &place in places {
            let alone = place == PairPlace::Across && args.place == PairPlace::Both;
            if alone && kept.last().is_some_and(|last| last.run.plan.cpus.len() < 2) {
                continue;
            }
            match measure_one(args, kind, place, setup, &mut announcement, environment) {
                Ok(one) => kept.push(one),
                Err(lacking) if args.kinds.is_empty() && lacking.exit == Exit::NotSupported => {
                    remark(&format!("onbeat: {} skipped: {}", kind.name, lacking.message));
                    continue 'all;
                }
                Err(refused) => {
                    failure = Some(refused);
                    break 'all;
                }
            }
            if kept.last().is_some_and(|last| last.run.ended == Ended::Signal) {
                break 'all;
            }
        }
    }
    rt::unblock_signals();
    if kept.is_empty() {
        return Err(failure.unwrap_or_else(|| Failure::not_supported("no mechanism can be measured here")));
    }
    show(args, &mut kept, &mut outputs);
    let runs: Vec<Run> = kept.into_iter().map(|kept| kept.run).collect();
    if let Some(document) = together(&runs) {
        outputs.json(&args.flags.run.json, &document);
    }
    let first = outputs.into_failure().or(failure);
    let ended: Result<Vec<Exit>> = match first {
        Some(failure) => Err(failure),
        None => runs.iter().map(|run| exit_of(run, None)).collect(),
    };
    let ended = ended.map(|codes| codes.into_iter().find(|code| *code != Exit::Ok).unwrap_or(Exit::Ok));
    unless_stopped(ended)
}

/// Line with the total duration.
fn announcement(duration: &str, kinds: usize, places: usize) -> Result<String> {
    let each = positive_span("-D", duration, Bare::Seconds)?;
    let runs = (kinds * places) as i64;
    let places = if places == 1 { String::new() } else { format!(" in {places} placements") };
    let kinds = if kinds == 1 { "1 mechanism".to_owned() } else { format!("{kinds} mechanisms") };
    Ok(format!(
        "onbeat: {kinds}{places}, {} each: up to {} in all",
        each.spoken(),
        Nanos(each.0.saturating_mul(runs)).spoken()
    ))
}

fn measure_one(
    args: &Args,
    kind: &'static IpcKind,
    place: PairPlace,
    setup: IpcSetup,
    announcement: &mut Option<String>,
    environment: &Environment,
) -> Result<KeptRun> {
    let several = args.measures_several();
    let name = format!("{}-{}", kind.name, place.name());
    let output =
        args.flags.run.output.as_ref().map(|path| if several { path.join(&name) } else { path.clone() });
    let wanted = WantedRun {
        output,
        ..args.flags.wanted(args.flags.pair_intent(&args.duration, &args.interval, &args.pairs)?, &name)?
    };
    let mut made: Vec<BothWays> = Vec::new();
    let prepared = prepare_run(wanted, environment, |plan, _, _| {
        place_pairs(plan, place, kind.name)?;
        made = kind.make(&setup, plan.cpus.len())?;
        Ok(())
    })?;
    let from = prepared.plan.probe.as_ref().map_or_else(Vec::new, |probe| probe.from.clone());
    // Printed only once the run can begin: a refusal is printed without it.
    announcement.take().iter().for_each(|line| remark(line));
    let body = Arc::new(Ipc::new(made, &from));
    let failed = {
        let body = body.clone();
        move |run: &mut Run| run.integrity.extend(body.failed().map(|error| broken(&error)))
    };
    measured(prepared, body, None, failed)
}

fn broken(error: &std::io::Error) -> Integrity {
    let words =
        format!("its threads could no longer signal each other ({error}): results up to then are stored");
    entry(IntegrityKind::Thread, None, true, words)
}

/// Sets the CPUs on which threads acquire, and for each the one that releases to it.
fn place_pairs(plan: &mut MeasurePlan, place: PairPlace, kind: &str) -> Result<()> {
    let cpus: Vec<Cpu> = plan.cpus.iter().map(|own| own.cpu).collect();
    let mut from = cpus.clone();
    if place == PairPlace::Across {
        if cpus.len() < 2 {
            return Err(Failure::usage(
                "--place across needs two CPUs: give them with -a, or use --place same",
            ));
        }
        from = cpus.chunks_exact(2).map(|two| two[0]).collect();
        let acquiring: Vec<Cpu> = cpus.chunks_exact(2).map(|two| two[1]).collect();
        if let [left] = cpus.chunks_exact(2).remainder() {
            plan.notes.push(format!("CPU {left} has no partner and is not measured"));
        }
        plan.cpus.retain(|own| acquiring.contains(&own.cpu));
    }
    plan.probe = Some(ProbePlan { kind: kind.to_owned(), from, ..ProbePlan::of(Probe::Ipc) });
    Ok(())
}

/// Prints the results of all runs and the paths of their bundles.
fn show(args: &Args, kept: &mut [KeptRun], outputs: &mut Outputs) {
    for one in kept.iter_mut() {
        outputs.keep(std::mem::replace(&mut one.kept, Ok(())));
    }
    if !outputs.prints() {
        return;
    }
    let runs: Vec<&Run> = kept.iter().map(|one| &one.run).collect();
    let mut text =
        hand_overs::render(&runs, args.flags.run.quiet, outputs.screen.columns, outputs.screen.color);
    let shown: Vec<String> = kept.iter().map(|one| quoted(&one.path)).collect();
    text += &hand_overs::answer(&runs, &shown, outputs.screen.columns, outputs.screen.color);
    outputs.print(&text);
}

/// One document for all runs: the first, with the CPUs and the integrity of all of them.
fn together(runs: &[Run]) -> Option<Run> {
    let (first, others) = runs.split_first()?;
    let mut all = first.clone();
    for run in others {
        all.cpus.extend(run.cpus.iter().cloned());
        all.loads.extend(run.loads.iter().cloned());
        all.integrity.extend(run.integrity.iter().filter(|entry| !first.integrity.contains(entry)).cloned());
        if run.plan.kind != all.plan.kind {
            all.plan.kind = "several".into();
        }
        if run.ended != Ended::Duration && run.ended != Ended::Loops {
            all.ended = run.ended.clone();
        }
    }
    Some(all)
}
