//! `onbeat suite`: common test recipes, run phase by phase and tabulated.

mod chosen;
pub mod folder;
mod phase;
mod plan_text;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use super::Environment;
use super::flags::labels;
use super::outputs::{OutputFlags, Outputs, no_document, remark};
use super::running::block_signals;
use super::step_settings::{StepSettings, StepWish};
use ::suite::begun::{described, difference};
use ::suite::outcome::{drift, not_run};
use ::suite::phases::{StepChoice, SuiteStep, length, shortens, steps};
use ::suite::recipe::Recipe;
use ::suite::recipes::{RECIPES, named};
use chosen::{Chosen, chosen};
use folder::{folder_of, keep, make_folder, others, read_suite};
use host::rt;
use model::error::{Exit, Failure, Result};
use model::suite::{SUITE_SCHEMA, SuiteLeftOut, SuitePhase, SuiteRun};
use model::text::{quoted, several};
use model::units::Nanos;
use phase::{PhaseEnd, PhaseSetup};
use plan_text::plan_text;
pub use plan_text::spoken;
use report::suite::{last_lines, list, render};

/// Run a standard benchmark suite: one measurement per load
///
/// Each phase is a run of `onbeat measure`, stored as a bundle; the final table has the quantiles
/// and maxima of all phases. A phase whose load failed, or whose run is invalid, is omitted from
/// the table with the reason, and the exit code is 7. Settings of a recipe (preemption models,
/// limits of real-time tasks, a partition) go through the journal of `onbeat tune` and are
/// restored, also after kill -9. Without a name the recipes are listed; a TOML file can define
/// a new one.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat suite                      list the recipes\n  \
        onbeat suite quick                a table in three minutes\n  \
        onbeat suite enea --plan          print the plan: runs, time, changes\n  \
        onbeat suite enea --phase 10s     with short phases\n  \
        onbeat suite enea --with OTHER    next to the results of another kernel\n  \
        sudo onbeat suite throttling --yes   real-time tasks with limits and without")]
pub struct Args {
    /// Name of a recipe, or a TOML file that defines one
    #[arg(value_name = "NAME|FILE")]
    name: Option<String>,
    /// Print what would run, for how long, and what it would change; run nothing
    #[arg(long)]
    plan: bool,
    /// Continue an interrupted suite, given its folder
    #[arg(long, value_name = "DIR", conflicts_with = "output_folder")]
    resume: Option<PathBuf>,
    /// Folders of other suites, whose rows are added to the table
    #[arg(long, value_name = "DIR", num_args = 1..)]
    with: Vec<PathBuf>,
    /// CPUs to measure; by default those of the recipe
    #[arg(short = 'a', long = "affinity", value_name = "CPUS")]
    cpus: Option<String>,
    /// CPUs for the loads; by default those of the recipe
    #[arg(long, value_name = "CPUS")]
    load_cpus: Option<String>,
    /// Length of each phase, instead of the recipe's
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    phase: Option<String>,
    /// Preemption models to compare, of those that the kernel offers
    #[arg(long, value_name = "MODELS", value_delimiter = ',')]
    models: Vec<String>,
    /// Also run phases that remove a safeguard: real-time tasks without a limit
    #[arg(long)]
    yes: bool,
    /// Label of the runs, as build=123; may be given several times, at most 16
    #[arg(long, value_name = "LABEL")]
    label: Vec<String>,
    /// Seed for a shuffled order; drawn and printed by default
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Folder for the suite; by default under ~/.local/state/onbeat/suites
    #[arg(short = 'o', long = "output", value_name = "DIR", id = "output_folder")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

impl Args {
    /// First given flag that has no effect without a suite.
    fn of_a_suite(&self) -> Option<&'static str> {
        let given = [
            ("--with", !self.with.is_empty()),
            ("--plan", self.plan),
            ("-a", self.cpus.is_some()),
            ("--load-cpus", self.load_cpus.is_some()),
            ("--phase", self.phase.is_some()),
            ("--models", !self.models.is_empty()),
            ("--yes", self.yes),
            ("--label", !self.label.is_empty()),
            ("--seed", self.seed.is_some()),
            ("-o", self.folder.is_some()),
        ];
        given.into_iter().find_map(|(flag, is_given)| is_given.then_some(flag))
    }
}

/// Maximum size of a file with a recipe.
const LIMIT: u64 = 16 << 20;

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let before = args.resume.as_deref().map(read_suite).transpose()?;
    let name = args.name.clone().or_else(|| before.as_ref().map(|suite| suite.name.clone()));
    let Some(name) = name else {
        no_document(&args.output.json, "the list of suites", "a suite")?;
        if let Some(flag) = args.of_a_suite() {
            return Err(Failure::usage(format!(
                "{flag} needs a suite: give its name, `onbeat suite` lists them"
            )));
        }
        outputs.print(&overview(outputs.screen.columns));
        return outputs.end(Exit::Ok);
    };
    labels(&args.label)?;
    let recipe = recipe(&name, args.name.is_none())?;
    if let Some(before) = before.as_ref().filter(|before| before.name != recipe.name) {
        let (was, is) = (quoted(&before.name), quoted(&recipe.name));
        return Err(Failure::usage(format!("the suite in that folder is {was}, not {is}: give that name")));
    }
    let kernel = host::release();
    require_same(&recipe, before.as_ref())?;
    let chosen = chosen(args, &recipe, before.as_ref(), &kernel)?;
    if args.plan {
        let mut planned = begun(&recipe, &chosen, &kernel);
        planned.phases = chosen.steps.iter().map(|step| not_run(step, &kernel, "not run yet")).collect();
        planned.left_out.clone_from(&chosen.left_out);
        outputs.json_pretty(&args.output.json, &planned);
        outputs.print(&plan_text(&recipe, &chosen));
        return outputs.end(Exit::Ok);
    }
    require_login(&chosen.steps, environment)?;
    let others = others(args)?;
    let folder = folder_of(args, &recipe, environment)?;
    block_signals()?;
    make_folder(&folder)?;
    let setup = PhaseSetup {
        recipe: &recipe,
        folder: &folder,
        cpus: chosen.cpus.clone(),
        load_cpus: chosen.load_cpus.clone(),
        kernel: &kernel,
        labels: &args.label,
        shows: !args.output.quiet && !environment.dumb && io::stderr().is_terminal(),
    };
    let mut suite = before.unwrap_or_else(|| begun(&recipe, &chosen, &kernel));
    suite.left_out.clone_from(&chosen.left_out);
    forget_found(&mut suite);
    (suite.cpus, suite.load_cpus) = (setup.cpus.to_string(), setup.load_cpus.to_string());
    // A suite killed in its first phase can be resumed too.
    keep(&folder, &suite)?;
    let mut settings =
        StepSettings::new(environment, &chosen.cpus, args.yes, "changing settings for a suite");
    let ran = run_steps(&setup, &chosen.steps, &mut suite, &mut settings);
    outputs.keep(settings.put_back());
    let stopped = ran?;
    suite.phases.extend(others.into_iter().flat_map(|other| other.phases));
    forget_found(&mut suite);
    outputs.print(&render(&suite, outputs.screen.columns, outputs.screen.color));
    outputs.print(&last_lines(&suite, &quoted(&folder), true, outputs.screen.columns, outputs.screen.color));
    outputs.json_pretty(&args.output.json, &suite);
    if stopped {
        let (name, folder) = (quoted(&name), quoted(&folder));
        remark(&format!("onbeat: interrupted; continue with: onbeat suite {name} --resume {folder}"));
        return outputs.end(Exit::Interrupted);
    }
    let ended = outputs.end(Exit::Ok);
    ended.and_then(|exit| invalid_phases(&suite).map_or(Ok(exit), Err))
}

/// The failure of a suite with invalid phases; `None` if all are valid.
fn invalid_phases(suite: &SuiteRun) -> Option<Failure> {
    let invalid = suite.phases.iter().filter(|phase| !phase.valid).count() as u64;
    let which = several(invalid, "phase is", "phases are");
    let message = format!("{which} invalid: see the table for the reasons");
    (invalid > 0).then_some(Failure { exit: Exit::Inconclusive, message })
}

/// Runs the missing phases of this kernel, and writes the document after each; true if a stop
/// signal came.
fn run_steps(
    setup: &PhaseSetup,
    all: &[SuiteStep],
    suite: &mut SuiteRun,
    settings: &mut StepSettings,
) -> Result<bool> {
    let is_row = |phase: &SuitePhase, step: &SuiteStep| phase.id == step.id && phase.kernel == setup.kernel;
    let done = |suite: &SuiteRun, step: &SuiteStep| {
        suite.phases.iter().any(|phase| is_row(phase, step) && phase.valid)
    };
    for (at, step) in all.iter().enumerate() {
        if done(suite, step) {
            continue;
        }
        suite.phases.retain(|phase| !is_row(phase, step));
        if let Err(failure) = settings.switch(wish(step)) {
            let reason = failure.reason()?;
            if rt::stop_pending() {
                return keep(setup.folder, suite).map(|()| true);
            }
            suite.phases.push(not_run(step, setup.kernel, &reason));
            continue;
        }
        let left = all[at + 1..].iter().filter(|step| !done(suite, step));
        let left =
            left.fold(Nanos(0), |sum, step| Nanos(sum.0.saturating_add(length(setup.recipe, step.kind).0)));
        let place = format!("{} of {}", at + 1, all.len());
        match setup.run(step, &place, left)? {
            PhaseEnd::Stopped => return keep(setup.folder, suite).map(|()| true),
            PhaseEnd::Row(row) => suite.phases.push(*row),
        }
        keep(setup.folder, suite)?;
    }
    suite.complete = true;
    suite.drift = drift(&suite.phases);
    keep(setup.folder, suite)?;
    Ok(rt::stop_pending())
}

fn wish(step: &SuiteStep) -> StepWish {
    StepWish { model: step.model.clone(), settings: step.settings.clone(), ..StepWish::default() }
}

/// Removes from the omitted rows those that another boot or suite has measured.
fn forget_found(suite: &mut SuiteRun) {
    let phases = &suite.phases;
    let is_there = |left: &SuiteLeftOut| {
        let row = format!("{}/", left.id);
        phases.iter().any(|phase| phase.id == left.id || phase.id.starts_with(&row))
    };
    suite.left_out.retain(|left| !is_there(left));
}

/// Refuses to resume a suite whose recipe has changed: its rows could not be compared.
fn require_same(recipe: &Recipe, before: Option<&SuiteRun>) -> Result<()> {
    let changed = before.and_then(|before| difference(&before.recipe, &described(recipe)));
    changed.map_or(Ok(()), |what| {
        Err(Failure::usage(format!(
            "--resume: the suite was started with another recipe: {what}: start a new suite"
        )))
    })
}

/// Refuses an isolation over ssh: a change that may cut off the login needs a confirmation from
/// another login, for which a suite cannot wait.
fn require_login(steps: &[SuiteStep], environment: &Environment) -> Result<()> {
    match steps.iter().find(|step| step.isolates()) {
        Some(step) if environment.over_ssh => Err(Failure::usage(format!(
            "{} isolates CPUs, which can disconnect this ssh session: run it as a service, with systemd-run \
             --wait onbeat suite",
            step.id
        ))),
        _ => Ok(()),
    }
}

fn begun(recipe: &Recipe, chosen: &Chosen, kernel: &str) -> SuiteRun {
    let samples = chosen.length.map(|length| length.0 / recipe.interval().0.max(1));
    SuiteRun {
        schema: SUITE_SCHEMA.into(),
        name: recipe.name.clone(),
        title: recipe.title.clone(),
        seed: chosen.seed,
        phase_samples: samples.and_then(|samples| u64::try_from(samples).ok()),
        phase_ns: chosen.length,
        recipe: described(recipe),
        models: chosen.models.clone(),
        kernel: kernel.to_owned(),
        shortened: chosen.length.is_some_and(|length| shortens(recipe, length)),
        limit_ns: recipe.limit_us.and_then(|us| i64::try_from(us).ok()).map(|us| Nanos(us * 1000)),
        ..SuiteRun::default()
    }
}

/// Recipe of a name or a file; `is_resumed` if the name is that of an earlier suite.
fn recipe(name: &str, is_resumed: bool) -> Result<Recipe> {
    if !name.contains(['/', '.']) {
        let in_a_file =
            "--resume: this suite has its recipe in a file: give it, onbeat suite FILE --resume DIR";
        return named(name)
            .map_err(|why| Failure::usage(if is_resumed { in_a_file.to_owned() } else { why }));
    }
    let path = Path::new(name);
    let bytes = host::read_user_file(path, LIMIT).map_err(|error| {
        let what = format!("cannot read {}", quoted(path));
        Failure::of_call(what, &error, Exit::Usage, "give the name of a recipe, or a TOML file")
    })?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::usage(format!("{} is not a text file", quoted(path))))?;
    Recipe::parse(&text, &path.display().to_string()).map_err(Failure::usage)
}

fn overview(columns: usize) -> String {
    let known = RECIPES.iter().filter_map(|(name, _)| named(name).ok());
    let rows = known.map(|recipe| {
        let all = steps(&recipe, StepChoice::default());
        let span = all.iter().fold(0i64, |sum, step| sum + length(&recipe, step.kind).0);
        let each = match (recipe.each_model, &recipe.boots) {
            (true, _) => " for each preemption model",
            (_, Some(_)) => " for each boot",
            _ => "",
        };
        (recipe.name.clone(), format!("{}; {}{each}", recipe.title, spoken(Nanos(span))))
    });
    let rows: Vec<(String, String)> = rows.collect();
    format!("Suites:\n{}\nonbeat suite NAME --plan prints what would run.\n", list(&rows, columns))
}
