//! Parameters of a recipe's phases, from the flags, the machine and a suite that is resumed.

use super::Args;
use super::folder::{as_begun, kept_cpus};
use crate::cli::flags::{cpu_list, positive_span};
use crate::cli::outputs::remark;
use crate::cli::step_settings::offered;
use ::suite::phases::{StepChoice, SuiteStep, steps};
use ::suite::recipe::Recipe;
use ::suite::recipe_phase::{LoadOn, StepKind};
use ::suite::setting::SuiteSetting;
use facts::cmdline::parse_cmdline;
use facts::gather;
use host::{MachineFiles, random_u64, rt};
use model::error::{Exit, Failure, Result};
use model::suite::{SuiteLeftOut, SuiteRun};
use model::text::quoted;
use model::units::{Bare, CpuSet, Nanos, named_cpus};
use model::vocabulary::Preempt;

/// Parameters that the flags leave open.
pub struct Chosen {
    pub steps: Vec<SuiteStep>,
    /// Rows that are not measured now.
    pub left_out: Vec<SuiteLeftOut>,
    pub models: Vec<String>,
    pub cpus: CpuSet,
    pub load_cpus: CpuSet,
    pub seed: u64,
    /// Length of every phase, in place of the recipe's.
    pub length: Option<Nanos>,
}

pub fn chosen(args: &Args, recipe: &Recipe, before: Option<&SuiteRun>, kernel: &str) -> Result<Chosen> {
    let models = chosen_models(args, recipe, before.filter(|before| before.kernel == kernel))?;
    let phase =
        args.phase.as_deref().map(|text| positive_span("--phase", text, Bare::Seconds)).transpose()?;
    let begun = before.filter(|before| !before.cpus.is_empty());
    let of_samples =
        |samples: u64| Nanos(recipe.interval().0.saturating_mul(i64::try_from(samples).unwrap_or(i64::MAX)));
    let kept = begun.map(|before| before.phase_ns.or(before.phase_samples.map(of_samples)));
    as_begun("--phase", phase.map(Some).as_ref(), kept.as_ref())?;
    as_begun("--seed", args.seed.as_ref(), before.map(|suite| &suite.seed))?;
    let length = kept.unwrap_or(phase);
    let seed = args.seed.or(before.map(|suite| suite.seed)).unwrap_or_else(|| random_u64() >> 32);
    let mut left_out = Vec::new();
    let boot = match &recipe.boots {
        None => String::new(),
        Some(boots) => {
            let (row, (other, why)) = boots.rows(has_word(&boots.word)?, is_rt());
            left_out.push(SuiteLeftOut { id: other.to_owned(), why });
            row.to_owned()
        }
    };
    let mut steps = steps(recipe, StepChoice { models: &models, boot: &boot, length, seed });
    if !args.yes {
        let without_limit = |step: &SuiteStep| step.settings.iter().any(SuiteSetting::is_without_limit);
        let why = "only its own clock would end the spinning thread: needs --yes";
        let left = steps.iter().filter(|step| without_limit(step));
        left_out.extend(left.map(|step| SuiteLeftOut { id: step.id.clone(), why: why.to_owned() }));
        steps.retain(|step| !without_limit(step));
    }
    let (cpus, load_cpus) = chosen_cpus(args, recipe, begun)?;
    Ok(Chosen { steps, left_out, models, cpus, load_cpus, seed, length })
}

fn chosen_cpus(args: &Args, recipe: &Recipe, begun: Option<&SuiteRun>) -> Result<(CpuSet, CpuSet)> {
    let given =
        |flag: &str, text: &Option<String>| text.as_deref().map(|text| cpu_list(flag, text)).transpose();
    let (cpus, load_cpus) = (given("-a", &args.cpus)?, given("--load-cpus", &args.load_cpus)?);
    let permitted = permitted()?;
    let (measured, load) = match begun {
        None => {
            let divided = divided(recipe, &permitted);
            match &cpus {
                // The recipe's choice is not checked.
                Some(cpus) => (cpus.clone(), load_beside(recipe, cpus, &permitted)),
                None => divided?,
            }
        }
        Some(before) => {
            let (measured, load) = (kept_cpus(&before.cpus)?, kept_cpus(&before.load_cpus)?);
            as_begun("-a", cpus.as_ref(), Some(&measured))?;
            as_begun("--load-cpus", load_cpus.as_ref(), Some(&load))?;
            (measured, load)
        }
    };
    if spins(recipe) && permitted.without(&measured).is_empty() {
        return Err(Failure::usage(format!(
            "threads that never sleep on {} leave no CPU for other tasks: exclude one with -a",
            named_cpus(&measured)
        )));
    }
    Ok((measured, load_cpus.unwrap_or(load)))
}

/// Divides the permitted CPUs into measured ones and those of the load.
///
/// # Errors
/// There are too few to divide.
fn divided(recipe: &Recipe, permitted: &CpuSet) -> Result<(CpuSet, CpuSet)> {
    if spins(recipe) {
        let first: CpuSet = permitted.iter().take(1).collect();
        return match permitted.len() {
            0 | 1 => Err(Failure::not_supported(format!(
                "{} keeps the measured CPUs busy with real-time threads: it needs a machine with two or more \
                 CPUs",
                recipe.name
            ))),
            _ => Ok((permitted.without(&first), first)),
        };
    }
    match recipe.load_on {
        LoadOn::Same | LoadOn::All => Ok((permitted.clone(), permitted.clone())),
        LoadOn::Other if permitted.len() < 2 => Err(Failure::not_supported(format!(
            "{} loads other CPUs than it measures: it needs a machine with two or more CPUs",
            recipe.name
        ))),
        LoadOn::Other => {
            let load: CpuSet = permitted.iter().take(permitted.len() / 2).collect();
            Ok((permitted.without(&load), load))
        }
    }
}

/// CPUs of the load for given measured ones.
fn load_beside(recipe: &Recipe, measured: &CpuSet, permitted: &CpuSet) -> CpuSet {
    match recipe.load_on {
        LoadOn::Other => permitted.without(measured),
        LoadOn::Same | LoadOn::All => permitted.clone(),
    }
}

/// True if a phase runs a real-time thread that never sleeps on each measured CPU.
fn spins(recipe: &Recipe) -> bool {
    recipe.phases.iter().any(|phase| matches!(phase.kind(), StepKind::Spin { .. }))
}

/// Models to switch to; none if the recipe does not request any, or the kernel cannot switch. A
/// suite begun on this kernel keeps its models.
fn chosen_models(args: &Args, recipe: &Recipe, begun: Option<&SuiteRun>) -> Result<Vec<String>> {
    if let Some(begun) = begun {
        let given = Some(&args.models).filter(|models| !models.is_empty());
        as_begun("--models", given, Some(&begun.models))?;
        return Ok(begun.models.clone());
    }
    if !recipe.each_model && args.models.is_empty() {
        return Ok(Vec::new());
    }
    match (offered(), args.models.as_slice()) {
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

/// True if a word is on the kernel's command line.
fn has_word(word: &str) -> Result<bool> {
    let files = MachineFiles::live();
    let line = files.read_text("/proc/cmdline").parse(|text| parse_cmdline(&text));
    line.known()
        .map(|line| line.has(word))
        .ok_or_else(|| Failure::not_supported("cannot read /proc/cmdline to identify this boot: mount /proc"))
}

fn is_rt() -> bool {
    gather(&MachineFiles::live()).preempt == Preempt::Rt
}

fn permitted() -> Result<CpuSet> {
    rt::affinity().map_err(|error| {
        Failure::of_call("cannot read the CPUs of this process", &error, Exit::Internal, "name some with -a")
    })
}
