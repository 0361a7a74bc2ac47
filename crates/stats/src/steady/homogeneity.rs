//! Spread of the large values over the run: the blocks that hold them, in halves and in ten
//! windows.
//!
//! Cox and Lewis (1966), The Statistical Analysis of Series of Events: halves by the exact binomial
//! test, windows by the index of dispersion. Assumption: exchangeable blocks, of which each is as
//! likely as any other to be a large one. A mechanism that recurs evenly passes.

use super::ranks;
use crate::law;
use crate::levels::Levels;
use crate::rng::{Rng, SEED};
use crate::values::SeriesValues;

/// Number of windows into which the run is cut.
pub const WINDOWS: usize = 10;
/// Least number of large blocks for chi-squared: with fewer the p is drawn.
const ENOUGH: usize = 3 * WINDOWS;
/// Number of drawn placements.
const DRAWS: u32 = 1999;

/// Places of the large blocks of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Homogeneity {
    /// Number of large blocks.
    pub large: u64,
    /// Number of them in the first half of the blocks (the shorter one for odd n).
    pub first_half: u64,
    /// Two-sided, exact for halves of these lengths.
    pub halves_p: f64,
    /// Number of them in each window, in order of time.
    pub windows: [u64; WINDOWS],
    /// The chi-squared statistic of the windows.
    pub dispersion: f64,
    /// P(dispersion or more): from 30 large blocks on by chi-squared with nine degrees of freedom,
    /// else drawn with a fixed seed, and then at least 1/2000.
    pub dispersion_p: f64,
    /// The shortest stretch with at least half of the large blocks.
    pub stretch: BusyStretch,
}

/// Blocks in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyStretch {
    /// First block, counted from 0.
    pub first: usize,
    /// Number of blocks: of n, its share of the time.
    pub blocks: usize,
    /// Number of large blocks in it.
    pub large: u64,
}

/// Blocks with the largest values, in order of time: about this share of them.
///
/// Equal values are all taken or all excluded, whichever is nearer to the share, so that no place
/// is preferred. Empty if that would take more than half of the blocks.
pub fn top_blocks<'a>(x: impl Into<SeriesValues<'a>>, share: f64) -> Vec<usize> {
    let x = x.into();
    let wanted = (x.len() as f64 * share.clamp(0.0, 1.0)).ceil() as usize;
    if wanted == 0 || !ranks::varies(x) {
        return Vec::new();
    }
    let levels = Levels::of(x.iter(), x.len());
    let Some(level) = levels.at((x.len() - wanted) as u64) else { return Vec::new() };
    let above = x.iter().filter(|&x| x > level).count();
    let from = x.iter().filter(|&x| x >= level).count();
    let leave_level = above > 0 && wanted - above <= from - wanted;
    let is_top = |x: f64| if leave_level { x > level } else { x >= level };
    let top: Vec<usize> = x.iter().enumerate().filter(|&(_, x)| is_top(x)).map(|(i, _)| i).collect();
    if 2 * top.len() > x.len() { Vec::new() } else { top }
}

/// Tests the blocks with the largest 5 % of the values.
pub fn of_top_blocks<'a>(x: impl Into<SeriesValues<'a>>) -> Option<Homogeneity> {
    let x = x.into();
    of_places(&top_blocks(x, 0.05), x.len())
}

/// Tests given blocks of n, counted from 0 and in any order; those outside are ignored.
pub fn of_places(places: &[usize], n: usize) -> Option<Homogeneity> {
    let mut places: Vec<usize> = places.iter().copied().filter(|&place| place < n).collect();
    places.sort_unstable();
    places.dedup();
    if places.is_empty() || n < WINDOWS {
        return None;
    }
    let large = places.len() as u64;
    let first_half = places.iter().filter(|&&place| place < n / 2).count() as u64;
    let mut windows = [0; WINDOWS];
    places.iter().for_each(|&place| windows[window_of(place, n)] += 1);
    let sizes = sizes(n);
    let dispersion = dispersion(&windows, &sizes);
    let dispersion_p = if places.len() < ENOUGH {
        drawn_p(dispersion, places.len(), n, &sizes)
    } else {
        law::chi2_tail(dispersion, (WINDOWS - 1) as f64)
    };
    let halves_p = two_sided(first_half, large, (n / 2) as f64 / n as f64);
    let stretch = shortest_half(&places)?;
    Some(Homogeneity { large, first_half, halves_p, windows, dispersion, dispersion_p, stretch })
}

fn window_of(place: usize, n: usize) -> usize {
    (place as u128 * WINDOWS as u128 / n as u128) as usize
}

/// Number of the n blocks in each window.
fn sizes(n: usize) -> [u64; WINDOWS] {
    // The first block of window w is the first whose ten-fold is at least w n.
    let edge = |w: usize| (w as u128 * n as u128).div_ceil(WINDOWS as u128) as u64;
    std::array::from_fn(|w| edge(w + 1) - edge(w))
}

/// Twice the smaller tail of the binomial law.
fn two_sided(k: u64, n: u64, p: f64) -> f64 {
    (2.0 * law::binomial_at_most(k, n, p).min(law::binomial_at_least(k, n, p))).min(1.0)
}

fn dispersion(counts: &[u64; WINDOWS], sizes: &[u64; WINDOWS]) -> f64 {
    let per_block = counts.iter().sum::<u64>() as f64 / sizes.iter().sum::<u64>() as f64;
    let expected = sizes.iter().map(|&size| per_block * size as f64);
    counts.iter().zip(expected).map(|(&count, expected)| (count as f64 - expected).powi(2) / expected).sum()
}

/// The p-value of the dispersion from drawn placements: (as far or further + 1) / (drawn + 1).
fn drawn_p(observed: f64, large: usize, n: usize, sizes: &[u64; WINDOWS]) -> f64 {
    let mut rng = Rng::new(SEED);
    let mut reached = 0;
    let mut places = Vec::with_capacity(large);
    for _ in 0..DRAWS {
        let mut counts = [0; WINDOWS];
        places.clear();
        // Floyd (1987): distinct places, each set of them as likely as any other.
        for last in n - large..n {
            let place = rng.below(last + 1);
            let place = if places.contains(&place) { last } else { place };
            places.push(place);
            counts[window_of(place, n)] += 1;
        }
        // Equal counts may differ in the last bit when summed in another order.
        reached += u32::from(dispersion(&counts, sizes) >= observed * (1.0 - 1e-9));
    }
    f64::from(reached + 1) / f64::from(DRAWS + 1)
}

fn shortest_half(places: &[usize]) -> Option<BusyStretch> {
    let half = places.len().div_ceil(2);
    let stretch = |group: &[usize]| -> Option<BusyStretch> {
        let (first, last) = (*group.first()?, *group.last()?);
        Some(BusyStretch { first, blocks: last - first + 1, large: half as u64 })
    };
    places.windows(half.max(1)).filter_map(stretch).min_by_key(|stretch| stretch.blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn even_places_pass_and_a_burst_does_not() {
        let even: Vec<usize> = (0..600).step_by(10).collect();
        let test = of_places(&even, 600).unwrap();
        assert_eq!((test.large, test.first_half, test.windows, test.dispersion), (60, 30, [6; 10], 0.0));
        assert_eq!((test.halves_p, test.dispersion_p), (1.0, 1.0));
        let burst: Vec<usize> = (300..320).chain([5, 100, 250, 400, 550]).collect();
        let test = of_places(&burst, 600).unwrap();
        assert!(test.dispersion_p <= 0.001 && test.stretch.blocks == 13 && test.stretch.large == 13);
        assert_eq!(test.stretch.first, 300);
    }

    #[test]
    fn halves_are_binomial() {
        // 12 of 16 in one half of the same length: the check value of the conditional binomial
        // test.
        assert!((two_sided(12, 16, 0.5) - 0.076_812_744).abs() < 1e-8);
        assert!((two_sided(0, 8, 0.5) - 0.007_812_5).abs() + (two_sided(0, 6, 0.5) - 0.031_25).abs() < 1e-12);
        let places: Vec<usize> = (0..12).chain(60..64).collect();
        assert!((of_places(&places, 100).unwrap().halves_p - 0.076_812_744).abs() < 1e-8);
    }

    #[test]
    fn dispersion_is_chi_squared() {
        // 100 blocks of 1000, 19 of them in the first window and 9 in each other: 9^2/10 + 9 *
        // 1/10.
        let places: Vec<usize> =
            (0..10).flat_map(|w| (0..if w == 0 { 19 } else { 9 }).map(move |i| w * 100 + i)).collect();
        let test = of_places(&places, 1000).unwrap();
        assert!((test.dispersion - 9.0).abs() < 1e-12 && (test.dispersion_p - 0.437_274_189).abs() < 1e-8);
    }

    #[test]
    fn a_few_in_one_window_have_their_exact_p() {
        // Three of 60 in one window of six: 10 * C(6, 3) / C(60, 3) = 0.005845, not the 0.0014 of
        // chi-squared.
        let p = of_places(&[0, 3, 5], 60).unwrap().dispersion_p;
        assert!((p - 0.005_845).abs() < 3.0 * (0.005_845f64 / f64::from(DRAWS)).sqrt() + 5e-4, "{p}");
    }

    #[test]
    fn equal_values_go_together() {
        let mut x: Vec<f64> = (0..100).map(|i| f64::from(i % 10)).collect();
        assert_eq!(top_blocks(&x, 0.05).len(), 10);
        x[50] = 20.0;
        x[3] = 20.0;
        assert_eq!(top_blocks(&x, 0.05), [3, 50]);
        assert_eq!(top_blocks(&x, 0.1).len(), 12);
        assert_eq!(top_blocks(&[1.0, 2.0, 2.0], 0.3), [0; 0]);
    }

    #[test]
    fn edges_have_answers() {
        for x in [&[][..], &[1.0], &[0.1; 50], &[f64::NAN, 1.0], &[1.0, 2.0]] {
            assert_eq!(of_top_blocks(x), None);
        }
        assert_eq!((of_places(&[], 100), of_places(&[100], 100), of_places(&[0], 9)), (None, None, None));
        let one = of_places(&[99, 99, 1 << 40], 100).unwrap();
        assert_eq!((one.large, one.stretch), (1, BusyStretch { first: 99, blocks: 1, large: 1 }));
        assert!(of_places(&[usize::MAX - 1], usize::MAX).is_some_and(|test| test.windows[9] == 1));
        let all: Vec<usize> = (0..12).collect();
        assert!(of_places(&all, 12).is_some_and(|test| test.dispersion_p == 1.0));
        for share in [f64::NAN, -1.0, 0.0, 1.0, 2.0] {
            let _ = top_blocks(&[1.0, 2.0, 3.0], share);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn windows_partition_the_run(n in 10usize..5000) {
            let mut counts = [0; WINDOWS];
            (0..n).for_each(|place| counts[window_of(place, n)] += 1);
            prop_assert_eq!(counts, sizes(n));
        }

        #[test]
        fn the_result_depends_only_on_the_order(x in proptest::collection::vec(-99i32..99, 20..90)) {
            let x: Vec<f64> = x.into_iter().map(f64::from).collect();
            let bent: Vec<f64> = x.iter().map(|x| (x / 20.0).exp() - 7.0).collect();
            prop_assert_eq!(top_blocks(&x, 0.05), top_blocks(&bent, 0.05));
            let back: Vec<f64> = x.iter().rev().copied().collect();
            let mirrored: Vec<usize> = top_blocks(&back, 0.05).into_iter().rev().map(|i| x.len() - 1 - i).collect();
            prop_assert_eq!(top_blocks(&x, 0.05), mirrored);
        }

        #[test]
        fn the_stretch_holds_half(places in proptest::collection::vec(0usize..400, 1..40)) {
            let test = of_places(&places, 400).unwrap();
            let mut inside = places.clone();
            inside.sort_unstable();
            inside.dedup();
            inside.retain(|p| (test.stretch.first..test.stretch.first + test.stretch.blocks).contains(p));
            prop_assert_eq!(inside.len() as u64, test.stretch.large);
            prop_assert!(2 * test.stretch.large >= test.large);
            prop_assert_eq!(test.windows.iter().sum::<u64>(), test.large);
        }
    }
}
