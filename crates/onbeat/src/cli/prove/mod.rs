//! `onbeat prove`: one change, its experiment, a verdict.

pub mod answer;
pub mod arm_switch;
mod boots;
pub mod chosen;
pub mod folder;
mod plan_text;
mod script_keeper;
pub mod segments;
mod timing;
mod trial;

use std::path::PathBuf;

use super::Environment;
use super::condition_flags::ConditionFlags;
use super::flags::process_id;
use super::outputs::{OutputFlags, Outputs, remark};
use super::running::block_signals;
use answer::print_answer;
use arm_switch::ArmSwitch;
use chosen::{ChosenProof, changes, chosen, resumed};
use folder::{begun, folder_of, keep, lock};
use host::ProcessId;
use model::error::{Exit, Failure, Result};
use model::experiment::{EXPERIMENT_SCHEMA, ExperimentRun};
use model::text::quoted;
use plan_text::plan_text;
use segments::{PairsEnd, SegmentSetup};

/// Prove that one change helps: pairs of runs with it and without it, and a verdict
///
/// Each pair is a run without the change (a) and one with it (b), in an order that a coin decides;
/// the change is made and undone through the journal of `onbeat tune` each time, so that whatever
/// ends the experiment, the machine is as it was. It ends as soon as the pairs decide: 7 of 7, or
/// 11 of 12. What decides is how many wake-ups reach --limit, and nothing of it is chosen after
/// looking. A pair whose load did not load, or whose run is invalid, is dropped and counted. Every
/// run is kept as a bundle; an experiment that was interrupted goes on with --resume.
///
/// Exit code 0 is better or equivalent, 3 worse, 7 inconclusive.
#[derive(clap::Args)]
#[command(
    mut_arg("quiet", |arg| arg.help("No remarks and no progress on standard error")),
    mut_arg("victim", |arg| arg.conflicts_with("cpus")),
    mut_arg("program", |arg| arg.conflicts_with("cpus")),
    after_help = "Examples:\n  \
        sudo onbeat prove --change vmstat-interval=120 --limit 100us -a 2-3 --load mem\n  \
        onbeat prove --change vmstat-interval=120 --limit 100us --dry-run   what would run\n  \
        sudo onbeat prove --script ./switch --limit 50us       calls ./switch a, ./switch b\n  \
        sudo onbeat prove --resume DIR                         goes on where it was interrupted\n  \
        sudo onbeat prove --change swap --limit 1ms -- ./robot   late cycles of a program\n  \
        onbeat prove --limit 50us --across-boots old1 old2 -- new1 new2   a change that takes a reboot"
)]
pub struct Args {
    /// The change, a rule of `onbeat rules` and its value, or a rule alone for what it asks for;
    /// several are one change
    #[arg(long = "change", value_name = "RULE[=VALUE]", conflicts_with = "script")]
    changes: Vec<String>,
    /// A program that makes and undoes the change: it is called as `FILE a` and `FILE b`, through
    /// no shell
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// How long a call of the script may take
    #[arg(long, value_name = "SPAN", default_value = "60s", requires = "script")]
    script_time: String,
    /// Runs that were made without the change, `--`, runs that were made with it: bundles of
    /// several boots
    #[arg(long, value_name = "A... -- B", num_args = 1..)]
    #[arg(conflicts_with_all = ["changes", "script", "victim", "program", "cpus", "interval", "priority",
        "loads", "segment", "settle", "at_most", "yes", "dry_run", "folder"])]
    across_boots: Vec<PathBuf>,
    #[command(flatten)]
    conditions: ConditionFlags,
    /// Valid pairs after which it ends without a verdict
    #[arg(long, value_name = "N", default_value_t = experiment::design::MOST_PAIRS)]
    pairs: u32,
    /// Length of the run before the first pair, which decides nothing
    #[arg(long, value_name = "SPAN", default_value = "20s")]
    warm_up: String,
    /// Begin no pair that could not be ended within this time
    #[arg(long = "for", value_name = "SPAN")]
    at_most: Option<String>,
    /// Make also changes that take a safeguard away, such as throttling
    #[arg(long)]
    yes: bool,
    /// Say what would be measured, in which order, and what would be changed; do nothing
    #[arg(long)]
    dry_run: bool,
    /// Go on with an experiment that was interrupted: its folder
    #[arg(long, value_name = "DIR")]
    #[arg(conflicts_with_all = ["victim", "program"])]
    #[arg(conflicts_with_all = ["changes", "script", "across_boots", "limit", "cpus", "interval", "priority",
        "loads", "pairs", "warm_up", "segment", "settle", "seed", "dry_run", "folder"])]
    resume: Option<PathBuf>,
    /// The folder to keep the experiment in; by default under ~/.local/state/onbeat/experiments
    #[arg(short = 'o', long = "output", value_name = "DIR", id = "folder")]
    folder: Option<PathBuf>,
    /// Write the answer with its pictures there too, as one self-contained page
    #[arg(long, value_name = "FILE.html")]
    page: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
    /// Of onbeat's own process that calls the script when the experiment was killed.
    #[arg(long, hide = true, value_name = "PID/START", value_parser = process_id, requires = "script")]
    keep_for: Option<ProcessId>,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    if let (Some(owner), Some(script)) = (args.keep_for, &args.script) {
        return script_keeper::run(owner, script, args);
    }
    let mut outputs = Outputs::of(&[&args.page, &args.output.json], environment)?;
    if !args.across_boots.is_empty() {
        return boots::run(args, outputs, environment);
    }
    let (before, locked) = args.resume.as_deref().map(begun).transpose()?.unzip();
    let chosen = match &before {
        Some(record) => resumed(args, record)?,
        None => chosen(args, environment)?,
    };
    if args.dry_run {
        let planned = changes(&chosen, args.yes)?;
        outputs.json_pretty(&args.output.json, &before.unwrap_or_else(|| begun_as(&chosen)));
        outputs.print_lines(&plan_text(&chosen, planned.as_ref()));
        return outputs.end(Exit::Ok);
    }
    let mut switch = ArmSwitch::of(&chosen, environment, args.yes)?;
    // With the lock held, changes of a killed experiment have been undone.
    changes(&chosen, args.yes)?;
    block_signals()?;
    let folder = folder_of(args, environment)?;
    let _locked = locked.map_or_else(|| lock(&folder), Ok)?;
    let mut record = before.unwrap_or_else(|| begun_as(&chosen));
    // An experiment killed in its warm-up can be resumed too.
    keep(&folder, &record)?;
    let setup = SegmentSetup::new(&folder, &chosen, args.output.quiet, environment);
    let ran = switch.begin(&folder).and_then(|()| setup.run(&mut record, &mut switch));
    let restored = switch.put_back();
    let ended = both(ran, restored).map_err(|failure| match record.pilot {
        Some(_) => {
            let message = format!("{} (what was measured is in {})", failure.message, quoted(&folder));
            Failure { message, ..failure }
        }
        None => failure,
    })?;
    let verdict = print_answer(&mut outputs, args, &folder, &record, &ended)?;
    outputs.print(&format!("kept in {}\n", quoted(&folder)));
    if ended == PairsEnd::Signal {
        remark(&format!("onbeat: interrupted; go on with: onbeat prove --resume {}", quoted(&folder)));
        return outputs.end(Exit::Interrupted);
    }
    outputs.end(verdict)
}

/// Record of an experiment before its first run.
fn begun_as(chosen: &ChosenProof) -> ExperimentRun {
    ExperimentRun {
        schema: EXPERIMENT_SCHEMA.into(),
        plan: chosen.plan.clone(),
        kernel: host::release(),
        ..ExperimentRun::default()
    }
}

/// End of the experiment. A failed restore is reported together with any other failure.
fn both(ran: Result<PairsEnd>, restored: Result<()>) -> Result<PairsEnd> {
    match (ran, restored) {
        (Err(ran), Err(left)) => {
            Err(Failure { exit: left.exit, message: format!("{}; and {}", ran.message, left.message) })
        }
        (ran, restored) => restored.and(ran),
    }
}

/// Requires one of the ways to make the change.
fn require_one_change(args: &Args) -> Result<()> {
    if args.changes.is_empty() && args.script.is_none() {
        Err(Failure::usage(
            "name what to prove: --change RULE=VALUE, --script FILE, or --across-boots A... -- B...",
        ))
    } else {
        Ok(())
    }
}
