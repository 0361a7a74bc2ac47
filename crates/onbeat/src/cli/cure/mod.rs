//! `onbeat cure`: measure, hunt, change, prove, keep or undo, until the limit is held.

mod answer;
mod attempt;
mod chosen;
mod course;
pub mod folder;
mod plan_text;
mod program;

use std::path::PathBuf;

use super::Environment;
use super::condition_flags::ConditionFlags;
use super::outputs::{OutputFlags, Outputs, remark};
use super::running::block_signals;
use super::step_settings::StepSettings;
use answer::{exit, print_answer};
use chosen::{ChosenCure, chosen, resumed};
use course::{CourseEnd, CureCourse};
use experiment::cure::CureEnd;
use folder::{folder_of, read_record};
use model::cure::{CURE_SCHEMA, CureRun};
use model::error::{Exit, Failure, Result};
use model::text::quoted;
use plan_text::plan_text;
use study::tuning::boot_id;

/// Find and fix the causes of late wake-ups until the limit holds
///
/// Measures; if a wake-up is later than --limit, hunts for the causes, takes the culprit that costs
/// most, and tries the changes that its rule names and that the audit finds missing, one at a time.
/// Each is proven in new pairs of runs, as with `onbeat prove`; proven changes stay, all others are
/// undone. A change has to win twice, the n-th at an e-value of 20 n (n + 1). No change is tried
/// against a culprit that took less than 1 % of the time lost and decided no late wake-up. It ends
/// when a run that began after the last change supports the limit for --horizon, when nothing is
/// left to try, when two rounds found no proven change, or when the time of --for is over.
///
/// With --victim or a program, late cycles are counted, each run is a hunt that follows the
/// program, and the findings of `onbeat check` are listed for you to fix; -a names the CPUs of its
/// threads.
///
/// Only changes of low risk are tried unless --yes is given, and never one that could disconnect
/// the machine. Unproven changes are undone however the command ends, kill -9 included. Changes
/// that stay are listed by `onbeat tune status`, undone by `onbeat tune undo`, and made permanent
/// by `onbeat tune export`.
///
/// Exit codes: 0 the limit holds, 3 it does not, 7 undecided.
#[derive(clap::Args)]
#[command(
    mut_arg("quiet", |arg| arg.help("Print no notes and no progress on standard error")),
    after_help = "Examples:\n  \
        sudo onbeat cure --limit 100us -a 2-3 --load mem\n  \
        onbeat cure --limit 100us -a 2-3 --dry-run          list possible changes\n  \
        sudo onbeat cure --limit 50us --horizon 1h --for 8h --yes --page story.html\n  \
        sudo onbeat cure --limit 1ms -a 2-3 -- ./robot          late cycles of a program\n  \
        sudo onbeat cure --resume DIR                       continue an interrupted cure"
)]
pub struct Args {
    #[command(flatten)]
    conditions: ConditionFlags,
    /// Time for which the limit must be supported; the last run is three times as long
    #[arg(long, value_name = "SPAN", default_value = "10m")]
    horizon: String,
    /// Longest total time
    #[arg(long = "for", value_name = "SPAN", default_value = "2h")]
    at_most: String,
    /// Length of the run before the first change and after each proven change
    #[arg(long, value_name = "SPAN", default_value = "20s")]
    look: String,
    /// Length of each hunt
    #[arg(long, value_name = "SPAN", default_value = "30s")]
    hunt: String,
    /// Also try changes that slow down other programs or remove a safeguard
    #[arg(long)]
    yes: bool,
    /// Print what would be measured and tried, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Continue an interrupted cure, given its folder
    #[arg(long, value_name = "DIR")]
    #[arg(conflicts_with_all = ["limit", "horizon", "at_most", "cpus", "interval", "priority", "loads",
        "look", "hunt", "segment", "settle", "seed", "yes", "dry_run", "folder", "victim", "program"])]
    resume: Option<PathBuf>,
    /// Folder for all results; by default under ~/.local/state/onbeat/cures
    #[arg(short = 'o', long = "output", value_name = "DIR", id = "folder")]
    folder: Option<PathBuf>,
    /// Write all steps with their pictures as one self-contained page
    #[arg(long, value_name = "FILE.html")]
    page: Option<PathBuf>,
    /// Write all steps as Markdown; `-` is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.page, &args.markdown, &args.output.json], environment)?;
    let before = args.resume.as_deref().map(read_record).transpose()?;
    let chosen = match &before {
        Some(record) => resumed(record)?,
        None => chosen(args, environment)?,
    };
    if args.dry_run {
        let text = plan_text(&chosen)?;
        let record = before.map_or_else(|| begun_as(&chosen), Ok)?;
        outputs.json_pretty(&args.output.json, &record);
        outputs.print_lines(&text);
        return outputs.end(Exit::Ok);
    }
    let mut settings = StepSettings::new(environment, &chosen.cpus, chosen.plan.yes, "curing a machine");
    // Taking the lock undoes unproven changes of a killed cure.
    settings.lock()?;
    block_signals()?;
    let mut record = match args.resume.as_deref() {
        // Another onbeat may have continued it before this one had the lock.
        Some(folder) => kept_record(folder, &mut settings)?,
        None => begun_as(&chosen)?,
    };
    let folder = folder_of(args, environment)?;
    let course = CureCourse::new(&folder, &chosen, args.output.quiet, environment);
    let ran = course.run(&mut record, settings);
    if let Err(failure) = &ran {
        // Changes in force are reported whatever went wrong.
        if record.kept_changes() > 0 {
            record.why.clone_from(&failure.message);
            print_answer(&mut outputs, args, &folder, &mut record)?;
        }
    }
    let ended = ran.map_err(|failure| with_folder(failure, &folder))?;
    print_answer(&mut outputs, args, &folder, &mut record)?;
    outputs.print(&format!("kept in {}\n", quoted(&folder)));
    match ended {
        CourseEnd::Spoiled(why) => {
            let remedy = "fix that first, or choose another load";
            remark(&format!("onbeat: the runs are invalid: {why}: {remedy}"));
            outputs.end(Exit::Inconclusive)
        }
        CourseEnd::Ended(CureEnd::Signal) => {
            remark(&format!("onbeat: interrupted; continue with: onbeat cure --resume {}", quoted(&folder)));
            outputs.end(Exit::Interrupted)
        }
        CourseEnd::Ended(end) => outputs.end(exit(end, &record)),
    }
}

/// Record of a cure before its first move.
fn begun_as(chosen: &ChosenCure) -> Result<CureRun> {
    Ok(CureRun {
        schema: CURE_SCHEMA.into(),
        limit_ns: chosen.plan.limit_ns,
        plan: chosen.plan.clone(),
        kernel: host::release(),
        boot: boot_id()?,
        ..CureRun::default()
    })
}

/// Record of a cure to resume, whose changes must still be in force.
fn kept_record(folder: &std::path::Path, settings: &mut StepSettings) -> Result<CureRun> {
    let mut record = read_record(folder)?;
    resumed(&record)?;
    let (kept, last) = (record.kept_changes(), record.steps.len().saturating_sub(1));
    let measured = record.runs.iter().any(|run| run.changes == kept);
    for (at, step) in record.steps.iter_mut().enumerate().filter(|(_, step)| step.kept) {
        if settings.stays(&step.entry)? == Some(true) {
            continue;
        }
        // Killed before it became permanent, it was undone, and is kept anew.
        if at == last && !measured {
            (step.kept, step.entry, step.why) = (false, String::new(), String::new());
            continue;
        }
        return Err(Failure::usage(format!(
            "--resume: the proven change {} is no longer in force: start a new cure",
            quoted(std::path::Path::new(&step.change))
        )));
    }
    Ok(record)
}

fn with_folder(failure: Failure, folder: &std::path::Path) -> Failure {
    let message = format!("{} (results so far are in {})", failure.message, quoted(folder));
    Failure { message, ..failure }
}
