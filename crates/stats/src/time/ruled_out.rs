//! Whole periods that no comb can have, by sums of rounded scores: of months of blocks nearly all
//! are ruled out, at an eighth of the cost of a fold. The others are folded as before.
//!
//! A period's sums are those of its double, halves added up: only the longer half of the periods is
//! folded. The largest rounding error is added to the largest sum, so that nothing is ruled out
//! that a fold would keep.

use crate::steady::scores::Placed;

/// Number of steps of the largest score, to which scores are rounded.
const LARGEST: f64 = 2_000.0;
/// Number of turns in a 16-bit sum: as many of the largest score fit.
const TURNS: usize = 16;
/// Number of periods that are folded together, for each part of the scores in a CPU's cache.
const TOGETHER: usize = 16;
const PART: usize = 128 << 10;
/// Maximum number of scores whose sums are certain to fit.
const MOST: usize = 1 << 28;

/// Scores in whole steps.
struct RoundedScores {
    steps: Vec<i16>,
    step: f64,
    /// The largest distance of a score from its steps.
    error: f64,
    largest: f64,
}

impl RoundedScores {
    fn of(x: Placed) -> Option<RoundedScores> {
        let all = x.scores.all();
        let largest = all.iter().fold(0.0, |most: f64, score| most.max(score.abs()));
        let step = largest / LARGEST;
        if x.len() > MOST || !step.is_normal() || all.iter().any(|score| score.is_nan()) {
            return None;
        }
        // Up from far below zero, the cast rounds down.
        let rounded = |score: &f64| ((score / step + LARGEST + 0.5) as i32 - LARGEST as i32) as i16;
        let by_place: Vec<i16> = all.iter().map(rounded).collect();
        let error = all.iter().zip(&by_place).map(|(score, &steps)| (score - f64::from(steps) * step).abs());
        let error = error.fold(0.0, f64::max);
        let mut steps = Vec::with_capacity(x.len());
        x.places.read(0..x.len(), &mut steps, |place| by_place[place as usize]);
        Some(RoundedScores { steps, step, error, largest })
    }

    /// Upper bound of the sum of one phase over this number of turns.
    fn most(&self, sums: &[i32], turns: usize) -> f64 {
        let steps = sums.iter().copied().max().map_or(0.0, f64::from);
        let turns = turns as f64;
        // Sums of scores are rounded, too, once for each turn.
        let rounded = turns * turns * self.largest * f64::EPSILON;
        steps * self.step * (1.0 + f64::EPSILON) + turns * self.error * (1.0 + f64::EPSILON) + rounded
    }
}

/// A fold in progress.
struct PartialFold {
    /// The place at which the next turn begins.
    at: usize,
    turns: usize,
    recent: Vec<i16>,
    sums: Vec<i32>,
}

impl PartialFold {
    fn new(period: usize) -> PartialFold {
        PartialFold { at: 0, turns: 0, recent: vec![0; period], sums: vec![0; period] }
    }

    /// Adds the turns that begin before this place.
    fn go_on(&mut self, steps: &[i16], until: usize) {
        let period = self.recent.len();
        while self.at < until {
            let turn = steps.get(self.at..).unwrap_or_default();
            let turn = turn.get(..period).unwrap_or(turn);
            self.recent.iter_mut().zip(turn).for_each(|(sum, steps)| *sum += steps);
            self.at += period;
            self.turns += 1;
            if self.turns % TURNS == 0 {
                self.gather();
            }
        }
    }

    fn gather(&mut self) {
        for (sum, recent) in self.sums.iter_mut().zip(&mut self.recent) {
            *sum += i32::from(std::mem::take(recent));
        }
    }
}

/// For each period up to the longest, by its number, true if no phase of it has a sum of `enough`
/// standard deviations; empty if unknown.
pub fn ruled_out(x: Placed, longest: usize, enough: f64, deviation: impl Fn(usize) -> f64) -> Vec<bool> {
    let Some(scores) = RoundedScores::of(x).filter(|_| enough > 0.0) else { return Vec::new() };
    let mut out = vec![false; longest + 1];
    let mut judge = |sums: &[i32]| {
        let turns = x.len().div_ceil(sums.len().max(1));
        // The last turn may lack the phase.
        let least = deviation(turns).min(deviation(turns.saturating_sub(1)));
        if let Some(out) = out.get_mut(sums.len()) {
            *out = scores.most(sums, turns) / least < enough;
        }
    };
    let periods: Vec<usize> = (longest / 2 + 1..=longest).collect();
    for together in periods.chunks(TOGETHER) {
        let mut folds: Vec<PartialFold> = together.iter().map(|&period| PartialFold::new(period)).collect();
        for from in (0..x.len()).step_by(PART) {
            let until = x.len().min(from + PART);
            folds.iter_mut().for_each(|fold| fold.go_on(&scores.steps, until));
        }
        for mut fold in folds {
            fold.gather();
            let mut sums = fold.sums;
            judge(&sums);
            while sums.len() % 2 == 0 && sums.len() >= 4 {
                let upper = sums.split_off(sums.len() / 2);
                sums.iter_mut().zip(upper).for_each(|(sum, other)| *sum = sum.saturating_add(other));
                judge(&sums);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use crate::steady::scores::Scores;
    use proptest::prelude::*;

    fn ruled_out_of(x: &[f64], longest: usize, enough: f64, deviation: impl Fn(usize) -> f64) -> Vec<bool> {
        let (places, scores) = Scores::of_list(x);
        ruled_out(Placed { places: &places, scores: &scores }, longest, enough, deviation)
    }

    /// Largest sum of a phase in its standard deviations, by a fold.
    fn largest(x: &[f64], period: usize, deviation: impl Fn(usize) -> f64) -> f64 {
        let sum = |phase: usize| x.iter().skip(phase).step_by(period).sum::<f64>();
        let teeth = |phase: usize| (x.len() - phase).div_ceil(period);
        (0..period).map(|phase| sum(phase) / deviation(teeth(phase))).fold(f64::MIN, f64::max)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn what_a_fold_would_keep_is_not_ruled_out(
            seed: u64, n in 20usize..4_000, by in 0.0f64..3.0, tooth in 2usize..60, enough in 0.5f64..6.0,
        ) {
            let mut rng = Rng::new(seed);
            let score = |at: usize| rng.exponential() - 1.0 + if at % tooth == 1 { by } else { 0.0 };
            let x: Vec<f64> = (0..n).map(score).collect();
            let deviation = |teeth: usize| (teeth as f64 * (1.0 - teeth as f64 / n as f64)).sqrt();
            let out = ruled_out_of(&x, n / 5, enough, deviation);
            prop_assert_eq!(out.len(), n / 5 + 1);
            for period in (2..=n / 5).filter(|&period| out[period]) {
                prop_assert!(largest(&x, period, deviation) < enough, "{}", period);
            }
        }
    }

    #[test]
    fn noise_is_ruled_out_and_a_comb_is_not() {
        let mut rng = Rng::new(3);
        let deviation = |teeth: usize| (teeth as f64 * (1.0 - teeth as f64 / 40_000.0)).sqrt();
        let mut x: Vec<f64> = (0..40_000).map(|_| rng.exponential() - 1.0).collect();
        let out = ruled_out_of(&x, 3_600, 9.0, deviation);
        assert!((2..=3_600).all(|period| out[period]), "{:?}", out.iter().skip(2).position(|out| !out));
        x.iter_mut().step_by(60).for_each(|score| *score += 5.0);
        let out = ruled_out_of(&x, 3_600, 9.0, deviation);
        assert!([60, 120, 30, 15, 3_600, 1_800].iter().all(|&period| !out[period]) && out[59] && out[3_599]);
    }

    #[test]
    fn what_has_no_steps_is_not_judged() {
        for x in [&[][..], &[0.0; 30], &[f64::NAN; 30], &[f64::INFINITY; 30]] {
            assert!(ruled_out_of(x, 6, 1.0, |_| 1.0).is_empty());
        }
    }
}
