//! Is there a stretch of the run with larger values than the rest, wherever it lies and however
//! long it is?
//!
//! The scan statistic: the largest standardised sum of scores over all windows. Siegmund (1988),
//! "Approximate tail probabilities for the maxima of some random fields", in the form of Olshen,
//! Venkatraman and others (2004) for all windows of a series; the overshoot by Siegmund and Yakir
//! (2007). Windows of a geometric row of lengths are tried, which makes p a little too large.
//! Assumption: short-range dependence only: sums are divided by the spread that the windows of
//! their length have, where that is larger than of independent blocks.

use super::scores::{self, Scores};
use crate::law;

const SHORTEST: usize = 3;
/// From one length to the next.
const RATIO: f64 = 1.2;
/// The spread of windows is taken where at least this many fit side by side.
const BESIDE: usize = 64;
/// Below this a maximum is chance whatever the number of windows.
const CHANCE: f64 = 3.0;
/// Fewer blocks have no stretches.
const MIN_BLOCKS: usize = 20;

/// The most extreme window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScanWindow {
    /// Its first block, counted from 0.
    pub first: usize,
    /// How many blocks it has.
    pub blocks: usize,
    /// Its sum of scores in standard deviations.
    pub z: f64,
    /// The probability of a window at least as extreme.
    pub p: f64,
}

/// The window with the smallest p; up to three quarters of the run long.
pub fn fullest(scores: &Scores) -> Option<ScanWindow> {
    let n = scores.all.len();
    if n < MIN_BLOCKS {
        return None;
    }
    let mut sums = Vec::with_capacity(n + 1);
    sums.push(0.0);
    for score in &scores.all {
        sums.push(sums[sums.len() - 1] + score);
    }
    let (mut width, mut spread) = (SHORTEST, 1.0);
    let mut best: Option<ScanWindow> = None;
    while 4 * width <= 3 * n {
        if width * BESIDE <= n {
            spread = spread_of(&sums, width);
        }
        let sum = |first: usize| sums[first + width] - sums[first];
        let first = (0..=n - width).max_by(|&a, &b| sum(a).total_cmp(&sum(b)))?;
        let sum = sum(first) / spread;
        let z = sum / deviation(width, n);
        // Of a window that is much of the run, the sum varies less than that of scores that are put
        // back.
        let drawn = sum / (1.0 - width as f64 / n as f64).sqrt();
        let z = if z < CHANCE { z } else { z.min(quantile(scores.tail(width, drawn))) };
        if best.is_none_or(|best| z > best.z) {
            best = Some(ScanWindow { first, blocks: width, z, p: 1.0 });
        }
        width = (width + 1).max((width as f64 * RATIO) as usize);
    }
    best.map(|best| ScanWindow { p: some_window(best.z, n), ..best })
}

/// Standard deviation of the sum of `width` of n scores.
fn deviation(width: usize, n: usize) -> f64 {
    (width as f64 * (1.0 - width as f64 / n as f64)).sqrt()
}

/// How much wider the sums of windows spread than those of independent blocks; their median, which
/// a few full windows do not move.
fn spread_of(sums: &[f64], width: usize) -> f64 {
    let n = sums.len() - 1;
    let every = (width / 2).max(1);
    let mut sizes: Vec<f64> =
        (0..=n - width).step_by(every).map(|first| (sums[first + width] - sums[first]).abs()).collect();
    let middle = sizes.len() / 2;
    let (_, median, _) = sizes.select_nth_unstable_by(middle, f64::total_cmp);
    scores::spread(*median / deviation(width, n), n as f64 / width as f64)
}

/// The normal quantile of a small upper tail.
fn quantile(tail: f64) -> f64 {
    -law::normal_quantile(tail.max(1e-300))
}

/// P(some window of n independent blocks has such a z).
fn some_window(z: f64, n: usize) -> f64 {
    if z < CHANCE {
        return 1.0;
    }
    let n = n as f64;
    let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
    let mut sum = 0.0;
    let mut width = SHORTEST as f64;
    while 4.0 * width <= 3.0 * n {
        // By ever longer pieces: the terms change slowly.
        let next = (width + 1.0).max((width * 1.05).floor());
        let middle = (width + next - 1.0) / 2.0;
        let size = middle * (1.0 - middle / n);
        sum += (next - width) * (n - middle) * (overshoot(z / size.sqrt()) / size).powi(2);
        width = next;
    }
    (z.powi(3) * density * sum / 4.0).min(1.0)
}

/// Siegmund's correction for sums that pass a boundary in steps.
fn overshoot(x: f64) -> f64 {
    let below = 1.0 - law::normal_two_sided(x / 2.0) / 2.0;
    let density = (-x * x / 8.0).exp() / std::f64::consts::TAU.sqrt();
    (2.0 / x) * (below - 0.5) / (x / 2.0 * below + density)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Rng, SEED};

    /// Gumbel maxima with a stretch that is larger by three scales.
    fn with(n: usize, stretch: std::ops::Range<usize>, rng: &mut Rng) -> Option<ScanWindow> {
        let mut x: Vec<f64> = (0..n).map(|_| -rng.exponential().ln()).collect();
        x[stretch].iter_mut().for_each(|x| *x += 3.0);
        fullest(&Scores::of(&x)?)
    }

    #[test]
    fn stretches_are_found_wherever_they_lie() {
        let mut rng = Rng::new(SEED);
        for (n, first, blocks) in
            [(600, 100, 30), (600, 0, 12), (600, 588, 12), (600, 300, 300), (3_600, 1_777, 30), (60, 20, 12)]
        {
            let window = with(n, first..first + blocks, &mut rng).unwrap();
            assert!(window.p < 0.02, "{window:?}");
            assert!(window.first.abs_diff(first) <= 3 + blocks / 4, "{window:?} for {first}");
            assert!((0.6..1.6).contains(&(window.blocks as f64 / blocks as f64)), "{window:?} for {blocks}");
        }
    }

    fn alarms(mut value: impl FnMut(&mut Rng) -> f64) -> usize {
        let mut rng = Rng::new(SEED);
        let mut alarm = || {
            let x: Vec<f64> = (0..600).map(|_| value(&mut rng)).collect();
            Scores::of(&x).and_then(|scores| fullest(&scores)).is_some_and(|window| window.p < 0.02)
        };
        (0..100).filter(|_| alarm()).count()
    }

    #[test]
    fn noise_memory_and_few_values_have_none() {
        let noise = alarms(|rng| -rng.exponential().ln());
        let two = alarms(|rng| f64::from(u8::from(rng.uniform() < 0.05)));
        let mut last = 0.0;
        let memory = alarms(|rng| {
            last = 0.4 * last - rng.exponential().ln();
            last
        });
        assert!(noise <= 4 && two <= 4 && memory <= 9, "{noise} {two} {memory} of 100");
    }

    #[test]
    fn edges_have_answers() {
        for x in [vec![1.0, 2.0], (0..25).map(f64::from).collect(), vec![0.0; 19]] {
            let _ = Scores::of(&x).and_then(|scores| fullest(&scores));
        }
        assert_eq!(some_window(0.0, 600), 1.0);
        assert!(some_window(9.0, 600) < 1e-12);
    }
}
