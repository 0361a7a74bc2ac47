//! Search for a phase of some period whose blocks have larger values than the rest, over all
//! blocks, not only the largest.
//!
//! Epoch folding (Leahy and others 1983) of normal scores: for a period and a phase, the sum of the
//! scores of its teeth. p by Bonferroni: a part of it for the round periods of timers, a part for
//! every whole number of blocks up to a fifth of the run, a part for those between, whose teeth
//! move through the blocks. These are the most by far: they are tested with scores for few late
//! blocks, and with the larger part, because neighbours among them share nearly all of their teeth,
//! so that Bonferroni's bound of them is four times too large. If values depend on each other, sums
//! are divided by their spread over the phases. Assumption: at most short-range dependence.

use super::ruled_out::ruled_out;
use crate::law;
use crate::steady::scores::{self, Placed, Scores};
use model::units::Nanos;

/// Round periods in seconds, as people and programs set for timers.
const ROUND: [i64; 15] = [2, 3, 5, 10, 15, 20, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200];
/// Part of p for the search of round periods.
const ROUND_PART: f64 = 0.17;
/// Part of p for the search of whole periods.
const WHOLE_PART: f64 = 0.13;
/// Part of p for the search of the periods between.
const BETWEEN_PART: f64 = 0.7;
/// Least number of teeth of a comb with a round period, of which there are few to choose from.
const MIN_TEETH_ROUND: usize = 3;
/// Least number of teeth of another comb.
const MIN_TEETH: usize = 5;
/// Longest whole period that is folded, and longest stretch for those between.
const LONGEST: usize = 3600;
/// Number of stretches of a longer series that are folded for those between.
const STRETCHES: usize = 4;
/// Least number of blocks for a period.
const MIN_BLOCKS: usize = 20;
/// Number of scores that are read at once for a fold.
const TOGETHER: usize = 1 << 14;
/// Least number of phases for their spread.
const PHASES: usize = 16;

/// A comb of blocks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recurring {
    /// Distance of the teeth, in blocks.
    pub period: f64,
    /// Block of the first tooth, counted from 0.
    pub first: usize,
    /// Number of teeth.
    pub teeth: usize,
    /// Sum of their scores in standard deviations.
    pub z: f64,
    /// Probability of such a comb by chance, among all that were tried.
    pub p: f64,
}

/// A search: its part of p, its number of combs, and the z from which a comb is tested closely.
struct Search {
    tries: f64,
    part: f64,
    enough: f64,
}

impl Search {
    fn new(tries: f64, part: f64, alpha: f64) -> Search {
        let chance = (alpha * part / tries.max(1.0)).max(1e-300);
        Search { tries, part, enough: -law::normal_quantile(chance) }
    }
}

/// The comb with the smallest p below alpha, from normal scores and scores for late blocks, both in
/// their places in time; `block` is the length of a block.
pub fn comb(x: Placed, late: Placed, block: Nanos, alpha: f64) -> Option<Recurring> {
    let n = x.len();
    if n < MIN_BLOCKS {
        return None;
    }
    let memory = memory(x);
    let mut best: Option<Recurring> = None;
    let mut keep = |found: Option<Recurring>| {
        let better = |new: &Recurring| best.is_none_or(|best| new.p < best.p);
        best = found.filter(better).or(best);
    };
    let length = block.0.max(1);
    let round: Vec<usize> = ROUND
        .iter()
        .filter(|&&s| s * Nanos::SECOND.0 % length == 0)
        .map(|s| (s * Nanos::SECOND.0 / length) as usize)
        .filter(|&period| period >= 2 && period * MIN_TEETH_ROUND <= n)
        .collect();
    let search = Search::new(round.iter().sum::<usize>() as f64, ROUND_PART, alpha);
    round.iter().for_each(|&period| keep(fold(x, period, memory, &search)));
    let longest = (n / MIN_TEETH).min(LONGEST);
    let search = Search::new((2..=longest).sum::<usize>() as f64, WHOLE_PART, alpha);
    let out = ruled_out(x, longest, search.enough, |teeth| deviation(teeth, x.scores));
    let open = (2..=longest).filter(|&period| out.get(period) != Some(&true));
    open.for_each(|period| keep(fold(x, period, memory, &search)));
    between(late, memory, alpha, &mut keep);
    best.filter(|best| best.p < alpha)
}

/// Tests periods that are not whole numbers of blocks, so close to each other that the teeth of any
/// period are at most half a block from those of one of them.
fn between(x: Placed, memory: f64, alpha: f64, keep: &mut impl FnMut(Option<Recurring>)) {
    let n = x.len();
    let (stretches, length) = if n <= LONGEST { (1, n) } else { ((n / LONGEST).min(STRETCHES), LONGEST) };
    // Half blocks if the teeth are few; many teeth need no more than whole ones.
    let fine = if length <= 1200 { 0.5 } else { 1.0 };
    let longest = length as f64 / MIN_TEETH as f64;
    let mut periods = Vec::new();
    let mut period = 2.0;
    while period < longest {
        periods.push(period);
        period += period * fine / length as f64;
    }
    let tries = periods.iter().sum::<f64>() / fine * stretches as f64;
    let search = Search::new(tries, BETWEEN_PART, alpha);
    let mut part = Vec::with_capacity(length);
    for stretch in 0..stretches {
        let from = stretch * (n - length) / (stretches - 1).max(1);
        part.clear();
        x.read(from..from + length, &mut part);
        let here = |found: Recurring| Recurring { first: found.first + from, ..found };
        for &period in &periods {
            for shift in [0.0, 0.5].into_iter().take(if fine < 1.0 { 2 } else { 1 }) {
                let mut sums = PhaseSums::new(period, shift);
                sums.go_on(&part, 0, true);
                keep(sums.best(x.scores, memory, &search).map(here));
            }
        }
    }
}

/// Best phase of a whole period, if its p is below the search's.
fn fold(x: Placed, period: usize, memory: f64, search: &Search) -> Option<Recurring> {
    let mut sums = PhaseSums::new(period as f64, 0.0);
    let mut part = Vec::new();
    while sums.next() < x.len() {
        let from = sums.next();
        let until = x.len().min(from + period.max(TOGETHER));
        part.clear();
        x.read(from..until, &mut part);
        sums.go_on(&part, from, until == x.len());
    }
    sums.best(x.scores, memory, search)
}

/// Sums of the scores of each phase of a period.
struct PhaseSums {
    period: f64,
    /// Distance of the first turn from the first score.
    shift: f64,
    turns: usize,
    sums: Vec<f64>,
    /// The number of scores read so far.
    n: usize,
}

impl PhaseSums {
    fn new(period: f64, shift: f64) -> PhaseSums {
        PhaseSums { period, shift, turns: 0, sums: vec![0.0; period.floor() as usize], n: 0 }
    }

    /// The place at which the next turn begins.
    fn next(&self) -> usize {
        (self.turns as f64 * self.period + self.shift) as usize
    }

    /// Adds the turns in a part of the scores that begins at `from`; in the last part also those
    /// that are cut short.
    fn go_on(&mut self, part: &[f64], from: usize, is_last: bool) {
        self.n = from + part.len();
        while let Some(turn) = part.get(self.next() - from..).filter(|turn| !turn.is_empty()) {
            if turn.len() < self.sums.len() && !is_last {
                break;
            }
            self.sums.iter_mut().zip(turn).for_each(|(sum, score)| *sum += score);
            self.turns += 1;
        }
    }

    /// Best phase, if its p is below the search's.
    fn best(mut self, scores: &Scores, memory: f64, search: &Search) -> Option<Recurring> {
        let (period, turns) = (self.period, self.turns);
        let (first, &sum) = self.sums.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
        let last = (turns - 1) as f64 * period + self.shift;
        let teeth = if last as usize + first < self.n { turns } else { turns - 1 };
        let deviation = deviation(teeth, scores);
        if sum / deviation < search.enough {
            return None;
        }
        let sum = sum / spread(&mut self.sums, deviation).max(remembered(memory, period));
        let tail = scores.tail(teeth, sum);
        let p = (tail * search.tries / search.part).min(1.0);
        let z = sum / deviation;
        Some(Recurring { period, first, teeth, z, p })
    }
}

/// Standard deviation of the sum of `teeth` scores.
fn deviation(teeth: usize, scores: &Scores) -> f64 {
    (teeth as f64 * (1.0 - teeth as f64 / scores.n as f64)).sqrt()
}

/// Ratio of the spread of the phases' sums to that of independent blocks, by the median, which a
/// single phase does not move.
fn spread(sums: &mut [f64], deviation: f64) -> f64 {
    if sums.len() < PHASES {
        return 1.0;
    }
    sums.iter_mut().for_each(|sum| *sum = sum.abs());
    let middle = sums.len() / 2;
    let (_, median, _) = sums.select_nth_unstable_by(middle, f64::total_cmp);
    scores::spread(*median / deviation, sums.len() as f64)
}

/// Correlation of neighbours, if it is positive.
fn memory(x: Placed) -> f64 {
    let products: f64 = x.iter().zip(x.iter().skip(1)).map(|(a, b)| a * b).sum();
    (products / x.iter().map(|x| x * x).sum::<f64>()).clamp(0.0, 0.99)
}

/// Spread of sums of blocks that are a period apart, in a series with this correlation.
fn remembered(memory: f64, period: f64) -> f64 {
    let alike = memory.powf(period);
    ((1.0 + alike) / (1.0 - alike)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, SEED};
    use crate::steady::scores::ValueRanking;

    fn comb_of(x: &[f64], block: Nanos) -> Option<Recurring> {
        let ranking = ValueRanking::of(x)?;
        let (scores, late) = (ranking.scores(), ranking.late_scores());
        let of = |scores| Placed { places: ranking.places(), scores };
        comb(of(&scores), of(&late), block, 0.05)
    }

    /// Comb of Gumbel maxima that are this many scales larger on its teeth.
    fn planted_comb(n: usize, period: f64, by: f64, step: f64, rng: &mut Rng) -> Option<Recurring> {
        let mut x: Vec<f64> = (0..n).map(|_| -rng.exponential().ln()).collect();
        let mut at = rng.uniform() * period;
        while at < n as f64 {
            x[at as usize] += by;
            at += period;
        }
        let x: Vec<f64> = x.iter().map(|x| (x / step).floor()).collect();
        comb_of(&x, Nanos::SECOND)
    }

    #[test]
    fn combs_just_off_a_round_period_are_found() {
        let mut rng = Rng::new(SEED);
        for (period, by, least) in [(61.7, 3.0, 13), (60.3, 3.0, 13), (59.94, 4.0, 18)] {
            let found = (0..20).filter(|_| planted_comb(600, period, by, 0.01, &mut rng).is_some()).count();
            assert!(found >= least, "{period}: {found} of 20");
        }
    }

    #[test]
    fn combs_below_the_largest_blocks_are_found() {
        let mut rng = Rng::new(SEED);
        for (period, by) in [(60.0, 3.0), (7.0, 3.0), (45.0, 3.0), (20.3, 3.0), (97.0, 5.0), (120.0, 6.0)] {
            let all: Vec<Option<Recurring>> =
                (0..4).map(|_| planted_comb(600, period, by, 0.5, &mut rng)).collect();
            let right = |comb: &&Recurring| (comb.period - period).abs() < 0.02 * period;
            assert!(all.iter().flatten().filter(right).count() >= 3, "{period}: {all:?}");
        }
    }

    #[test]
    fn noise_has_no_comb_however_coarsely_it_is_recorded() {
        let mut rng = Rng::new(SEED);
        for step in [0.01, 1.0, 4.0] {
            let alarms = (0..20).filter(|_| planted_comb(600, 1e9, 0.0, step, &mut rng).is_some()).count();
            assert!(alarms <= 2, "{alarms} of 20 in steps of {step}");
        }
    }

    #[test]
    fn short_memory_is_no_comb() {
        let (mut rng, mut alarms) = (Rng::new(SEED), 0);
        for _ in 0..20 {
            let mut last = 0.0;
            let mut next = || {
                last = 0.6 * last - rng.exponential().ln();
                last
            };
            let x: Vec<f64> = (0..600).map(|_| next()).collect();
            alarms += u32::from(comb_of(&x, Nanos::SECOND).is_some());
        }
        assert!(alarms <= 2, "{alarms} of 20");
    }

    #[test]
    fn edges_have_answers() {
        for n in [3, 20, 21, 40] {
            let x: Vec<f64> = (0..n).map(f64::from).collect();
            for block in [Nanos(0), Nanos(i64::MAX), Nanos::SECOND] {
                let _ = comb_of(&x, block);
            }
        }
    }
}
