//! Normal scores of a series, and the probability that the same number of scores, drawn at random,
//! has a sum as large.
//!
//! Van der Waerden (1952): a rank r of n counts as the normal quantile of r / (n + 1), equal values
//! as the mean of their ranks. The sum of drawn scores is bounded by the saddlepoint (Lugannani and
//! Rice 1980; with Daniels' correction for lattices, 1987), as if each were put back, which makes
//! it a little too likely (Hoeffding 1963). The normal law does not suffice: if few values recur,
//! the scores are few and skewed. Assumption: every order of the values is as likely.

use super::ranks;
use crate::law;
use crate::levels::Levels;
use crate::values::{SeriesValues, in_chunks};
use model::column::Column;
use std::ops::Range;

/// Largest number of different scores in the law of their sum; more are joined.
const MAX_SCORES: usize = 512;
/// Largest distance of joined scores.
const JOINED: f64 = 1.0 / 64.0;
/// Lateness of the late blocks, in scales of the law.
const LATER: f64 = 2.5;
/// Share of ordinary blocks among the late ones.
const AMISS: f64 = 0.2;
/// Steps of the search for the saddlepoint.
const STEPS: u32 = 60;

/// The place of each value of a series among the different ones, ascending.
#[derive(Debug, Clone)]
pub struct ValueRanking {
    places: Column,
    /// Number of values in each place.
    counts: Vec<u64>,
}

impl ValueRanking {
    /// Ranks the values; `None` if all are equal.
    pub fn of<'a>(x: impl Into<SeriesValues<'a>>) -> Option<ValueRanking> {
        let x = x.into();
        if x.len() < 3 || !ranks::varies(x) {
            return None;
        }
        let levels = Levels::of(x.iter(), x.len());
        let mut places = Column::default();
        x.iter().for_each(|x| places.push(levels.place(x) as i64));
        Some(ValueRanking { places, counts: levels.all().iter().map(|level| level.1).collect() })
    }

    /// Normal scores.
    pub fn scores(&self) -> Scores {
        self.by(law::normal_quantile)
    }

    /// Scores for a few values that are later by [`LATER`] scales of their law than the rest: the
    /// logarithm of how much likelier a rank is for one of them (Gumbel), of which [`AMISS`] are as
    /// the rest. Unlike the normal score it hardly distinguishes medium values from small ones.
    pub fn late_scores(&self) -> Scores {
        let times = LATER.exp();
        self.by(|rank| (AMISS + (1.0 - AMISS) * times * rank.powf(times - 1.0)).ln())
    }

    /// Scores of ranks, given as parts of all.
    fn by(&self, score: impl Fn(f64) -> f64) -> Scores {
        let n = self.places.len() as f64;
        let mut law: Vec<(f64, f64)> = Vec::with_capacity(self.counts.len());
        let mut below = 0.0;
        for &count in &self.counts {
            let rank = below + (count as f64 + 1.0) / 2.0;
            law.push((score(rank / (n + 1.0)), count as f64 / n));
            below += count as f64;
        }
        let mean: f64 = law.iter().map(|(score, share)| score * share).sum();
        let squares: f64 = law.iter().map(|(score, share)| (score - mean).powi(2) * share).sum();
        let scale = (squares * n / (n - 1.0)).sqrt();
        law.iter_mut().for_each(|(score, _)| *score = (*score - mean) / scale);
        let mut by_place: Vec<f64> = law.iter().map(|one| one.0).collect();
        by_place.push(0.0);
        let law = joined(law);
        let gap = law.windows(2).map(|pair| pair[1].0 - pair[0].0).fold(0.0, f64::max);
        Scores { n: self.places.len(), by_place, law, gap }
    }

    /// The place after the last, whose score is 0.
    pub fn ordinary(&self) -> i64 {
        self.counts.len() as i64
    }

    /// The places in the order of the series.
    pub fn places(&self) -> &Column {
        &self.places
    }
}

/// The scores of a ranking: mean 0 and, over n - 1, variance 1.
#[derive(Debug, Clone)]
pub struct Scores {
    /// Number of values.
    pub n: usize,
    /// One score for each place, and one for a missing value.
    by_place: Vec<f64>,
    /// Different scores, ascending, each with its share.
    law: Vec<(f64, f64)>,
    /// Widest gap between two neighbours of them.
    gap: f64,
}

/// Scores one after the other: millions are places with a table.
#[derive(Clone, Copy)]
pub struct Placed<'a> {
    pub places: &'a Column,
    pub scores: &'a Scores,
}

impl<'a> Placed<'a> {
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Appends the scores at some places in time.
    pub fn read(&self, range: Range<usize>, into: &mut Vec<f64>) {
        self.places.read(range, into, |place| self.scores.of_place(place));
    }

    /// All scores, in order.
    pub fn iter(&self) -> impl Iterator<Item = f64> + use<'a> {
        let placed = *self;
        in_chunks(self.len(), move |range, into| placed.read(range, into))
    }
}

impl Scores {
    /// Scores of a list, each in a separate place.
    #[cfg(test)]
    pub fn of_list(all: &[f64]) -> (Column, Scores) {
        let mut places = Column::default();
        (0..all.len() as i64).for_each(|place| places.push(place));
        (places, Scores { n: all.len(), by_place: all.to_vec(), law: Vec::new(), gap: 0.0 })
    }

    pub fn of_place(&self, place: i64) -> f64 {
        self.by_place[place as usize]
    }

    /// The score of every place.
    pub fn all(&self) -> &[f64] {
        &self.by_place
    }

    /// Probability that k of the scores, drawn at random, have at least this sum.
    pub fn tail(&self, k: usize, sum: f64) -> f64 {
        let k = k as f64;
        let mean = sum / k;
        let (Some(&(largest, share)), true) = (self.law.last(), mean > 0.0) else { return 1.0 };
        if mean >= largest - 1e-9 {
            return share.powf(k);
        }
        let (mut low, mut high) = (0.0, 1.0);
        while self.tilted(high).1 < mean && high < 1e6 {
            high *= 2.0;
        }
        for _ in 0..STEPS {
            let middle = (low + high) / 2.0;
            if self.tilted(middle).1 < mean { low = middle } else { high = middle }
        }
        let tilt = (low + high) / 2.0;
        let (log, _, variance) = self.tilted(tilt);
        let root = (2.0 * k * (tilt * mean - log)).max(0.0).sqrt();
        let lattice = -(-tilt * self.gap).exp_m1() / self.gap;
        let steep = lattice * (k * variance).sqrt();
        if root < 1e-3 || steep <= 0.0 {
            return 1.0;
        }
        let density = (-root * root / 2.0).exp() / std::f64::consts::TAU.sqrt();
        (law::normal_two_sided(root) / 2.0 + density * (1.0 / steep - 1.0 / root)).clamp(0.0, 1.0)
    }

    /// Logarithm of the moment generating function, and mean and variance of the law that it tilts
    /// to.
    fn tilted(&self, tilt: f64) -> (f64, f64, f64) {
        let top = self.law.last().map_or(0.0, |last| last.0);
        let (mut sum, mut first, mut second) = (0.0, 0.0, 0.0);
        for &(score, share) in &self.law {
            // Relative to the largest, so that nothing overflows.
            let weight = share * (tilt * (score - top)).exp();
            sum += weight;
            first += weight * score;
            second += weight * score * score;
        }
        let mean = first / sum;
        (sum.ln() + tilt * top, mean, (second / sum - mean * mean).max(0.0))
    }
}

/// Joins neighbouring scores if there are many.
fn joined(law: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if law.len() <= MAX_SCORES {
        return law;
    }
    let mut few: Vec<(f64, f64)> = Vec::new();
    for group in law.chunk_by(|a, b| (a.0 / JOINED).floor() == (b.0 / JOINED).floor()) {
        let share: f64 = group.iter().map(|one| one.1).sum();
        few.push((group.iter().map(|one| one.0 * one.1).sum::<f64>() / share, share));
    }
    few
}

/// Ratio of the spread of this number of sums to that of independent scores, from the median of
/// their sizes, each in its standard deviations; 1 if that may be chance. The median is not moved
/// by the few sums that a search is for.
pub fn spread(median: f64, sums: f64) -> f64 {
    // The median of a normal variable's size; of the estimate two standard errors, 1.17 over the
    // root each.
    let wider = median / 0.674_489_75;
    if wider > 1.0 + 2.0 * 1.17 / sums.max(1.0).sqrt() { wider } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, SEED};

    fn listed(x: &[f64]) -> (Scores, Vec<f64>) {
        let ranking = ValueRanking::of(x).unwrap();
        let scores = ranking.scores();
        let all = Placed { places: ranking.places(), scores: &scores }.iter().collect();
        (scores, all)
    }

    #[test]
    fn scores_are_normal_quantiles_of_midranks() {
        let scores = listed(&[3.0, 1.0, 2.0, 2.0]).1;
        // Quantiles of 4/5, 1/5, 2.5/5, 2.5/5; the squares sum to n - 1.
        let end = (3.0f64 / 2.0).sqrt();
        for (score, expected) in scores.iter().zip([end, -end, 0.0, 0.0]) {
            assert!((score - expected).abs() < 1e-9, "{scores:?}");
        }
        assert!(
            ValueRanking::of(&[]).is_none()
                && ValueRanking::of(&[2.0; 9]).is_none()
                && ValueRanking::of(&[f64::NAN; 5]).is_none()
        );
    }

    #[test]
    fn few_high_values_have_the_binomial_s_tail_and_not_the_normal_one() {
        let x: Vec<f64> = (0..600).map(|i| if i % 20 == 0 { 6.0 } else { 5.0 }).collect();
        let (scores, all) = listed(&x);
        let (high, low) = (all[0], all[1]);
        for k in [3, 4, 6] {
            let tail = scores.tail(10, f64::from(k) * high + f64::from(10 - k) * low);
            let exact = law::binomial_at_least(k as u64, 10, 0.05);
            assert!((0.8..1.6).contains(&(tail / exact)), "{k}: {tail} for {exact}");
        }
        assert!((scores.tail(3, 3.0 * high) - 0.05f64.powi(3)).abs() < 1e-12);
    }

    #[test]
    fn sums_of_many_scores_have_the_tail_that_draws_have() {
        let mut rng = Rng::new(SEED);
        let x: Vec<f64> = (0..900).map(|_| rng.exponential()).collect();
        let (scores, all) = listed(&x);
        let sum = |rng: &mut Rng| (0..10).map(|_| all[rng.below(900)]).sum::<f64>();
        let drawn = (0..20_000).filter(|_| sum(&mut rng) >= 7.0).count() as f64 / 20_000.0;
        let tail = scores.tail(10, 7.0);
        assert!((tail / drawn - 1.0).abs() < 0.2, "{tail} for {drawn}");
        assert_eq!((scores.tail(10, -1.0), scores.tail(0, 0.0)), (1.0, 1.0));
        assert!(scores.tail(5, 1e9) < 1e-9);
    }
}
