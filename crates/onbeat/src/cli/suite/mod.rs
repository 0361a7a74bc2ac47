//! `onbeat suite`: the field's test recipes, run phase by phase and tabulated.

mod folder;
mod models;
mod phase;

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use super::Environment;
use super::flags::{cpu_list, positive_span};
use super::outputs::{OutputFlags, Outputs, remark};
use super::running::block_signals;
use ::suite::outcome::{drift, not_run};
use ::suite::phases::{SuiteStep, length, steps};
use ::suite::recipe::Recipe;
use ::suite::recipes::{RECIPES, named};
use folder::{as_begun, folder_of, keep, kept_cpus, make_folder, others, read_suite};
use host::{random_u64, rt};
use model::error::{Exit, Failure, Result};
use model::suite::{SUITE_SCHEMA, SuiteRun};
use model::text::{quoted, several};
use model::units::{Bare, CpuSet, Nanos};
use phase::{PhaseEnd, PhaseSetup, divided, spoken};
use report::suite::{list, render};

/// Run a test recipe of the field: phases of measuring, each under its load
///
/// Each phase is a run of `onbeat measure`, kept as a bundle; at the end there is a table of all,
/// with quantiles beside the maxima. A phase whose load did not load, or whose run is invalid, is
/// left out of the table with the reason, and the exit code is 7. Where a recipe compares
/// preemption models, they are switched through the journal of `onbeat tune` and put back, also
/// after a kill -9. Without a name the recipes are listed; a FILE.toml of your own is one too.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
        onbeat suite                      the recipes\n  \
        onbeat suite quick                a table of this machine in three minutes\n  \
        onbeat suite enea --plan          what would run, for how long, what it changes\n  \
        onbeat suite enea --phase 10s     the same with short phases\n  \
        onbeat suite enea --with OTHER    beside what another kernel gave")]
pub struct Args {
    /// A recipe's name, or a file with one
    #[arg(value_name = "NAME|FILE")]
    name: Option<String>,
    /// Say what would run, for how long, and what it would change; run nothing
    #[arg(long)]
    plan: bool,
    /// Go on with a suite that was interrupted: its folder
    #[arg(long, value_name = "DIR", conflicts_with = "output_folder")]
    resume: Option<PathBuf>,
    /// Folders of other suites, whose rows come into the table
    #[arg(long, value_name = "DIR", num_args = 1..)]
    with: Vec<PathBuf>,
    /// Measured CPUs; by default as the recipe says
    #[arg(short = 'a', long = "affinity", value_name = "CPUS")]
    cpus: Option<String>,
    /// CPUs of the load; by default as the recipe says
    #[arg(long, value_name = "CPUS")]
    load_cpus: Option<String>,
    /// Length of each phase in place of the recipe's
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    phase: Option<String>,
    /// The preemption models to compare, among those that the kernel offers
    #[arg(long, value_name = "MODELS", value_delimiter = ',')]
    models: Vec<String>,
    /// What a shuffled order follows from; drawn and printed by default
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The folder to keep the suite in; by default under ~/.local/state/onbeat/suites
    #[arg(short = 'o', long = "output", value_name = "DIR", id = "output_folder")]
    folder: Option<PathBuf>,
    #[command(flatten)]
    output: OutputFlags,
}

/// No document is longer.
const LIMIT: u64 = 16 << 20;

pub fn run(args: &Args, environment: &Environment) -> Result<Exit> {
    let mut outputs = Outputs::of(&[&args.output.json], environment)?;
    let before = args.resume.as_deref().map(read_suite).transpose()?;
    let name = args.name.clone().or_else(|| before.as_ref().map(|suite| suite.name.clone()));
    let Some(name) = name else {
        outputs.print(&overview(outputs.screen.columns));
        return outputs.end(Exit::Ok);
    };
    let recipe = recipe(&name)?;
    if let Some(before) = before.as_ref().filter(|before| before.name != recipe.name) {
        let (was, is) = (quoted(&before.name), quoted(&recipe.name));
        return Err(Failure::usage(format!("the suite in that folder is {was}, not {is}: name that one")));
    }
    let chosen = chosen(args, &recipe, before.as_ref())?;
    if args.plan {
        let Chosen { cpus, load_cpus, seed, .. } = &chosen;
        let words = format!("measured: CPU {cpus}; load: CPU {load_cpus}; seed {seed}\n");
        outputs.print(&(plan_text(&recipe, &chosen.steps) + &words));
        return outputs.end(Exit::Ok);
    }
    let others = others(args)?;
    let folder = folder_of(args, &recipe, environment)?;
    block_signals()?;
    make_folder(&folder)?;
    let kernel = host::release();
    let setup = PhaseSetup {
        recipe: &recipe,
        folder: &folder,
        cpus: chosen.cpus,
        load_cpus: chosen.load_cpus,
        kernel: &kernel,
        shows: !args.output.quiet && !environment.dumb && io::stderr().is_terminal(),
    };
    let mut suite = before.unwrap_or_else(|| empty(&recipe, chosen.seed));
    suite.phase_samples = chosen.samples;
    (suite.cpus, suite.load_cpus) = (setup.cpus.to_string(), setup.load_cpus.to_string());
    let lengths = chosen.steps.iter().map(|step| step.samples);
    suite.shortened |=
        lengths.zip(recipe.phases.iter().cycle()).any(|(samples, phase)| samples < phase.samples);
    // Killed in its first phase, it can be gone on with too.
    keep(&folder, &suite)?;
    let stopped = run_steps(&setup, &chosen.steps, &mut suite, environment)?;
    suite.phases.extend(others.into_iter().flat_map(|other| other.phases));
    outputs.print(&render(&suite, outputs.screen.columns, outputs.screen.color));
    outputs.print(&format!("kept in {}\n", quoted(&folder)));
    outputs.json_pretty(&args.output.json, &suite);
    if stopped {
        let (name, folder) = (quoted(&name), quoted(&folder));
        remark(&format!("onbeat: interrupted; go on with: onbeat suite {name} --resume {folder}"));
        return outputs.end(Exit::Interrupted);
    }
    match suite.phases.iter().filter(|phase| !phase.valid).count() as u64 {
        0 => outputs.end(Exit::Ok),
        holes => {
            let which = several(holes, "phase is", "phases are");
            let message = format!("{which} invalid: the table shows which and why");
            outputs.end(Exit::Ok).and(Err(Failure { exit: Exit::Inconclusive, message }))
        }
    }
}

/// What the flags leave open, decided.
struct Chosen {
    steps: Vec<SuiteStep>,
    cpus: CpuSet,
    load_cpus: CpuSet,
    seed: u64,
    /// In place of the recipe's.
    samples: Option<u64>,
}

fn chosen(args: &Args, recipe: &Recipe, before: Option<&SuiteRun>) -> Result<Chosen> {
    let models = chosen_models(args, recipe)?;
    let phase =
        args.phase.as_deref().map(|text| positive_span("--phase", text, Bare::Seconds)).transpose()?;
    let samples = phase.map(|phase| u64::try_from(phase.0 / recipe.interval().0.max(1)).unwrap_or(1).max(1));
    let begun = before.filter(|before| !before.cpus.is_empty());
    let kept = begun.map(|before| before.phase_samples);
    as_begun("--phase", samples.map(Some).as_ref(), kept.as_ref())?;
    as_begun("--seed", args.seed.as_ref(), before.map(|suite| &suite.seed))?;
    let samples = kept.unwrap_or(samples);
    let seed = args.seed.or(before.map(|suite| suite.seed)).unwrap_or_else(|| random_u64() >> 32);
    let given =
        |flag: &str, text: &Option<String>| text.as_deref().map(|text| cpu_list(flag, text)).transpose();
    let (cpus, load_cpus) = (given("-a", &args.cpus)?, given("--load-cpus", &args.load_cpus)?);
    let (measured, load) = match begun {
        None => divided(recipe, &permitted()?)?,
        Some(before) => {
            let (measured, load) = (kept_cpus(&before.cpus)?, kept_cpus(&before.load_cpus)?);
            as_begun("-a", cpus.as_ref(), Some(&measured))?;
            as_begun("--load-cpus", load_cpus.as_ref(), Some(&load))?;
            (measured, load)
        }
    };
    Ok(Chosen {
        steps: steps(recipe, &models, samples, seed),
        cpus: cpus.unwrap_or(measured),
        load_cpus: load_cpus.unwrap_or(load),
        seed,
        samples,
    })
}

/// Runs what is not there yet, and keeps the document after each; true if a stop signal came.
fn run_steps(
    setup: &PhaseSetup,
    all: &[SuiteStep],
    suite: &mut SuiteRun,
    environment: &Environment,
) -> Result<bool> {
    let done = |suite: &SuiteRun, step: &SuiteStep| {
        // A recipe may have been changed since.
        suite.phases.iter().any(|phase| phase.id == step.id && phase.load == step.load && phase.valid)
    };
    let mut switched = None;
    let mut model = String::new();
    for (at, step) in all.iter().enumerate() {
        if done(suite, step) {
            continue;
        }
        suite.phases.retain(|phase| phase.id != step.id || phase.kernel != setup.kernel);
        if step.model != model {
            let switch = match &mut switched {
                Some(switched) => switched,
                none => none.insert(models::Switched::begin()?),
            };
            model.clone_from(&step.model);
            if let Err(failure) = switch.switch(&model, environment) {
                suite.phases.push(not_run(step, setup.kernel, &failure.message));
                model.clear();
                continue;
            }
        }
        let left = all[at + 1..].iter().filter(|step| !done(suite, step));
        let left = left.fold(Nanos(0), |sum, step| Nanos(sum.0.saturating_add(length(setup.recipe, step).0)));
        let place = format!("{} of {}", at + 1, all.len());
        match setup.run(step, &place, left)? {
            PhaseEnd::Stopped => return keep(setup.folder, suite).map(|()| true),
            PhaseEnd::Row(row) => suite.phases.push(*row),
        }
        keep(setup.folder, suite)?;
    }
    if let Some(switched) = &mut switched {
        switched.put_back()?;
    }
    suite.complete = true;
    suite.drift = drift(&suite.phases);
    keep(setup.folder, suite)?;
    Ok(rt::stop_pending())
}

fn empty(recipe: &Recipe, seed: u64) -> SuiteRun {
    SuiteRun {
        schema: SUITE_SCHEMA.into(),
        name: recipe.name.clone(),
        title: recipe.title.clone(),
        seed,
        limit_ns: recipe.limit_us.and_then(|us| i64::try_from(us).ok()).map(|us| Nanos(us * 1000)),
        ..SuiteRun::default()
    }
}

fn recipe(name: &str) -> Result<Recipe> {
    if !name.contains(['/', '.']) {
        return named(name).map_err(Failure::usage);
    }
    let path = Path::new(name);
    let bytes = host::read_user_file(path, LIMIT).map_err(|error| {
        let what = format!("cannot read {}", quoted(path));
        Failure::of_call(what, &error, Exit::Usage, "name a recipe, or a file with one")
    })?;
    let text =
        String::from_utf8(bytes).map_err(|_| Failure::usage(format!("{} is no text", quoted(path))))?;
    Recipe::parse(&text, &path.display().to_string()).map_err(Failure::usage)
}

/// The models to switch to; none where the recipe does not ask, or the kernel cannot.
fn chosen_models(args: &Args, recipe: &Recipe) -> Result<Vec<String>> {
    if !recipe.each_model && args.models.is_empty() {
        return Ok(Vec::new());
    }
    match (models::offered(), args.models.as_slice()) {
        (Err(why), []) => {
            remark(&format!("onbeat: {why}"));
            Ok(Vec::new())
        }
        (Err(why), _) => Err(Failure::not_supported(why)),
        (Ok(offered), []) => Ok(offered),
        (Ok(offered), wanted) => match wanted.iter().find(|model| !offered.contains(model)) {
            None => Ok(wanted.to_vec()),
            Some(model) => Err(Failure::not_supported(format!(
                "this kernel cannot switch to {}: it offers {}",
                quoted(model),
                offered.join(" ")
            ))),
        },
    }
}

fn permitted() -> Result<CpuSet> {
    rt::affinity().map_err(|error| {
        Failure::of_call("this process's CPUs cannot be read", &error, Exit::Internal, "name some with -a")
    })
}

fn overview(columns: usize) -> String {
    let known = RECIPES.iter().filter_map(|(name, _)| named(name).ok());
    let rows = known.map(|recipe| {
        let span = steps(&recipe, &[], None, 0).iter().fold(0i64, |sum, step| sum + length(&recipe, step).0);
        let each = if recipe.each_model { " for each preemption model" } else { "" };
        (recipe.name.clone(), format!("{}; {}{each}", recipe.title, spoken(Nanos(span))))
    });
    let rows: Vec<(String, String)> = rows.collect();
    format!("Suites:\n{}\nonbeat suite NAME --plan says what would run.\n", list(&rows, columns))
}

fn plan_text(recipe: &Recipe, all: &[SuiteStep]) -> String {
    let mut text = format!("{}: {}\n", recipe.name, recipe.title);
    for (at, step) in all.iter().enumerate() {
        let load = if step.load.is_empty() { "no load" } else { &step.load };
        let span = spoken(length(recipe, step));
        text += &format!("{:>4}  {}: {load}, {} samples per CPU, {span}\n", at + 1, step.id, step.samples);
    }
    let sum = all.iter().fold(0i64, |sum, step| sum.saturating_add(length(recipe, step).0));
    let changes = match all.iter().any(|step| !step.model.is_empty()) {
        true => "it switches the preemption model, and puts back the one in use",
        false => "it changes no setting",
    };
    text += &format!(
        "in all {}; every {} with SCHED_FIFO {}; {changes}\n",
        spoken(Nanos(sum)),
        recipe.interval(),
        recipe.priority
    );
    text
}
