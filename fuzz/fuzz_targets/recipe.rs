//! A suite's recipe: it is refused in one line, or all of its phases can be planned.
#![no_main]

use libfuzzer_sys::fuzz_target;
use suite::phases::{length, steps};
use suite::recipe::Recipe;

fuzz_target!(|text: &str| {
    match Recipe::parse(text, "x.toml") {
        Err(why) => assert!(!why.contains('\n'), "{why}"),
        Ok(recipe) => {
            for models in [&[][..], &["none".to_owned(), "full".to_owned()]] {
                let planned = steps(&recipe, models, None, 7);
                assert_eq!(planned.len(), recipe.phases.len() * models.len().max(1));
                assert!(planned.iter().all(|step| length(&recipe, step).0 >= 0));
            }
        }
    }
});
