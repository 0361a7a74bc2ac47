//! A phase of a recipe.

use serde::Deserialize;

use load::spec;
use model::units::{Bare, Nanos, parse_span};

use crate::setting::SuiteSetting;

/// One phase as in the recipe.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipePhase {
    pub id: String,
    /// Loads in the syntax of `--load`; empty for none.
    #[serde(default)]
    pub load: String,
    /// CPUs of the load, if they differ from the recipe's.
    #[serde(default, rename = "load-on")]
    pub load_on: Option<LoadOn>,
    #[serde(default)]
    pub measure: PhaseMeasure,
    /// Wake-ups of each CPU.
    #[serde(default)]
    pub samples: u64,
    /// Length of the spin.
    #[serde(default)]
    pub length: String,
    /// Run an ordinary busy thread on each CPU that spins.
    #[serde(default)]
    pub hog: bool,
    /// Settings of the phase, in the syntax of [`SuiteSetting`].
    #[serde(default)]
    pub settings: Vec<String>,
}

/// Quantity that a phase measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseMeasure {
    /// The latency of wake-ups.
    #[default]
    WakeUps,
    /// Time for which a real-time thread that never sleeps is stopped.
    Spin,
}

/// CPUs of the load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoadOn {
    /// The measured CPUs: all.
    #[default]
    Same,
    /// The lower half, and the upper half is measured.
    Other,
    /// All, whichever are measured.
    All,
}

/// Kind and amount of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepKind {
    /// Number of wake-ups of each CPU, as in `onbeat measure`.
    WakeUps { samples: u64 },
    /// Stops of a real-time thread that never sleeps, as in `onbeat probe spin`.
    Spin { length: Nanos, hog: bool },
}

impl StepKind {
    /// Its name in documents, as in recipes.
    pub fn name(self) -> &'static str {
        match self {
            StepKind::WakeUps { .. } => "wake-ups",
            StepKind::Spin { .. } => "spin",
        }
    }
}

/// Longest spin: without a limit, only its clock ends a thread that spins with real-time priority.
const LONGEST_SPIN: Nanos = Nanos(10_000_000_000);

impl RecipePhase {
    /// Kind and amount of the measurement.
    pub fn kind(&self) -> StepKind {
        match self.measure {
            PhaseMeasure::WakeUps => StepKind::WakeUps { samples: self.samples },
            PhaseMeasure::Spin => {
                let length = parse_span(&self.length, Bare::Seconds).unwrap_or(Nanos::SECOND);
                StepKind::Spin { length, hog: self.hog }
            }
        }
    }

    /// Settings of the phase.
    pub fn settings(&self) -> Vec<SuiteSetting> {
        self.settings.iter().filter_map(|text| SuiteSetting::parse(text).ok()).collect()
    }

    /// Returns the first invalid value as the wrong word and a message.
    pub(crate) fn check(&self) -> Result<(), (String, String)> {
        let wrong = |word: &str, what: String| Err((word.to_owned(), what));
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let id = &self.id;
        if id.is_empty() || id.len() > 40 || !id.chars().all(plain) {
            return wrong(id, format!("invalid id '{id}': expected lower-case letters, digits and hyphens"));
        }
        match self.measure {
            PhaseMeasure::WakeUps if self.samples == 0 => {
                return wrong(id, format!("{id}: samples: expected 1 or more"));
            }
            PhaseMeasure::WakeUps if self.hog || !self.length.is_empty() => {
                return wrong(id, format!("{id}: length and hog are of measure = \"spin\""));
            }
            PhaseMeasure::Spin if self.samples > 0 || !self.load.is_empty() => {
                return wrong(id, format!("{id}: spinning takes a length, and no samples and no load"));
            }
            PhaseMeasure::Spin => match parse_span(&self.length, Bare::Seconds) {
                Err(what) => return wrong(id, format!("{id}: length: {what}")),
                Ok(length) if !(Nanos::SECOND..=LONGEST_SPIN).contains(&length) => {
                    return wrong(id, format!("{id}: length: expected 1 s to {} s", LONGEST_SPIN.as_secs()));
                }
                Ok(_) => {}
            },
            PhaseMeasure::WakeUps => {}
        }
        for text in &self.settings {
            if let Err(what) = SuiteSetting::parse(text) {
                return wrong(text, format!("{id}: {what}"));
            }
        }
        match spec::parse(&[&self.load]) {
            Err(what) if !self.load.is_empty() => wrong(&self.load, what),
            _ => Ok(()),
        }
    }
}
