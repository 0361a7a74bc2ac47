//! A suite's recipe: it is refused in one line, or all of its phases can be planned.
#![cfg_attr(fuzzing, no_main)]

use entry::fuzz_target;
use suite::phases::{StepChoice, length, steps};
use suite::recipe::{PhaseOrder, Recipe};

fuzz_target!(|text: &str| {
    match Recipe::parse(text, "x.toml") {
        Err(why) => assert!(!why.contains('\n'), "{why}"),
        Ok(recipe) => {
            for models in [&[][..], &["none".to_owned(), "full".to_owned()]] {
                let planned = steps(&recipe, StepChoice { models, seed: 7, ..StepChoice::default() });
                let times = if recipe.order == PhaseOrder::Abba { 2 } else { 1 };
                assert_eq!(planned.len(), recipe.phases.len() * models.len().max(1) * times);
                assert!(planned.iter().all(|step| length(&recipe, step.kind).0 >= 0));
            }
        }
    }
});
