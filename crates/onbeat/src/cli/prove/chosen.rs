//! Parameters of an experiment, from the flags and the machine, before its first segment.

use std::path::Path;

use super::timing::require_time;
use super::{Args, require_one_change};
use crate::cli::Environment;
use crate::cli::condition_flags::{require_kernel, run_length};
use crate::cli::flags::positive_span;
use ::suite::setting::SuiteSetting;
use ::tune::plan::{PlanRequest, RuleRequest, high_risk};
use experiment::design::{ALLOWED_PAIRS, LEAST_PAIRS};
use host::switch_script::SwitchScript;
use model::error::{Exit, Failure, Result};
use model::experiment::{ExperimentPlan, ExperimentRun};
use model::plan::PlanDocument;
use model::text::quoted;
use model::units::{Bare, CpuSet, Nanos};
use rules::intent::Profile;
use study::audit::MachineSource;
use study::tuning::plan_tuning;

/// Fixed parameters and the means to make the change.
pub struct ChosenProof {
    pub plan: ExperimentPlan,
    pub cpus: CpuSet,
    pub settings: Vec<SuiteSetting>,
    pub script: Option<SwitchScript>,
    pub script_time: Nanos,
    pub warm_up: Nanos,
    /// Time limit for all pairs together.
    pub at_most: Option<Nanos>,
}

/// Parameters from the flags.
pub fn chosen(args: &Args, environment: &Environment) -> Result<ChosenProof> {
    require_one_change(args)?;
    let settings = settings(&args.changes)?;
    let (conditions, cpus) = args.conditions.plan(environment)?;
    let plan = ExperimentPlan {
        settings: args.changes.clone(),
        script: args.script.as_ref().map_or_else(String::new, |path| path.display().to_string()),
        most_pairs: most_pairs(args.pairs)?,
        ..conditions
    };
    let chosen = with_change(args, plan, cpus, settings)?;
    // A resumed experiment may run in parts.
    require_time(&chosen.plan, chosen.warm_up, chosen.at_most)?;
    Ok(chosen)
}

/// Parameters from a record, all of them unchanged.
pub fn resumed(args: &Args, record: &ExperimentRun) -> Result<ChosenProof> {
    require_kernel(&record.kernel, "start a new experiment")?;
    let damaged = |_| Failure::usage("--resume: its record has no CPUs: start a new experiment");
    let cpus = CpuSet::parse(&record.plan.cpus).map_err(damaged)?;
    let settings = settings(&record.plan.settings)?;
    with_change(args, record.plan.clone(), cpus, settings)
}

fn with_change(
    args: &Args,
    plan: ExperimentPlan,
    cpus: CpuSet,
    settings: Vec<SuiteSetting>,
) -> Result<ChosenProof> {
    let script = match plan.script.as_str() {
        "" => None,
        path => Some(SwitchScript::open(Path::new(path)).map_err(|error| {
            let what = format!("--script: cannot call {}", quoted(Path::new(path)));
            Failure::of_call(what, &error, Exit::Usage, "give an executable file")
        })?),
    };
    let change = match &script {
        Some(script) => quoted(script.path()).to_string(),
        None => plan.settings.join(" "),
    };
    // The path remains valid from another folder.
    let path = script.as_ref().map_or_else(String::new, |script| script.path().display().to_string());
    // Records of older versions do not contain these: the defaults apply.
    let asked = || positive_span("--script-time", &args.script_time, Bare::Seconds);
    let script_time = plan.script_time_ns.map_or_else(asked, Ok)?;
    let warm_up = plan.warm_up_ns.map_or_else(|| run_length("--warm-up", &args.warm_up), Ok)?;
    Ok(ChosenProof {
        plan: ExperimentPlan {
            change,
            script: path,
            script_time_ns: script.as_ref().map(|_| script_time),
            warm_up_ns: Some(warm_up),
            ..plan
        },
        cpus,
        settings,
        script,
        script_time,
        warm_up,
        at_most: args
            .at_most
            .as_deref()
            .map(|text| positive_span("--for", text, Bare::Seconds))
            .transpose()?,
    })
}

pub fn most_pairs(pairs: u32) -> Result<u32> {
    if (LEAST_PAIRS..=ALLOWED_PAIRS).contains(&pairs) {
        Ok(pairs)
    } else {
        Err(Failure::usage(format!(
            "invalid --pairs: expected {LEAST_PAIRS} to {ALLOWED_PAIRS}; fewer than {LEAST_PAIRS} cannot \
             decide"
        )))
    }
}

/// Rules with their values; other settings of suites are refused.
fn settings(texts: &[String]) -> Result<Vec<SuiteSetting>> {
    let refused = |text: &str| {
        Err(Failure::usage(format!(
            "invalid --change {}: expected RULE or RULE=VALUE with a rule of `onbeat rules`",
            quoted(Path::new(text))
        )))
    };
    let rule = |text: &String| match (SuiteSetting::parse(text), text.contains('=')) {
        (Ok(setting @ SuiteSetting::Rule { .. }), _) => RuleRequest::parse(text).map(|_| setting),
        (Err(_), false) => {
            RuleRequest::parse(text).map(|named| SuiteSetting::Rule { rule: named.rule, value: None })
        }
        _ => refused(text),
    };
    texts.iter().map(rule).collect()
}

/// Changes of B, none for a script; fails if nothing would change, or not everything that was
/// named.
pub fn changes(chosen: &ChosenProof, yes: bool) -> Result<Option<PlanDocument>> {
    if chosen.settings.is_empty() {
        return Ok(None);
    }
    let rules = chosen.settings.iter().filter_map(|setting| match setting {
        SuiteSetting::Rule { rule, value } => Some(RuleRequest { rule: rule.clone(), value: value.clone() }),
        _ => None,
    });
    let request = PlanRequest { rules: rules.collect(), without: Vec::new() };
    let planned =
        plan_tuning(MachineSource::Live, Profile::ControlLoop, Some(&chosen.cpus), &request, false)?;
    let plan = planned.document;
    if let Some(left) = plan.left_out.first() {
        let instead = if left.instead.is_empty() { String::new() } else { format!(": {}", left.instead) };
        return Err(Failure::not_supported(format!(
            "{} cannot be set here: {}{instead}",
            left.rule, left.why
        )));
    }
    for named in &request.rules {
        if !plan.changes.iter().any(|change| change.rule == named.rule) {
            let value = named.value.as_ref().map(|value| format!("={}", quoted(Path::new(value))));
            return Err(Failure::usage(format!(
                "{}{} is already in force: give another value, or undo it first",
                named.rule,
                value.unwrap_or_default()
            )));
        }
    }
    match high_risk(&plan).first() {
        Some(risky) if !yes => {
            Err(Failure::usage(format!("{risky} removes a safeguard: add --yes, or choose another change")))
        }
        _ => Ok(Some(plan)),
    }
}
