//! The built-in recipes, one file each.
//!
//! Adding one: write `recipes/NAME.toml`; list it here; run `cargo test -p suite`; run `cargo xtask
//! docs`.

use crate::recipe::Recipe;

/// The texts by the names of the recipes.
pub const RECIPES: [(&str, &str); 9] = [
    ("quick", include_str!("recipes/quick.toml")),
    ("enea", include_str!("recipes/enea.toml")),
    ("enea-threadirqs", include_str!("recipes/enea-threadirqs.toml")),
    ("enea-partition", include_str!("recipes/enea-partition.toml")),
    ("throttling", include_str!("recipes/throttling.toml")),
    ("imx8", include_str!("recipes/imx8.toml")),
    ("toradex", include_str!("recipes/toradex.toml")),
    ("osadl", include_str!("recipes/osadl.toml")),
    ("3mdeb", include_str!("recipes/3mdeb.toml")),
];

/// The recipe of a name.
///
/// # Errors
/// No recipe has it: with the names that there are.
pub fn named(name: &str) -> Result<Recipe, String> {
    let found = RECIPES.iter().find(|(known, _)| *known == name);
    let names = || RECIPES.map(|(name, _)| name).join(" ");
    let (_, text) =
        found.ok_or_else(|| format!("invalid suite '{name}': choose among {}, or name a file", names()))?;
    Recipe::parse(text, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_recipe_is_whole() {
        for (name, _) in RECIPES {
            let recipe = named(name).unwrap();
            assert_eq!(recipe.name, name);
            assert!(!recipe.title.is_empty() && !recipe.about.is_empty(), "{name}");
        }
        assert!(named("slow").is_err_and(|error| error.contains("quick enea")));
    }
}
