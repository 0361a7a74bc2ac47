//! A recipe: a TOML file with the settings that its phases share, and the phases.

use serde::Deserialize;

use model::text::{clean, steers};
use model::units::{Bare, Nanos, parse_span};

use crate::recipe_boots::RecipeBoots;
use crate::recipe_phase::{LoadOn, RecipePhase};

/// Contents of a recipe file, checked as far as possible without a machine.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    pub name: String,
    /// Purpose, in one line.
    pub title: String,
    /// Origin of the recipe.
    #[serde(default)]
    pub source: String,
    /// Parts of the source that are kept, and differences from it.
    #[serde(default)]
    pub about: String,
    /// The interval of the measuring threads.
    #[serde(default = "a_millisecond")]
    pub interval: String,
    /// Added to the interval once per further CPU, as `-d` of `measure`.
    #[serde(default)]
    pub distance: String,
    pub priority: u32,
    /// Run the phases under each preemption model that the kernel can switch to.
    #[serde(default, rename = "each-model")]
    pub each_model: bool,
    /// CPUs of the load.
    #[serde(default, rename = "load-on")]
    pub load_on: LoadOn,
    /// Waited before each phase.
    #[serde(default = "two_seconds")]
    pub settle: String,
    #[serde(default)]
    pub order: PhaseOrder,
    /// The limit that the table names, in us.
    #[serde(default, rename = "limit-us")]
    pub limit_us: Option<u64>,
    /// Two rows that need two boots.
    #[serde(default)]
    pub boots: Option<RecipeBoots>,
    #[serde(rename = "phase")]
    pub phases: Vec<RecipePhase>,
}

/// Order of the phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PhaseOrder {
    /// Order of the recipe.
    #[default]
    Listed,
    /// The first and the last stay, those between are in the order that the seed gives.
    Shuffled,
    /// All as listed, then all once more in the reverse order.
    Abba,
}

/// No latency of an hour is a limit.
const LONGEST_US: u64 = 3_600_000_000;

/// No recipe has more phases.
const MOST: usize = 256;

fn two_seconds() -> String {
    "2s".to_owned()
}

fn a_millisecond() -> String {
    "1ms".to_owned()
}

impl Recipe {
    /// Reads and checks a recipe; `origin` is its name in messages.
    ///
    /// # Errors
    /// One sentence with the line and the column of the invalid part.
    pub fn parse(text: &str, origin: &str) -> Result<Recipe, String> {
        let recipe: Recipe = toml::from_str(text).map_err(|error| {
            let at = error.span().map_or(0, |span| span.start);
            format!("{origin}{}: {}", place(text, at), error.message().replace('\n', " "))
        })?;
        recipe.check().map_err(|(word, what)| {
            let quoted = text.find(&format!("\"{word}\"")).map(|at| at + 1);
            let at = quoted.or_else(|| text.find(&word)).filter(|_| !word.is_empty());
            format!("{origin}{}: {what}", at.map_or_else(String::new, |at| place(text, at)))
        })?;
        Ok(recipe)
    }

    /// Returns the first invalid value as the wrong word and a message.
    fn check(&self) -> Result<(), (String, String)> {
        let wrong = |word: &str, what: String| Err((word.to_owned(), what));
        let spans = [("interval", &self.interval), ("settle", &self.settle), ("distance", &self.distance)];
        for (name, text) in spans.into_iter().filter(|(name, text)| *name != "distance" || !text.is_empty()) {
            if let Err(what) = parse_span(text, Bare::Micros) {
                return wrong(text, format!("{name}: {what}"));
            }
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        // It becomes part of the folder's name.
        if self.name.is_empty() || self.name.len() > 40 || !self.name.chars().all(is_name) {
            let what = format!(
                "invalid name '{}': expected letters, digits, hyphens and underscores",
                clean(&self.name)
            );
            return wrong("name", what);
        }
        if self.title.chars().any(steers) {
            return wrong("title", "title: expected plain text in one line".into());
        }
        if self.limit_us.is_some_and(|us| us > LONGEST_US) {
            return wrong("limit-us", format!("limit-us: expected at most {LONGEST_US}"));
        }
        if !(1..=99).contains(&self.priority) {
            return wrong("priority", format!("priority: expected 1 to 99, not {}", self.priority));
        }
        if self.phases.is_empty() || self.phases.len() > MOST {
            return wrong("", format!("expected 1 to {MOST} phases"));
        }
        if let Some(Err(what)) = self.boots.as_ref().map(RecipeBoots::check) {
            return wrong("boots", what);
        }
        for (at, phase) in self.phases.iter().enumerate() {
            phase.check()?;
            if self.phases[..at].iter().any(|other| other.id == phase.id) {
                return wrong(&phase.id, format!("two phases are named {}", phase.id));
            }
        }
        Ok(())
    }

    pub fn interval(&self) -> Nanos {
        parse_span(&self.interval, Bare::Micros).unwrap_or(Nanos::MILLI)
    }

    pub fn settle(&self) -> Nanos {
        parse_span(&self.settle, Bare::Micros).unwrap_or(Nanos::SECOND)
    }
}

/// `:3:14`, counted from 1.
fn place(text: &str, at: usize) -> String {
    let before = &text.as_bytes()[..at.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    format!(":{line}:{column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = \"own\"\ntitle = \"t\"\ninterval = \"1ms\"\npriority = 80\n\n\
                        [[phase]]\nid = \"idle\"\nsamples = 10\n";

    #[test]
    fn what_is_wrong_is_named_with_line_and_column() {
        assert!(Recipe::parse(GOOD, "a.toml").is_ok());
        for (from, to, message) in [
            ("priority = 80", "prio = 80", "a.toml:4:1: unknown field `prio`"),
            ("priority = 80", "priority = \"80\"", "a.toml:4:12: invalid type"),
            ("priority = 80", "priority = 100", "a.toml:4:1: priority: expected 1 to 99"),
            ("samples = 10", "samples = 0", "a.toml:7:7: idle: samples"),
            ("samples = 10", "samples = 10\nload = \"memory\"", "a.toml:9:9: invalid load 'memory'"),
            ("\"idle\"", "\"Idle one\"", "a.toml:7:7: invalid id 'Idle one'"),
            ("\"own\"", "\"../own\"", "a.toml:1:1: invalid name '../own'"),
            ("\"t\"", "\"\\u001b\"", "a.toml:2:1: title"),
            ("priority", "limit-us = 9223372036854775807\npriority", "a.toml:4:1: limit-us"),
            ("1ms", "often", "a.toml:3:13: interval"),
            ("priority", "distance = \"far\"\npriority", "a.toml:4:13: distance"),
            ("[[phase]]", "[[phases]]", "a.toml"),
            ("name", "name =", "a.toml:1"),
        ] {
            let error = Recipe::parse(&GOOD.replacen(from, to, 1), "a.toml").expect_err(to);
            assert!(error.starts_with(message) && !error.contains('\n'), "{to}: {error}");
        }
        let twice = format!("{GOOD}[[phase]]\nid = \"idle\"\nsamples = 1\n");
        assert!(Recipe::parse(&twice, "a").is_err_and(|error| error.contains("two phases")));
    }
}
