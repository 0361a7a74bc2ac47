//! `onbeat tune apply`: makes changes.

use std::path::PathBuf;

use super::plan_flags::{PlanFlags, about};
use crate::cli::Environment;
use crate::cli::flags::positive_span;
use crate::cli::journal::{self, UndoTime};
use crate::cli::outputs::{OutputFlags, Outputs, remark};
use crate::cli::running::block_signals;
use host::rt;
use host::settings::start_keeper;
use model::error::{Exit, Failure, Result};
use model::plan::PlanDocument;
use model::text::quoted;
use model::units::Bare;
use report::tuning::text::{Layout, Stage, render};
use study::audit::MachineSource;
use study::tuning::{admitted_plan, boot_id};
use tune::apply::{ApplyOptions, apply, cuts_off, require_current};
use tune::plan::high_risk;
use tune::undo::undo_abandoned;

/// Apply the changes of a plan
///
/// Each change is recorded on disk before it is made, and read back afterwards. If one fails, the
/// changes before it are undone, unless --keep-going is given. `onbeat tune undo` restores the
/// previous values; nothing lasts beyond the next boot.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  sudo onbeat tune apply --cpus 2-3\n  sudo onbeat tune apply \
        vmstat-interval=120 --for 10m\n  sudo onbeat tune apply --cpus 2-3 --confirm-within 60s; sudo \
        onbeat tune confirm\n  sudo onbeat tune apply --plan plan.json")]
pub struct Args {
    #[command(flatten)]
    what: PlanFlags,
    /// Apply the plan that `tune plan -o FILE` wrote; refused if a value has changed since
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rules", "cpus", "without", "take_over"])]
    plan: Option<PathBuf>,
    /// Also make changes that remove a safeguard, such as throttling
    #[arg(long)]
    yes: bool,
    /// Continue after a failed change
    #[arg(long)]
    keep_going: bool,
    #[command(flatten)]
    end: UndoFlags,
    #[command(flatten)]
    output: OutputFlags,
}

/// Automatic reverting of changes.
#[derive(clap::Args, Debug, Default)]
pub struct UndoFlags {
    /// Revert the changes automatically after SPAN
    #[arg(long = "for", value_name = "SPAN", conflicts_with = "confirm_within")]
    lasting: Option<String>,
    /// Revert the changes automatically unless `onbeat tune confirm` is run within SPAN
    #[arg(long, value_name = "SPAN")]
    confirm_within: Option<String>,
}

impl UndoFlags {
    pub fn time(&self) -> Result<UndoTime> {
        let span = |flag, text: &Option<String>| {
            text.as_deref().map(|text| positive_span(flag, text, Bare::Seconds)).transpose()
        };
        Ok(match (span("--for", &self.lasting)?, span("--confirm-within", &self.confirm_within)?) {
            (Some(after), _) => UndoTime::After(after),
            (None, Some(within)) => UndoTime::UnlessConfirmed(within),
            (None, None) => UndoTime::Never,
        })
    }
}

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let time = args.end.time()?;
    let (plan, words, cpus) = match &args.plan {
        Some(file) => (kept_plan(file)?, quoted(file).to_string(), String::new()),
        None => {
            let planned = args.what.plan(MachineSource::Live)?;
            let words = about(&planned);
            (planned.document, words, planned.intent.cpus.to_string())
        }
    };
    require_consent(&plan, args.yes, time, environment)?;
    let exit = make(
        &mut outputs,
        environment,
        Request {
            plan,
            from_file: args.plan.is_some(),
            keep_going: args.keep_going,
            time,
            cpus: &cpus,
            about: &words,
            json: &args.output.json,
            quiet: args.output.quiet,
        },
    )?;
    outputs.end(exit)
}

/// Refuses a loss of safeguards without --yes; over ssh, refuses a change that may cut off the
/// login unless it is undone without a confirmation.
pub fn require_consent(
    plan: &PlanDocument,
    yes: bool,
    time: UndoTime,
    environment: &Environment,
) -> Result<()> {
    if let (Some(why), false) = (lost_safeguards(plan), yes) {
        return Err(Failure::usage(why));
    }
    let confirmed = matches!(time, UndoTime::UnlessConfirmed(_));
    match plan.changes.iter().find(|change| cuts_off(&change.setting.key)) {
        Some(change) if environment.over_ssh && !confirmed => Err(Failure::usage(format!(
            "{} can disconnect this ssh session: add --confirm-within 60s, then run `onbeat tune confirm` \
             from a new login",
            change.setting.key
        ))),
        _ => Ok(()),
    }
}

/// Error for a plan that removes safeguards, with the alternative.
fn lost_safeguards(plan: &PlanDocument) -> Option<String> {
    let risky = high_risk(plan);
    let instead = if plan.changes.iter().any(|change| change.rule.is_empty()) {
        "remove it from the file".to_owned()
    } else {
        format!("skip it with --without {}", risky.join(" --without "))
    };
    let lost = risky.join(", ");
    (!risky.is_empty()).then(|| format!("{lost} removes a safeguard: add --yes, or {instead}"))
}

/// Maximum size of a plan: one for 10,000 threads takes some megabytes.
const PLAN_LIMIT: u64 = 64 << 20;

fn kept_plan(file: &std::path::Path) -> Result<PlanDocument> {
    let bytes = host::read_user_file(file, PLAN_LIMIT).map_err(|error| {
        let what = format!("cannot read {}", quoted(file));
        Failure::of_call(what, &error, Exit::Usage, "give the file that `onbeat tune plan -o` wrote")
    })?;
    let plan = PlanDocument::parse(&String::from_utf8_lossy(&bytes), &file.display().to_string())?;
    admitted_plan(plan)
}

/// Changes to make, and their report.
pub struct Request<'a> {
    pub plan: PlanDocument,
    /// True if its values may be older than the machine's.
    pub from_file: bool,
    pub keep_going: bool,
    pub time: UndoTime,
    /// Audited CPUs, which onbeat's processes avoid.
    pub cpus: &'a str,
    pub about: &'a str,
    pub json: &'a Option<PathBuf>,
    pub quiet: bool,
}

/// Makes the changes under the lock, and prints the result.
pub fn make(outputs: &mut Outputs, environment: &Environment, request: Request) -> Result<Exit> {
    let boot = boot_id()?;
    if request.plan.changes.is_empty() {
        outputs.json_pretty(request.json, &request.plan);
        let layout = layout(outputs);
        outputs.print(&render(&request.plan, Stage::Applied, request.about, layout));
        return Ok(Exit::Ok);
    }
    let mut journal = journal::lock("changing settings")?;
    // From here on a stop undoes the changes, instead of leaving that to the next command.
    block_signals()?;
    let abandoned = undo_abandoned(&mut journal.kernel, &mut *journal.store, &boot)?;
    if !abandoned.is_empty() && !request.quiet {
        remark(&format!("onbeat: undid entry {} of a killed command", abandoned.join(", ")));
    }
    if request.from_file {
        require_current(&journal.kernel, &request.plan, &boot)?;
    }
    let opened = journal::opened(&boot, request.cpus, environment, request.time);
    let keeper = |id: &str| match request.time {
        UndoTime::Never => Ok(()),
        _ => start_keeper(id),
    };
    let options = ApplyOptions { keep_going: request.keep_going, stop: &rt::stop_pending, started: &keeper };
    let result = apply(&mut journal.kernel, &mut *journal.store, opened, request.plan, &options)?;
    outputs.json_pretty(request.json, &result.document);
    let layout = layout(outputs);
    outputs.print(&render(&result.document, Stage::Applied, request.about, layout));
    if let Some(failure) = result.failure {
        return Err(failure);
    }
    if !request.quiet {
        say_when_undone(request.time, &result.document.id);
    }
    Ok(Exit::Ok)
}

fn say_when_undone(time: UndoTime, id: &str) {
    match time {
        UndoTime::UnlessConfirmed(span) => remark(&format!(
            "onbeat: reverts in {} s unless you run: onbeat tune confirm {id}",
            span.0 / 1_000_000_000
        )),
        UndoTime::After(span) => remark(&format!("onbeat: reverts automatically in {}", span.spoken())),
        UndoTime::Never | UndoTime::WithProcess => {}
    }
}

fn layout(outputs: &Outputs) -> Layout {
    Layout { columns: outputs.screen.columns, color: outputs.screen.color, verbose: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::plan::PlannedChange;
    use model::setting::{Risk, Setting};

    #[test]
    fn what_is_refused_names_the_flags_that_leave_it_out() {
        let change = |key: &str, rule: &str, risk| {
            let setting = Setting { risk, ..Setting::new(key.parse().expect("a key"), "0") };
            PlannedChange::new(setting, rule, "1")
        };
        let plan = |changes| PlanDocument::new("b", changes, Vec::new());
        let server =
            || change("sysfs:kernel/debug/sched/fair_server/cpu2/runtime", "fair-server", Risk::High);
        let throttling = || change("sysctl:kernel.sched_rt_runtime_us", "rt-throttling", Risk::High);
        let harmless = || change("sysctl:vm.stat_interval", "vmstat-interval", Risk::Low);
        let refused = lost_safeguards(&plan(vec![harmless(), server(), throttling()])).expect("a refusal");
        assert!(
            refused.ends_with("add --yes, or skip it with --without fair-server --without rt-throttling"),
            "{refused}"
        );
        assert_eq!(lost_safeguards(&plan(vec![harmless()])), None);
    }
}
