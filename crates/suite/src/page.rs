//! The page of all recipes as Markdown, from the recipes.

use crate::phases::{length, steps};
use crate::recipe::{LoadOn, Recipe};
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
    let on = match recipe.load_on {
        LoadOn::Same => "on the measured CPUs",
        LoadOn::Other => "on the lower half of the CPUs, measured is the upper half",
    };
    page.push_str(&format!(
        "{}\n\nEvery {} with SCHED_FIFO {}; the load {on}; {} s before each phase.\n\n",
        recipe.about,
        recipe.interval(),
        recipe.priority,
        recipe.settle().as_secs()
    ));
    page.push_str("| phase | load | samples per CPU | length |\n|---|---|---|---|\n");
    for step in steps(recipe, &[], None, 0) {
        let seconds = length(recipe, &step).as_secs().round();
        let load = if step.load.is_empty() { "none".to_owned() } else { format!("`{}`", step.load) };
        page.push_str(&format!("| {} | {load} | {} | {seconds} s |\n", step.id, step.samples));
    }
}
