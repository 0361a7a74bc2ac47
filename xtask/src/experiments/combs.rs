//! Lists of block maxima with a mechanism of a known period, some of whose teeth are missing or
//! late: rate at which the right period is named.

use model::units::Nanos;
use stats::bounds::BoundsInput;
use stats::bounds::periods::Period;
use stats::bounds::structure::structure;
use stats::rng::{Rng, SEED};
use stats::series::{BLOCK, Series};

use super::line::ResultLine;
use super::{Experiment, Length};

/// A list: Gumbel maxima of about 20 us, and a comb with its period in s above them.
#[derive(Clone, Copy)]
struct Recipe {
    blocks: usize,
    period: f64,
    jitter: f64,
    /// The share of its teeth that come.
    kept: f64,
    /// Height of a tooth above the noise in us: the minimum, and the mean of the rest.
    above: (f64, f64),
}

const HOUR: Recipe = Recipe { blocks: 3_600, period: 20.3, jitter: 0.5, kept: 0.45, above: (30.0, 2.0) };

/// Recipes, with the minimum share of runs in which the period is named, alone or with others.
const COMBS: &[(Recipe, f64)] = &[
    (Recipe { kept: 0.3, ..HOUR }, 0.8),
    (HOUR, 0.95),
    (Recipe { kept: 0.6, ..HOUR }, 0.95),
    (Recipe { blocks: 1_200, kept: 0.6, ..HOUR }, 0.6),
    (Recipe { above: (8.0, 2.0), ..HOUR }, 0.2),
    (Recipe { above: (8.0, 10.0), ..HOUR }, 0.8),
    (Recipe { period: 13.7, ..HOUR }, 0.8),
    (Recipe { period: 7.3, ..HOUR }, 0.9),
    (Recipe { period: 5.2, jitter: 0.3, kept: 0.3, ..HOUR }, 0.9),
    (Recipe { period: 4.1, jitter: 0.3, ..HOUR }, 0.9),
    (Recipe { period: 60.7, jitter: 1.0, kept: 0.5, ..HOUR }, 0.3),
    (Recipe { period: 1.9, jitter: 0.02, kept: 0.5, ..HOUR }, 0.3),
    (Recipe { period: 1.3, jitter: 0.1, ..HOUR }, 0.0),
    (Recipe { period: 0.95, jitter: 0.02, kept: 0.3, ..HOUR }, 0.0),
    (Recipe { period: 0.487, jitter: 0.01, kept: 0.05, ..HOUR }, 0.0),
];

/// All of them.
pub fn all() -> Vec<Experiment> {
    let mut all: Vec<Experiment> = Vec::new();
    for &(recipe, least) in COMBS {
        all.push(("periods", Box::new(move |length| named(recipe, least, length))));
    }
    all.push(("periods", Box::new(|length| none("Gumbel alone", |_, _| (), length))));
    all.push(("periods", Box::new(|length| none("72 spikes at random", at_random, length))));
    all.push(("periods", Box::new(|length| none("6 bursts of 15 spikes", bursts, length))));
    all.push(("periods", Box::new(|length| none("a climb of 5 sigma", climb, length))));
    all
}

fn noise(blocks: usize, rng: &mut Rng) -> Vec<f64> {
    (0..blocks).map(|_| 20.0 - 2.0 * rng.exponential().ln()).collect()
}

impl Recipe {
    fn list(&self, rng: &mut Rng) -> Vec<f64> {
        let mut us = noise(self.blocks, rng);
        let mut due = rng.uniform() * self.period;
        while due < self.blocks as f64 {
            if rng.uniform() < self.kept {
                let at = (due + self.jitter * rng.normal()).floor();
                let value = 20.0 + self.above.0 + self.above.1 * rng.exponential();
                if let Some(block) = us.get_mut(at.max(0.0) as usize).filter(|_| at >= 0.0) {
                    *block = block.max(value);
                }
            }
            due += self.period;
        }
        us
    }

    /// True within a hundredth of the period, or within its error, up to a twenty-fifth.
    fn is(&self, other: f64, error: f64) -> bool {
        (other - self.period).abs() <= (4.0 * error).clamp(0.01 * self.period, 0.04 * self.period)
    }
}

fn periods(us: &[f64]) -> Vec<Period> {
    let list: Vec<Option<Nanos>> = us.iter().map(|us| Some(Nanos((us * 1e3) as i64))).collect();
    structure(&BoundsInput::of(&Series::of_list(&list, BLOCK, Nanos(1)))).periods
}

/// Rates at which a wrong period is claimed as the only one, and at which the right one is among
/// those named.
fn named(recipe: Recipe, least: f64, length: Length) -> Vec<ResultLine> {
    let reps = length.of(400, 20);
    let mut rng = Rng::new(SEED);
    let (mut wrong, mut right, mut alone) = (0, 0, 0);
    for _ in 0..reps {
        let found = periods(&recipe.list(&mut rng));
        let fits = |period: &Period| {
            let mut others = period.or_s.iter();
            recipe.is(period.period_s, period.se_s) || others.any(|&other| recipe.is(other, period.se_s))
        };
        wrong += u32::from(found.iter().any(|period| !fits(period)));
        right += u32::from(!found.is_empty() && found.iter().all(fits));
        alone += u32::from(!found.is_empty() && found.iter().all(|one| fits(one) && one.or_s.is_empty()));
    }
    let share = |count: u32| f64::from(count) / f64::from(reps);
    let what = format!(
        "list of {} s, {} s +- {}, {:.0} % at +{}+{} us",
        recipe.blocks,
        recipe.period,
        recipe.jitter,
        100.0 * recipe.kept,
        recipe.above.0,
        recipe.above.1
    );
    vec![
        ResultLine::rate(format!("{what}: wrong"), share(wrong), reps).at_most(0.05),
        ResultLine::rate(format!("{what}: named"), share(right), reps)
            .at_least(least)
            .note(format!("{:.3} without another one", share(alone))),
    ]
}

/// Rate at which a period is claimed without one.
fn none(what: &str, spoil: fn(&mut [f64], &mut Rng), length: Length) -> Vec<ResultLine> {
    let reps = length.of(1_000, 60);
    let mut rng = Rng::new(SEED);
    let mut claimed = 0;
    for _ in 0..reps {
        let mut us = noise(HOUR.blocks, &mut rng);
        spoil(&mut us, &mut rng);
        claimed += u32::from(!periods(&us).is_empty());
    }
    let share = f64::from(claimed) / f64::from(reps);
    vec![ResultLine::rate(format!("list of an hour, {what}: a period claimed"), share, reps).at_most(0.02)]
}

fn at_random(us: &mut [f64], rng: &mut Rng) {
    for _ in 0..us.len() / 50 {
        us[rng.below(us.len())] = 50.0 + 2.0 * rng.exponential();
    }
}

fn bursts(us: &mut [f64], rng: &mut Rng) {
    for _ in 0..6 {
        let start = rng.below(us.len());
        for _ in 0..15 {
            let at = start + (30.0 * rng.exponential()) as usize;
            if let Some(block) = us.get_mut(at) {
                *block = 50.0 + 2.0 * rng.exponential();
            }
        }
    }
}

fn climb(us: &mut [f64], _: &mut Rng) {
    let blocks = us.len() as f64;
    us.iter_mut().enumerate().for_each(|(at, block)| *block += 10.0 * at as f64 / blocks);
}
