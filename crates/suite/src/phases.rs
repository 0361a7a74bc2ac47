//! The phases of a suite in the order in which they are run.

use model::rng::SplitMix64;
use model::units::Nanos;

use crate::recipe::{PhaseOrder, Recipe};

/// One run of the suite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SuiteStep {
    /// `none/cpu`; without models the phase's id alone.
    pub id: String,
    /// The preemption model to switch to; empty for the one in use.
    pub model: String,
    pub load: String,
    pub samples: u64,
}

/// The steps of a recipe with these models; `samples` replaces those of every phase.
pub fn steps(recipe: &Recipe, models: &[String], samples: Option<u64>, seed: u64) -> Vec<SuiteStep> {
    let none = [String::new()];
    let models = if models.is_empty() { &none } else { models };
    let mut all = Vec::new();
    for (at, model) in models.iter().enumerate() {
        let mut phases: Vec<usize> = (0..recipe.phases.len()).collect();
        if recipe.order == PhaseOrder::Shuffled && phases.len() > 3 {
            let end = phases.len() - 1;
            shuffle(&mut phases[1..end], seed ^ at as u64);
        }
        all.extend(phases.into_iter().map(|index| {
            let phase = &recipe.phases[index];
            SuiteStep {
                id: if model.is_empty() { phase.id.clone() } else { format!("{model}/{}", phase.id) },
                model: model.clone(),
                load: phase.load.clone(),
                samples: samples.unwrap_or(phase.samples),
            }
        }));
    }
    all
}

/// Fisher and Yates: every order is as likely.
fn shuffle(items: &mut [usize], seed: u64) {
    let mut random = SplitMix64::new(seed);
    for last in (1..items.len()).rev() {
        items.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}

/// How long a step takes, without what a load needs to begin.
pub fn length(recipe: &Recipe, step: &SuiteStep) -> Nanos {
    let measured = recipe.interval().0.saturating_mul(i64::try_from(step.samples).unwrap_or(i64::MAX));
    Nanos(measured.saturating_add(recipe.settle().0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipes::named;

    #[test]
    fn models_come_one_after_the_other() {
        let recipe = named("enea").unwrap();
        let steps = steps(&recipe, &["none".into(), "full".into()], Some(7), 1);
        assert_eq!(steps.len(), 12);
        assert_eq!((steps[0].id.as_str(), steps[7].id.as_str()), ("none/no-stress", "full/cpu"));
        assert!(steps.iter().all(|step| step.samples == 7));
        assert_eq!(length(&recipe, &steps[0]), Nanos(2_007_000_000));
    }

    #[test]
    fn a_seed_gives_one_order_and_keeps_the_ends() {
        let recipe = Recipe { order: PhaseOrder::Shuffled, ..named("quick").unwrap() };
        let ids = |seed| steps(&recipe, &[], None, seed).into_iter().map(|step| step.id).collect::<Vec<_>>();
        assert_eq!(ids(3), ids(3));
        assert!((0..20).any(|seed| ids(seed) != ids(0)));
        assert!((0..20).all(|seed| ids(seed)[0] == "idle" && ids(seed)[4] == "idle-again"));
    }
}
