//! Text of a suite's plan.

use super::chosen::Chosen;
use ::suite::phases::{SuiteStep, length};
use ::suite::recipe::Recipe;
use ::suite::recipe_phase::StepKind;
use model::units::{Nanos, named_cpus};

/// Phases in their order, with their durations and changes.
pub fn plan_text(recipe: &Recipe, chosen: &Chosen) -> String {
    let mut text = format!("{}: {}\n", recipe.name, recipe.title);
    for (at, step) in chosen.steps.iter().enumerate() {
        let load = if step.load.is_empty() { "no load" } else { &step.load };
        let settings: String = step.settings.iter().map(|setting| format!(", {setting}")).collect();
        let (span, measures) = (spoken(length(recipe, step.kind)), step.measures());
        text += &format!("{:>4}  {}: {load}{settings}, {measures}, {span}\n", at + 1, step.id);
    }
    for left in &chosen.left_out {
        text += &format!("   -  {}: {}\n", left.id, left.why);
    }
    let all = chosen.steps.iter().fold(0i64, |sum, step| sum.saturating_add(length(recipe, step.kind).0));
    let wakes = chosen.steps.iter().any(|step| matches!(step.kind, StepKind::WakeUps { .. }));
    let every = if wakes { format!("every {} ", recipe.interval()) } else { String::new() };
    text += &format!(
        "total {}; {every}with SCHED_FIFO {}; {}\n",
        spoken(Nanos(all)),
        recipe.priority,
        changes(&chosen.steps)
    );
    let Chosen { cpus, load_cpus, seed, .. } = chosen;
    let loads = chosen.steps.iter().any(|step| !step.load.is_empty());
    let load = if loads { format!("; load: {}", named_cpus(load_cpus)) } else { String::new() };
    text + &format!("measured: {}{load}; seed {seed}\n", named_cpus(cpus))
}

fn changes(steps: &[SuiteStep]) -> String {
    let mut what = Vec::new();
    if steps.iter().any(|step| !step.model.is_empty()) {
        what.push("the preemption model");
    }
    if steps.iter().any(|step| step.rt_limit().is_some()) {
        what.push("the limit of real-time tasks");
    }
    if steps.iter().any(SuiteStep::isolates) {
        what.push("a partition of the measured CPUs");
    }
    let others = |step: &SuiteStep| {
        step.settings.len() > usize::from(step.rt_limit().is_some()) + usize::from(step.isolates())
    };
    if steps.iter().any(others) {
        what.push("the settings named above");
    }
    match what.as_slice() {
        [] => "it changes no setting".to_owned(),
        what => format!("it changes {}, and restores it", what.join(", ")),
    }
}

/// Duration in seconds, minutes, or hours and minutes, by its length.
pub fn spoken(span: Nanos) -> String {
    match span.0 / Nanos::SECOND.0 {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", (seconds + 30) / 60),
        seconds => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}
