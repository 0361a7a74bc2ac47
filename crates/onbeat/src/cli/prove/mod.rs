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

/// Prove that one change helps, in pairs of runs with and without it
///
/// Each pair is a run without the change (a) and a run with it (b), in random order; the change is
/// applied and undone through the journal of `onbeat tune` each time, so that the machine's
/// settings are restored however the experiment ends. It ends as soon as the pairs decide: 7 of 7,
/// or 11 of 12. The metric is the number of wake-ups that reach --limit, and nothing is chosen
/// after seeing data. A pair with a failed load or an invalid run is dropped and counted. Every run
/// is stored as a bundle; --resume continues an interrupted experiment.
///
/// Exit codes: 0 better or equivalent, 3 worse, 7 inconclusive.
#[derive(clap::Args)]
#[command(
    mut_arg("quiet", |arg| arg.help("Print no notes and no progress on standard error")),
    mut_arg("victim", |arg| arg.conflicts_with("cpus")),
    mut_arg("program", |arg| arg.conflicts_with("cpus")),
    after_help = "Examples:\n  \
        sudo onbeat prove --change vmstat-interval=120 --limit 100us -a 2-3 --load mem\n  \
        onbeat prove --change vmstat-interval=120 --limit 100us --dry-run   print the plan\n  \
        sudo onbeat prove --script ./switch --limit 50us       calls ./switch a, ./switch b\n  \
        sudo onbeat prove --resume DIR                         continue an interrupted experiment\n  \
        sudo onbeat prove --change swap --limit 1ms -- ./robot   late cycles of a program\n  \
        onbeat prove --limit 50us --across-boots old1 old2 -- new1 new2   a change that needs a reboot"
)]
pub struct Args {
    /// Change to test: a rule of `onbeat rules` and its value, or a rule alone for its recommended
    /// value; given several times, all together are one change
    #[arg(long = "change", value_name = "RULE[=VALUE]", conflicts_with = "script")]
    changes: Vec<String>,
    /// Program that applies and undoes the change: called as `FILE a` and `FILE b`, without a shell
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Longest time for a call of the script
    #[arg(long, value_name = "SPAN", default_value = "60s", requires = "script")]
    script_time: String,
    /// Runs without the change, `--`, runs with the change: bundles of several boots
    #[arg(long, value_name = "A... -- B", num_args = 1..)]
    #[arg(conflicts_with_all = ["changes", "script", "victim", "program", "cpus", "interval", "priority",
        "loads", "segment", "settle", "at_most", "yes", "dry_run", "folder"])]
    across_boots: Vec<PathBuf>,
    #[command(flatten)]
    conditions: ConditionFlags,
    /// Number of valid pairs after which it ends without a verdict
    #[arg(long, value_name = "N", default_value_t = experiment::design::MOST_PAIRS)]
    pairs: u32,
    /// Length of the warm-up run before the first pair, which does not count
    #[arg(long, value_name = "SPAN", default_value = "20s")]
    warm_up: String,
    /// Longest total time: no pair is started that could not finish within it
    #[arg(long = "for", value_name = "SPAN")]
    at_most: Option<String>,
    /// Also make changes that remove a safeguard, such as throttling
    #[arg(long)]
    yes: bool,
    /// Print what would be measured, in which order, and what would be changed; do nothing
    #[arg(long)]
    dry_run: bool,
    /// Continue an interrupted experiment, given its folder
    #[arg(long, value_name = "DIR")]
    #[arg(conflicts_with_all = ["victim", "program"])]
    #[arg(conflicts_with_all = ["changes", "script", "across_boots", "limit", "cpus", "interval", "priority",
        "loads", "pairs", "warm_up", "segment", "settle", "seed", "dry_run", "folder"])]
    resume: Option<PathBuf>,
    /// Folder for the experiment; by default under ~/.local/state/onbeat/experiments
    #[arg(short = 'o', long = "output", value_name = "DIR", id = "folder")]
    folder: Option<PathBuf>,
    /// Write the answer with its pictures as one self-contained page
    #[arg(long, value_name = "FILE.html")]
    page: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
    /// For onbeat's own process that calls the script if the experiment was killed.
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
            let message = format!("{} (results so far are in {})", failure.message, quoted(&folder));
            Failure { message, ..failure }
        }
        None => failure,
    })?;
    let verdict = print_answer(&mut outputs, args, &folder, &record, &ended)?;
    outputs.print(&format!("kept in {}\n", quoted(&folder)));
    if ended == PairsEnd::Signal {
        remark(&format!("onbeat: interrupted; continue with: onbeat prove --resume {}", quoted(&folder)));
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
            "a change is missing: give --change RULE=VALUE, --script FILE, or --across-boots A... -- B...",
        ))
    } else {
        Ok(())
    }
}
