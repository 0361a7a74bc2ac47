//! Over which threshold a histogram's tail is one generalised Pareto law: the lowest that passes, or none.
//!
//! After Scarrott and MacDonald (2012), A review of extreme value threshold estimation, section 2: a threshold is
//! high enough if the fit above it is good and the shape stays the same over all higher ones. Assumes independent
//! excesses, which a histogram cannot show.

use super::cells;
use super::fit_test::REFITS;
use super::gpd::{self, Fit, Gpd};
use super::profile::{Interval, TWO_SIDED_95};
use super::steps::Steps;

/// Less excesses than these carry no fit.
pub const FEWEST: f64 = 40.0;
/// The largest part of all values that counts as the tail.
const TAIL: f64 = 0.1;
/// The fit has to pass at this level.
const ALPHA: f64 = 0.1;
/// At most so many candidates.
const MOST: usize = 64;

/// A threshold with its fit.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The threshold, in the unit of the values: an edge of the histogram.
    pub level: f64,
    /// The law of the excesses.
    pub fit: Fit,
    /// The 95 % profile interval of its shape.
    pub shape: Interval,
    /// The lowest higher candidate whose shape lies outside of that interval.
    pub misses: Option<f64>,
    /// The p-value of the fit; None where it was not needed any more.
    pub p: Option<f64>,
}

/// All candidates, lowest first, and which one was picked.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The candidates; none where no threshold has 40 excesses in three different steps.
    pub candidates: Vec<Candidate>,
    /// The place of the lowest that passed, or None: then nothing may be extrapolated.
    pub picked: Option<usize>,
}

/// Picks the lowest threshold whose fit passes and whose shape's interval holds the shapes of all higher ones.
pub fn choose(steps: &Steps, seed: u64) -> Choice {
    let mut candidates: Vec<Candidate> =
        levels(steps).into_iter().filter_map(|level| candidate(steps, level)).collect();
    let mut picked = None;
    for at in 0..candidates.len() {
        let (own, higher) = (candidates[at].shape, &candidates[at + 1..]);
        candidates[at].misses =
            higher.iter().find(|other| !holds(own, other.fit.law.xi)).map(|other| other.level);
        if candidates[at].misses.is_some() || picked.is_some() {
            continue;
        }
        let Some(excesses) = steps.above(candidates[at].level) else { continue };
        let test = cells::of_excesses(&excesses, &candidates[at].fit, ALPHA, REFITS, seed);
        candidates[at].p = test.map(|test| test.p);
        picked = candidates[at].p.filter(|p| *p >= ALPHA).map(|_| at);
    }
    Choice { candidates, picked }
}

fn holds(interval: Interval, xi: f64) -> bool {
    interval.low.is_none_or(|low| low <= xi) && interval.high.is_none_or(|high| xi <= high)
}

fn candidate(steps: &Steps, level: f64) -> Option<Candidate> {
    let excesses = steps.above(level)?;
    let fit = gpd::fit(&excesses, Gpd::USUAL)?;
    let shape = gpd::shape_interval(&excesses, &fit, TWO_SIDED_95);
    Some(Candidate { level, fit, shape, misses: None, p: None })
}

/// The edges with at most a tenth of all values and at least 40 above them: every one where there are few, else the
/// lowest below each of 64 counts in geometric progression.
fn levels(steps: &Steps) -> Vec<f64> {
    let mut above = steps.n();
    let mut edges = Vec::new();
    for step in steps.all() {
        if above >= FEWEST && above <= TAIL * steps.n() {
            edges.push((step.low, above));
        }
        above -= step.count;
    }
    if edges.len() > MOST {
        let ratio = (FEWEST / (TAIL * steps.n())).powf(1.0 / (MOST - 1) as f64);
        let mut wanted = TAIL * steps.n();
        edges.retain(|&(_, above)| {
            let keep = above <= wanted;
            while above <= wanted && wanted > 1.0 {
                wanted *= ratio;
            }
            keep
        });
    }
    edges.into_iter().map(|(level, _)| level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::{Dice, SEED};
    use crate::reference::RPI2_HIST_US;
    use crate::tail::steps::Step;

    fn histogram(rows: &[(u64, u64)]) -> Steps {
        let step =
            |&(us, count): &(u64, u64)| Step { low: us as f64, high: us as f64 + 1.0, count: count as f64 };
        Steps::of_steps(rows.iter().map(step).collect()).unwrap()
    }

    #[test]
    fn the_raspberry_is_cut_at_53() {
        let choice = choose(&histogram(&RPI2_HIST_US), SEED);
        let picked = &choice.candidates[choice.picked.unwrap()];
        assert_eq!((picked.level, picked.fit.n, picked.misses), (53.0, 135.0, None));
        assert!(picked.p.unwrap() >= ALPHA, "{picked:?}");
        let at = |level: f64| choice.candidates.iter().find(|c| c.level == level).unwrap();
        for level in [50.0, 51.0, 52.0] {
            assert!(at(level).misses.is_some() && !holds(at(level).shape, at(55.0).fit.law.xi));
        }
        for (level, low, high) in [(48.0, -0.005, 0.131), (50.0, 0.024, 0.244), (54.0, 0.057, 0.6)] {
            let shape = at(level).shape;
            assert!((shape.low.unwrap() - low).abs() < 1e-3 && (shape.high.unwrap() - high).abs() < 1e-3);
        }
        assert_eq!(choice.candidates.last().unwrap().level, 56.0);
    }

    #[test]
    fn one_law_is_cut_low() {
        let mut dice = Dice::new(2);
        let law = Gpd { sigma: 3.0, xi: 0.05 };
        let values: Vec<f64> = (0..4_000).map(|_| 10.0 + law.level(1.0 / dice.even())).collect();
        let choice = choose(&Steps::new(&values, 1.0).unwrap(), SEED);
        let picked = &choice.candidates[choice.picked.unwrap()];
        assert!(picked.level <= 21.0 && (picked.fit.law.xi - 0.05).abs() < 0.2, "{picked:?}");
    }

    #[test]
    fn separate_groups_are_refused() {
        let groups = [(0, 100_000), (10, 100), (20, 100), (30, 100), (40, 100)];
        let choice = choose(&histogram(&groups), SEED);
        assert!(choice.picked.is_none() && !choice.candidates.is_empty(), "{choice:?}");
        assert!(choice.candidates.iter().all(|c| c.misses.is_some() || c.p.unwrap() < ALPHA));
    }

    #[test]
    fn little_data_has_no_candidates() {
        for rows in [&[(5, 1_000_000)][..], &[(5, 10), (6, 5), (7, 3)][..], &[(1, 1_000), (2, 50)][..]] {
            assert_eq!(choose(&histogram(rows), SEED), Choice { candidates: Vec::new(), picked: None });
        }
    }

    #[test]
    fn many_edges_are_thinned() {
        let rows: Vec<(u64, u64)> = (0..5_000).map(|i| (i, 1 + (5_000 - i))).collect();
        let levels = levels(&histogram(&rows));
        assert!(levels.len() > 40 && levels.len() <= MOST, "{}", levels.len());
        assert!(levels.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
