//! The phases of a suite in the order in which they are run.

use model::rng::SplitMix64;
use model::units::Nanos;

use crate::recipe::{PhaseOrder, Recipe};
use crate::recipe_phase::{LoadOn, RecipePhase, StepKind};
use crate::setting::SuiteSetting;

/// One run of the suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteStep {
    /// `none/cpu`; without models the phase's id alone; `cpu.2` the second time.
    pub id: String,
    /// The preemption model to switch to; empty for the current one.
    pub model: String,
    pub load: String,
    pub load_on: LoadOn,
    pub kind: StepKind,
    pub settings: Vec<SuiteSetting>,
}

/// Choices about a recipe's phases from outside.
#[derive(Clone, Copy, Debug, Default)]
pub struct StepChoice<'a> {
    /// The preemption models to switch to.
    pub models: &'a [String],
    /// The row that this boot is, of a recipe that compares boots.
    pub boot: &'a str,
    /// The length of every phase in place of the recipe's.
    pub length: Option<Nanos>,
    /// Seed of a shuffled order.
    pub seed: u64,
}

/// The steps of a recipe.
pub fn steps(recipe: &Recipe, choice: StepChoice) -> Vec<SuiteStep> {
    let none = [String::new()];
    let models = if choice.models.is_empty() { &none } else { choice.models };
    let mut all = Vec::new();
    for (at, model) in models.iter().enumerate() {
        let mut phases: Vec<usize> = (0..recipe.phases.len()).collect();
        if recipe.order == PhaseOrder::Shuffled && phases.len() > 3 {
            let end = phases.len() - 1;
            shuffle(&mut phases[1..end], choice.seed ^ at as u64);
        }
        all.extend(phases.into_iter().map(|index| step(recipe, &recipe.phases[index], model, choice)));
    }
    if recipe.order == PhaseOrder::Abba {
        // Reversed repetition gives drift over time the same weight on each phase.
        let again = |step: &SuiteStep| SuiteStep { id: format!("{}.2", step.id), ..step.clone() };
        all.extend(all.iter().rev().map(again).collect::<Vec<_>>());
    }
    all
}

fn step(recipe: &Recipe, phase: &RecipePhase, model: &str, choice: StepChoice) -> SuiteStep {
    let row = [choice.boot, model].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    let kind = match (phase.kind(), choice.length) {
        (kind, None) => kind,
        (StepKind::WakeUps { .. }, Some(length)) => {
            let samples = u64::try_from(length.0 / recipe.interval().0.max(1)).unwrap_or(1).max(1);
            StepKind::WakeUps { samples }
        }
        (StepKind::Spin { hog, .. }, Some(length)) => StepKind::Spin { length, hog },
    };
    SuiteStep {
        id: if row.is_empty() { phase.id.clone() } else { format!("{row}/{}", phase.id) },
        model: model.to_owned(),
        load: phase.load.clone(),
        load_on: phase.load_on.unwrap_or(recipe.load_on),
        kind,
        settings: phase.settings(),
    }
}

/// Fisher and Yates: every order is as likely.
fn shuffle(items: &mut [usize], seed: u64) {
    let mut random = SplitMix64::new(seed);
    for last in (1..items.len()).rev() {
        items.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}

/// Length of a step, without the start of its load.
pub fn length(recipe: &Recipe, kind: StepKind) -> Nanos {
    Nanos(measured(recipe, kind).0.saturating_add(recipe.settle().0))
}

/// Measured part of that length.
fn measured(recipe: &Recipe, kind: StepKind) -> Nanos {
    match kind {
        StepKind::Spin { length, .. } => length,
        StepKind::WakeUps { samples } => {
            Nanos(recipe.interval().0.saturating_mul(i64::try_from(samples).unwrap_or(i64::MAX)))
        }
    }
}

/// True if this length is shorter than that of a phase in the recipe.
pub fn shortens(recipe: &Recipe, length: Nanos) -> bool {
    recipe.phases.iter().any(|phase| length < measured(recipe, phase.kind()))
}

impl SuiteStep {
    /// The limit of real-time tasks that is set for it.
    pub fn rt_limit(&self) -> Option<model::rt_limit::RtLimit> {
        self.settings.iter().find_map(|setting| match setting {
            SuiteSetting::RtLimit(limit) => Some(*limit),
            _ => None,
        })
    }

    /// True if the measured CPUs are isolated for it.
    pub fn isolates(&self) -> bool {
        self.settings.contains(&SuiteSetting::Isolate)
    }

    /// Measured quantity, in words.
    pub fn measures(&self) -> String {
        match self.kind {
            StepKind::WakeUps { samples } => format!("{samples} samples per CPU"),
            StepKind::Spin { length, hog: false } => format!("spinning for {}", length.spaced()),
            StepKind::Spin { length, hog: true } => {
                format!("spinning for {} with an ordinary thread", length.spaced())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipes::named;

    #[test]
    fn models_come_one_after_the_other() {
        let recipe = named("enea").unwrap();
        let models = ["none".to_owned(), "full".to_owned()];
        let choice = StepChoice { models: &models, length: Some(Nanos(7_000_000)), ..StepChoice::default() };
        let steps = steps(&recipe, choice);
        assert_eq!(steps.len(), 12);
        assert_eq!((steps[0].id.as_str(), steps[7].id.as_str()), ("none/no-stress", "full/cpu"));
        assert!(steps.iter().all(|step| step.kind == StepKind::WakeUps { samples: 7 }));
        assert_eq!(length(&recipe, steps[0].kind), Nanos(2_007_000_000));
        assert!(shortens(&recipe, Nanos(99_999_000_000)) && !shortens(&recipe, Nanos(100_000_000_000)));
    }

    fn ids(recipe: &Recipe, choice: StepChoice) -> Vec<String> {
        steps(recipe, choice).into_iter().map(|step| step.id).collect()
    }

    #[test]
    fn a_seed_gives_one_order_and_keeps_the_ends() {
        let recipe = Recipe { order: PhaseOrder::Shuffled, ..named("quick").unwrap() };
        let ids = |seed| ids(&recipe, StepChoice { seed, ..StepChoice::default() });
        assert_eq!(ids(3), ids(3));
        assert!((0..20).any(|seed| ids(seed) != ids(0)));
        assert!((0..20).all(|seed| ids(seed)[0] == "idle" && ids(seed)[4] == "idle-again"));
    }

    #[test]
    fn abba_is_every_phase_twice_mirrored() {
        let recipe = Recipe { order: PhaseOrder::Abba, ..named("imx8").unwrap() };
        let once = ["no-load", "vm", "cpu"].map(str::to_owned);
        let twice = ["cpu.2", "vm.2", "no-load.2"].map(str::to_owned);
        assert_eq!(ids(&recipe, StepChoice::default()), [once, twice].concat());
        let models = ["none".to_owned(), "full".to_owned()];
        let of_models = ids(&recipe, StepChoice { models: &models, ..StepChoice::default() });
        assert_eq!((of_models[0].as_str(), of_models[11].as_str()), ("none/no-load", "none/no-load.2"));
        assert_eq!((of_models[5].as_str(), of_models[6].as_str()), ("full/cpu", "full/cpu.2"));
    }

    #[test]
    fn a_boot_names_its_row() {
        let recipe = named("enea-threadirqs").unwrap();
        let choice = StepChoice { boot: "threaded", ..StepChoice::default() };
        assert_eq!(ids(&recipe, choice)[0], "threaded/no-stress");
    }
}
