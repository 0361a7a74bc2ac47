//! The page of all recipes as Markdown, from the recipes.

use crate::phases::{StepChoice, length, steps};
use crate::recipe::Recipe;
use crate::recipe_phase::{LoadOn, StepKind};
use crate::recipes::{RECIPES, named};

const COMMON: &str = include_str!("common.md");

/// The whole page.
pub fn markdown() -> String {
    let mut page = String::from(COMMON);
    for recipe in RECIPES.iter().filter_map(|(name, _)| named(name).ok()) {
        section(&recipe, &mut page);
    }
    page
}

fn section(recipe: &Recipe, page: &mut String) {
    page.push_str(&format!("\n## {}: {}\n\n", recipe.name, recipe.title));
    if !recipe.source.is_empty() {
        page.push_str(&format!("Source: {}.\n", recipe.source));
    }
    let all = steps(recipe, StepChoice::default());
    let wakes = all.iter().any(|step| matches!(step.kind, StepKind::WakeUps { .. }));
    let every = if wakes { format!("every {} ", recipe.interval()) } else { String::new() };
    let on = match recipe.load_on {
        _ if all.iter().all(|step| step.load.is_empty()) => "no load",
        LoadOn::Same => "the load on the measured CPUs",
        LoadOn::Other => "the load on the lower half of the CPUs, measured is the upper half",
        LoadOn::All => "the load on all CPUs",
    };
    page.push_str(&format!(
        "{}\n\nMeasured {every}with SCHED_FIFO {}; {on}; {} s before each phase.\n\n",
        recipe.about.replace(". ", ".\n"),
        recipe.priority,
        recipe.settle().as_secs()
    ));
    if let Some(boots) = &recipe.boots {
        page.push_str(&format!(
            "Rows: {} with {} on the kernel's command line, {} without.\n\n",
            boots.with, boots.word, boots.without
        ));
    }
    page.push_str("| phase | settings | load | measured | length |\n|---|---|---|---|---|\n");
    for step in all {
        let seconds = length(recipe, step.kind).as_secs().round();
        let code = |text: &str| if text.is_empty() { "none".to_owned() } else { format!("`{text}`") };
        let load = match (step.load_on == recipe.load_on, step.load_on) {
            (false, LoadOn::All) => format!("{} on all CPUs", code(&step.load)),
            _ => code(&step.load),
        };
        let settings: Vec<String> = step.settings.iter().map(ToString::to_string).collect();
        let (settings, measures) = (code(&settings.join(" ")), step.measures());
        page.push_str(&format!("| {} | {settings} | {load} | {measures} | {seconds} s |\n", step.id));
    }
}
