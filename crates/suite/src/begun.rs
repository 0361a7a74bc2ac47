//! Parts of a recipe that make the numbers of its phases comparable: a continued suite has to match
//! the recipe that it was started with.

use std::collections::BTreeMap;

use crate::recipe::Recipe;
use crate::recipe_phase::StepKind;

/// Values of the recipe by their names in messages.
pub fn described(recipe: &Recipe) -> BTreeMap<String, String> {
    let plain = [
        ("interval", recipe.interval().spaced()),
        ("distance", recipe.distance.clone()),
        ("priority", recipe.priority.to_string()),
        ("settle", recipe.settle().spaced()),
        ("order", format!("{:?}", recipe.order).to_lowercase()),
        ("load-on", format!("{:?}", recipe.load_on).to_lowercase()),
        ("each-model", recipe.each_model.to_string()),
        ("phases", recipe.phases.iter().map(|phase| phase.id.as_str()).collect::<Vec<_>>().join(" ")),
        ("boots", recipe.boots.as_ref().map_or_else(String::new, |boots| boots.word.clone())),
    ];
    let mut all: BTreeMap<String, String> =
        plain.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    for phase in &recipe.phases {
        let (what, value) = match phase.kind() {
            StepKind::WakeUps { samples } => ("samples", samples.to_string()),
            StepKind::Spin { length, hog: false } => ("length", length.spaced()),
            StepKind::Spin { length, hog: true } => ("length", format!("{} with a hog", length.spaced())),
        };
        let load_on = phase.load_on.map_or_else(String::new, |on| format!("{on:?}").to_lowercase());
        for (name, value) in [
            (what, value),
            ("load", phase.load.clone()),
            ("load-on", load_on),
            ("settings", phase.settings.join(" ")),
        ] {
            all.insert(format!("{name} of {}", phase.id), value);
        }
    }
    all
}

/// The first difference in words, `None` if they are equal or the document lacks the values.
pub fn difference(begun: &BTreeMap<String, String>, now: &BTreeMap<String, String>) -> Option<String> {
    if begun.is_empty() {
        return None;
    }
    let of = |map: &BTreeMap<String, String>, name: &str| match map.get(name).map(String::as_str) {
        None | Some("") => "none".to_owned(),
        Some(value) => model::text::clean(value),
    };
    // The presence of a phase says more than its parts.
    let names = std::iter::once("phases").chain(now.keys().chain(begun.keys()).map(String::as_str));
    let mut differ = names.filter(|name| of(begun, name) != of(now, name));
    let first = differ.next()?;
    let name = model::text::clean(first);
    Some(format!("{name} was {} and is {} now", of(begun, first), of(now, first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: &str = "name = \"own\"\ntitle = \"t\"\npriority = 80\n\n[[phase]]\nid = \"idle\"\n\
                          samples = 10\n[[phase]]\nid = \"busy\"\nload = \"cpu:1\"\nsamples = 20\n";

    #[test]
    fn what_differs_is_said() {
        let difference_of = |from: &str, to: &str| {
            let map = |text: &str| described(&Recipe::parse(text, "own").unwrap());
            difference(&map(RECIPE), &map(&RECIPE.replacen(from, to, 1)))
        };
        for (from, to, expected) in [
            ("80", "81", "priority was 80 and is 81 now"),
            ("\npri", "\ninterval = \"2ms\"\npri", "interval was 1 ms and is 2 ms now"),
            ("samples = 10", "samples = 11", "samples of idle was 10 and is 11 now"),
            ("cpu:1", "cpu:2", "load of busy was cpu:1 and is cpu:2 now"),
            ("load = \"cpu:1\"\n", "", "load of busy was cpu:1 and is none now"),
            ("\"busy\"", "\"more\"", "phases was idle busy and is idle more now"),
            ("samples = 20", "samples = 20\nsettings = [\"isolate\"]", "settings of busy was none"),
        ] {
            let changed = difference_of(from, to);
            assert!(changed.as_ref().is_some_and(|text| text.starts_with(expected)), "{to}: {changed:?}");
        }
        assert_eq!(difference_of("title = \"t\"", "title = \"u\""), None, "words are no measurement");
        assert_eq!(difference(&BTreeMap::new(), &described(&Recipe::parse(RECIPE, "").unwrap())), None);
    }
}
