//! Scan for a stretch of the run with larger values than the rest, of any place and length.
//!
//! The scan statistic: the largest standardised sum of scores over all windows. Siegmund (1988),
//! "Approximate tail probabilities for the maxima of some random fields", in the form of Olshen,
//! Venkatraman and others (2004) for all windows of a series; the overshoot by Siegmund and Yakir
//! (2007). Windows of a geometric row of lengths are tried, which makes p a little too large.
//! Assumption: short-range dependence only: sums are divided by the spread that the windows of
//! their length have, if that is larger than of independent blocks.

use super::scores::{self, Placed};
use crate::law;
use crate::levels::Levels;
use std::ops::Range;

const SHORTEST: usize = 3;
/// Ratio of one length to the one before.
const RATIO: f64 = 1.2;
/// Number of windows that must fit next to each other for their spread to be used.
const BESIDE: usize = 64;
/// Value below which a maximum is chance for any number of windows.
const CHANCE: f64 = 3.0;
/// Least number of blocks for a stretch.
const MIN_BLOCKS: usize = 20;
/// Distance of the begins of windows that are evaluated together; wider ones need their ends summed
/// again.
const TOGETHER: usize = 1 << 15;
const NEAR: usize = 1 << 16;
/// Largest list of sizes; more are counted in classes, and only the median's is read again.
const LISTED: usize = 1 << 16;
const CLASSES: usize = 1 << 12;
/// Number of classes for each standard deviation.
const PER_DEVIATION: f64 = 512.0;

/// The most extreme window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScanWindow {
    /// First block, counted from 0.
    pub first: usize,
    /// Number of blocks.
    pub blocks: usize,
    /// Sum of its scores in standard deviations.
    pub z: f64,
    /// Probability of a window at least as extreme.
    pub p: f64,
}

/// The window with the smallest p; up to three quarters of the run long.
pub fn fullest(x: Placed) -> Option<ScanWindow> {
    let n = x.len();
    if n < MIN_BLOCKS {
        return None;
    }
    let sums = ScoreSums::of(x);
    let mut all: Vec<WidthScan> = Vec::new();
    let mut width = SHORTEST;
    while 4 * width <= 3 * n {
        all.push(WidthScan::new(width, n));
        width = (width + 1).max((width as f64 * RATIO) as usize);
    }
    look(&sums, &mut all);
    let mut spread = 1.0;
    let mut best: Option<ScanWindow> = None;
    for windows in all {
        let (width, first, sum) = (windows.width, windows.first, windows.sum);
        if let Some(sizes) = windows.sizes {
            spread =
                scores::spread(sizes.median(&sums, width) / deviation(width, n), n as f64 / width as f64);
        }
        let sum = sum / spread;
        let z = sum / deviation(width, n);
        // The sum of a window that is much of the run varies less than that of scores drawn with
        // replacement.
        let drawn = sum / (1.0 - width as f64 / n as f64).sqrt();
        let z = if z < CHANCE { z } else { z.min(quantile(x.scores.tail(width, drawn))) };
        if best.is_none_or(|best| z > best.z) {
            best = Some(ScanWindow { first, blocks: width, z, p: 1.0 });
        }
    }
    best.map(|best| ScanWindow { p: some_window(best.z, n), ..best })
}

/// Sums of the scores before each place, of which one in `APART` is kept: the others are added up
/// again, in the same order.
struct ScoreSums<'a> {
    x: Placed<'a>,
    sums: Vec<f64>,
}

impl<'a> ScoreSums<'a> {
    const APART: usize = 1 << 12;

    fn of(x: Placed<'a>) -> ScoreSums<'a> {
        let mut sum = 0.0;
        let sums = x.iter().enumerate().filter_map(|(at, score)| {
            let before = sum;
            sum += score;
            (at % Self::APART == 0).then_some(before)
        });
        ScoreSums { x, sums: sums.collect() }
    }

    /// Sums before some places, of which the last may be the end.
    fn read(&self, places: Range<usize>, into: &mut Vec<f64>) {
        let nth = (places.start / Self::APART).min(self.sums.len() - 1);
        let from = nth * Self::APART;
        into.clear();
        self.x.read(from..places.end - 1, into);
        let mut sum = self.sums[nth];
        for score in into.iter_mut() {
            (*score, sum) = (sum, sum + *score);
        }
        into.push(sum);
        into.drain(..places.start - from);
    }

    /// Sizes of the sums of windows, each a step after the one before.
    fn sizes(&self, width: usize) -> impl Iterator<Item = f64> {
        let before = || {
            let mut sum = 0.0;
            std::iter::once(0.0).chain(self.x.iter().map(move |score| {
                sum += score;
                sum
            }))
        };
        let windows = before().zip(before().skip(width));
        windows.step_by(step(width)).map(|(from, to)| f64::abs(to - from))
    }
}

/// Distance of windows whose sizes are used.
fn step(width: usize) -> usize {
    (width / 2).max(1)
}

/// The windows of one width.
struct WidthScan {
    width: usize,
    /// Begin of the window with the largest sum, the last of equal ones.
    first: usize,
    sum: f64,
    sizes: Option<WindowSizes>,
}

/// Sizes of sums, or the number of them in each class.
enum WindowSizes {
    Listed(Vec<f64>),
    Counted(f64, Vec<u32>),
}

impl WidthScan {
    fn new(width: usize, n: usize) -> WidthScan {
        let count = (n - width) / step(width) + 1;
        let sizes = (width * BESIDE <= n).then(|| {
            if count <= LISTED {
                WindowSizes::Listed(Vec::with_capacity(count))
            } else {
                WindowSizes::Counted(deviation(width, n), vec![0; CLASSES])
            }
        });
        WidthScan { width, first: 0, sum: f64::NEG_INFINITY, sizes }
    }

    /// Evaluates the windows from a place on, by the sums before their begins and their ends.
    fn look(&mut self, from: usize, begins: &[f64], ends: &[f64]) {
        for (at, (begin, end)) in begins.iter().zip(ends).enumerate() {
            if end - begin >= self.sum {
                (self.first, self.sum) = (from + at, end - begin);
            }
        }
        let Some(sizes) = &mut self.sizes else { return };
        let step = step(self.width);
        let pairs = begins.iter().zip(ends).skip(from.next_multiple_of(step) - from).step_by(step);
        pairs.for_each(|(begin, end)| sizes.add(f64::abs(end - begin)));
    }
}

impl WindowSizes {
    fn add(&mut self, size: f64) {
        match self {
            WindowSizes::Listed(all) => all.push(size),
            WindowSizes::Counted(deviation, counts) => counts[class(size, *deviation)] += 1,
        }
    }

    /// The upper one of the middle two.
    fn median(self, sums: &ScoreSums, width: usize) -> f64 {
        let (deviation, counts) = match self {
            WindowSizes::Listed(mut all) => {
                let middle = all.len() / 2;
                return *all.select_nth_unstable_by(middle, f64::total_cmp).1;
            }
            WindowSizes::Counted(deviation, counts) => (deviation, counts),
        };
        let mut left = counts.iter().map(|&count| u64::from(count)).sum::<u64>() / 2;
        let mut middle = 0;
        while left >= u64::from(counts[middle]) {
            left -= u64::from(counts[middle]);
            middle += 1;
        }
        let near = sums.sizes(width).filter(|&size| class(size, deviation) == middle);
        Levels::of(near, counts[middle] as usize).at(left).unwrap_or_default()
    }
}

fn class(size: f64, deviation: f64) -> usize {
    ((size / deviation * PER_DEVIATION) as usize).min(CLASSES - 1)
}

/// Evaluates the windows of all widths.
fn look(sums: &ScoreSums, all: &mut [WidthScan]) {
    let n = sums.x.len();
    let (mut near, mut far) = (Vec::new(), Vec::new());
    for from in (0..n).step_by(TOGETHER) {
        sums.read(from..(from + TOGETHER + NEAR + 1).min(n + 1), &mut near);
        for windows in all.iter_mut().filter(|windows| from + windows.width <= n) {
            let count = (n - windows.width + 1 - from).min(TOGETHER);
            let ends = from + windows.width;
            match near.get(windows.width..windows.width + count) {
                Some(ends) => windows.look(from, &near[..count], ends),
                None => {
                    sums.read(ends..ends + count, &mut far);
                    windows.look(from, &near[..count], &far);
                }
            }
        }
    }
}

/// Standard deviation of the sum of `width` of n scores.
fn deviation(width: usize, n: usize) -> f64 {
    (width as f64 * (1.0 - width as f64 / n as f64)).sqrt()
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
    use crate::steady::scores::ValueRanking;

    fn fullest_of(x: &[f64]) -> Option<ScanWindow> {
        let ranking = ValueRanking::of(x)?;
        fullest(Placed { places: ranking.places(), scores: &ranking.scores() })
    }

    /// Gumbel maxima with a stretch that is larger by three scales.
    fn with(n: usize, stretch: std::ops::Range<usize>, rng: &mut Rng) -> Option<ScanWindow> {
        let mut x: Vec<f64> = (0..n).map(|_| -rng.exponential().ln()).collect();
        x[stretch].iter_mut().for_each(|x| *x += 3.0);
        fullest_of(&x)
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

    /// Scan of all sums at once, as in the paper.
    fn plainly(scores: &[f64], tail: impl Fn(usize, f64) -> f64) -> Option<ScanWindow> {
        let n = scores.len();
        let mut sums = vec![0.0];
        scores.iter().for_each(|score| sums.push(sums[sums.len() - 1] + score));
        let (mut width, mut spread) = (SHORTEST, 1.0);
        let mut best: Option<ScanWindow> = None;
        while 4 * width <= 3 * n {
            let sum = |first: usize| sums[first + width] - sums[first];
            if width * BESIDE <= n {
                let mut sizes: Vec<f64> =
                    (0..=n - width).step_by(step(width)).map(|first| sum(first).abs()).collect();
                sizes.sort_by(f64::total_cmp);
                let wide = sizes[sizes.len() / 2] / deviation(width, n);
                spread = scores::spread(wide, n as f64 / width as f64);
            }
            let first = (0..=n - width).max_by(|&a, &b| sum(a).total_cmp(&sum(b)))?;
            let (sum, drawn) = (sum(first) / spread, (1.0 - width as f64 / n as f64).sqrt());
            let z = sum / deviation(width, n);
            let z = if z < CHANCE { z } else { z.min(quantile(tail(width, sum / drawn))) };
            if best.is_none_or(|best| z > best.z) {
                best = Some(ScanWindow { first, blocks: width, z, p: 1.0 });
            }
            width = (width + 1).max((width as f64 * RATIO) as usize);
        }
        best.map(|best| ScanWindow { p: some_window(best.z, n), ..best })
    }

    #[test]
    fn sums_added_up_again_are_the_same_to_the_last_bit() {
        let mut rng = Rng::new(SEED);
        // Beyond the lengths from which sizes are counted, and ends are summed again.
        for (n, stretch) in
            [(4_096, 0..0), (8_193, 4_000..4_900), (150_000, 9_000..9_020), (200_001, 0..99_000)]
        {
            let mut last = 0.0;
            let mut next = || {
                last = 0.3 * last + (100.0 * rng.exponential()).floor();
                last
            };
            let mut x: Vec<f64> = (0..n).map(|_| next()).collect();
            x[stretch].iter_mut().for_each(|x| *x += 30.0);
            let ranking = ValueRanking::of(&x).unwrap();
            let scores = ranking.scores();
            let placed = Placed { places: ranking.places(), scores: &scores };
            let all: Vec<f64> = placed.iter().collect();
            assert_eq!(fullest(placed), plainly(&all, |width, sum| scores.tail(width, sum)), "{n}");
        }
    }

    fn alarms(mut value: impl FnMut(&mut Rng) -> f64) -> usize {
        let mut rng = Rng::new(SEED);
        let mut alarm = || {
            let x: Vec<f64> = (0..600).map(|_| value(&mut rng)).collect();
            fullest_of(&x).is_some_and(|window| window.p < 0.02)
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
            let _ = fullest_of(&x);
        }
        assert_eq!(some_window(0.0, 600), 1.0);
        assert!(some_window(9.0, 600) < 1e-12);
    }
}
